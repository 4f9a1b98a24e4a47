// Package pipeline holds feature pipelines: which operators make the features of a mini-batch from a dataset's columns.
//
// # Overview
//
// A pipeline passes through three forms, each plain data:
//
//	Spec      what a person writes: groups of columns and operators; from YAML (Parse), Go, or by name (Named)
//	Resolved  the spec against a dataset's columns: every feature by name, every operator typed (package resolve)
//	Program   what a drive runs, with the schema of the mini-batches that it makes (package lowering)
//
// This package holds the first: it reads, checks and writes documents. The operators are entries of one [Catalogue],
// from which parsing, checking, docs/operators.md and docs/pipeline.schema.json are derived. Package fpga/unit holds
// the computations of the operators; this package knows only their names and parameters.
//
// A column may be a map (columntypes.Map). A pipeline names the features of the map as columns, "ids[101]".
//
// # Concurrency
//
// The package is pure. Any number of goroutines may read a Spec.
//
// # Errors
//
// A document is refused with errors of package problem, which have lines and columns. No input makes the package panic,
// and the size of documents and the number of borders and columns are bounded.
//
// # Debugging
//
// [Spec.YAML] writes a spec as a document, and package picture draws it.
package pipeline

//go:generate env MILLRACE_UPDATE=1 go test -count=1 -run ^TestDocuments$ ./documents
