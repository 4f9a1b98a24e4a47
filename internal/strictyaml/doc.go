// Package strictyaml reads a daemon's configuration: one YAML document into a Go struct. It refuses everything that
// the struct does not define, and prints the same struct as a commented document or as a JSON Schema.
//
// # Overview
//
// A struct field is a field of the document if its tag says `yaml:"key" doc:"what it is"`; every field has both.
// Fields may be strings, booleans, integers, float64, structs of fields, slices of these, and types with
// UnmarshalText and MarshalText (sizes, durations), which are strings in the document. The tag `enum:"a,b"` lists the
// values of a string. A field that the document does not name keeps the value that it has in the struct: its default.
// An embedded struct without tags groups fields in Go only: the document has them among the others.
//
//	err := strictyaml.Decode(b, &config)      // errors have line and column
//	b := strictyaml.Print(config)             // with every field's doc as a comment
//	b := strictyaml.Schema("title", config)   // draft 2020-12
//
// # Concurrency
//
// All functions are pure.
//
// # Errors
//
// The errors of Decode are of type *Error, with the place in the document. A struct that breaks the rules above
// panics: that is a fault of the program, found by its first test.
//
// # Debugging
//
// Print shows the struct that a document was decoded into.
package strictyaml
