// Package document reads the file from which an image is built: what image.Spec holds, written as YAML or JSON.
//
// # Overview
//
//	base: stock                  # begin with the stock image, whose parts are replaced; left out: begin with nothing
//	platform: millrace-csd
//	interface: 3c4e...           # UUID of the shell's interface
//	time: 1700000000             # seconds since 1970; left out: what the caller says (SOURCE_DATE_EPOCH), else 0
//	units:
//	  - {number: 3, name: log, version: 1, source: ""}
//	parameters:                  # as image.Parameters; figures with the source rtl without value and reference
//	  clock_khz: {value: 223000, source: requested}
//	selftest: stock              # the stock image's known answers; or a list of vectors, bytes in base64
//	build: {tool: yosys, revision: 1a2b3c, reproducible: true}
//	user: aGVsbG8=               # base64
//
// The parts and their keys are those of image.Spec's JSON: units, compute, memories, connections, partition, kernels,
// resources, selftest, modules, parameters, build, user. A part that is named replaces the base's part as a whole.
// [Read] returns a Spec; [Of] writes one as a document, and reading that builds the same bytes. Figures of format 1.0,
// which name no source, are refused, and so are figures of fpga/rtl that this build's fpga/rtl does not have.
//
// # Concurrency
//
// Functions are pure.
//
// # Errors
//
// The error is an *[Error] with the line. Unknown and repeated keys, anchors and numbers out of range are refused.
//
// # Debugging
//
// `millrace image info FILE --spec` prints the document of an image.
package document
