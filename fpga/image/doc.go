// Package image holds the container in which a drive's FPGA image travels and is kept: the *.mimg file.
//
// # Overview
//
// A [Spec] is plain data that says what an image holds. [Build] encodes it; the same Spec always gives the same bytes.
// [Parse] decodes them, and refuses every file that Build would not have written, so that two different files never
// mean the same image. Package stock builds the image that a new drive has.
//
//	header     200 bytes: magic, sizes, version, time, image id, interface UUID, platform, number of sections, CRC32C
//	table      80 bytes a section: kind, flags, codec, name, offset, size, SHA-256
//	sections   each at the next multiple of 64, zeros between, in the order of their kinds, at most one of a kind
//
// All numbers are little-endian. The CRC covers header and table; each section's SHA-256 covers its bytes.
//
// The image id is a SHA-256 over the parts that determine the image's behaviour: format version, interface, platform
// and every section except BUILD, USER and SIGNATURE. So a rebuild with other tools, or a signature, leaves the id
// alone. [ID.UUID] shows it as a UUIDv8.
//
// A [Module] is a WebAssembly module with operators of one's own. The section MODULES holds the bytes of all modules.
// It lies behind SELFTEST, so that the signature covers it.
//
// [Parameters] say how fast a device with the image would be according to the model in fpga/timing: clock, elements,
// lanes, initiation intervals, latencies, double buffering. Each [Figure] names its [Source], and none is a
// measurement. The section PARAMETERS lies before SELFTEST, so that the signature covers it. Clocks, and the lanes,
// initiation intervals and latencies in UNITS and KERNELS, are of format 1.0, where figures have no source: Parse still
// takes images that have them, and [Spec.Unsourced] lists them.
//
// The payload of a structured section is the JSON text that encoding/json writes for its Go type. A reader needs no
// second parser, and a text that differs from its own re-encoding is refused.
//
// # On a drive
//
// [Trust] is what a drive judges images by: a [Policy], the keys that it trusts, and the revoked keys and images. A
// [LoadError] names the [Step] at which an image was refused, and the interface that the image needs beside the one
// that the drive has; a [BusyError] names the hosts that use the drive. A [LogPage] is a drive's account of its images:
// vendor log page C1h. [Diff] compares two images, and package document reads the file from which an image is built.
//
// # Concurrency
//
// Everything is plain data; an *Image may be read from any number of goroutines and must not be written.
//
// # Errors
//
// Parse returns an *[Error] that names the section and wraps one of the sentinels [ErrCorrupt], [ErrVersion],
// [ErrUnknown], [ErrLayout], [ErrContent], [ErrTooLarge].
//
// # Debugging
//
// `millrace image info` prints the image that Parse reads. A file that Parse refuses with ErrCorrupt was damaged on
// its way; with ErrLayout it was not written by Build. `millrace image list URI` prints a drive's log page, with what
// it refused lately.
package image
