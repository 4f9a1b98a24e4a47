// Package documents makes what follows from the catalogue of operators: the manual docs/operators.md, the JSON Schema
// docs/pipeline.schema.json, and the functions that build pipelines in Python and in Go. Its test compares them with
// the files of the tree, and "go generate ./sdk/pipeline" has it write them. No program links the package.
package documents
