// Package pipeline holds feature pipelines: what becomes of a dataset's columns on their way to a mini-batch.
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
// docs/pipeline.schema.json are derived. What the operators compute is the affair of fpga/unit; this package knows
// only what they take and give.
//
// A column may be a map ([MapInfo]); its features are columns by another name, "ids[101]", and lowering puts those that
// one walk over the map can make together.
//
// [Resolved.Canonical] is the pipeline's part of a job's identity: patterns expanded, defaults filled in, borders as
// bits. Two specs that make the same mini-batches from a dataset have the same canonical form, however they are
// written.
//
// # Concurrency
//
// Everything here is pure. A Spec or a Resolved may be read by any number of goroutines.
//
// # Errors
//
// A pipeline is refused with [Errors], one or more [Error], each with its place (line and column when it came from
// YAML, and a path such as dense[0].ops[1].clamp.min), the column or feature meant, and one of the sentinels
// ([ErrSyntax], [ErrUnknownOperator], [ErrMissingColumn], ...) for errors.Is. Nothing panics on input; documents,
// borders, and columns are bounded in number.
//
// # Debugging
//
// [Spec.YAML] writes a spec as a document. Program.String of fpga/program shows what a pipeline was lowered to.
// [Resolved.Notes] tells what is allowed but worth knowing, such as a key whose number of embeddings is unknown.
package pipeline
