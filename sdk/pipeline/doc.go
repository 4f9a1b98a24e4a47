// Package pipeline holds feature pipelines: which operators make the features of a mini-batch from a dataset's columns.
//
// # Overview
//
// A pipeline passes through three forms, each plain data:
//
//	Spec      what a person writes: groups of columns and operators; from YAML (Parse), Go, or by name (Named)
//	Resolved  the spec against a dataset's schema: every feature by name, every operator typed (Spec.Resolve)
//	Program   what a drive runs (Lower), with the schema of the mini-batches that it makes
//
// The operators are entries of one [Catalogue], from which parsing, checking, docs/operators.md and
// docs/pipeline.schema.json are derived. Package fpga/unit holds the computations of the operators; this package
// knows only which types they take and yield.
//
// A column may be a map ([MapInfo]). A pipeline names the features of the map as columns, "ids[101]", and lowering puts
// the features together that one walk over the map can make.
//
// [Resolved.Canonical] is the pipeline's part of a job's identity: patterns expanded, defaults filled in, borders as
// bits. Two specs that make the same mini-batches from a dataset have the same canonical form, however they are
// written.
//
// # Concurrency
//
// The package is pure. Any number of goroutines may read a Spec or a Resolved.
//
// # Errors
//
// A pipeline is refused with [Errors], a list of one or more [Error]. Each has a location (line and column if the
// pipeline came from YAML, and a path such as dense[0].ops[1].clamp.min), the column or feature, and one of the
// sentinels ([ErrSyntax], [ErrUnknownOperator], [ErrMissingColumn], ...) for errors.Is. No input makes the package
// panic, and the size of documents and the number of borders and columns are bounded.
//
// # Debugging
//
// [Spec.YAML] writes a spec as a document. Program.String of fpga/program shows the program to which a pipeline was
// lowered. [Resolved.Notes] returns warnings about settings that are allowed but doubtful, such as a key whose number
// of embeddings is unknown.
package pipeline

//go:generate env MILLRACE_UPDATE=1 go test -count=1 -run ^TestDocuments$ ./documents
