// Package strictyaml reads a daemon's configuration: one YAML document into a Go struct, with everything refused that
// is not meant, and prints the same struct as a commented document or as a JSON Schema.
//
// # Overview
//
// A field is one whose tag says `yaml:"key" doc:"what it is"`; every field has both. Fields may be strings, booleans,
// integers, float64, structs of fields, slices of these, and types with UnmarshalText and MarshalText (sizes,
// durations), which are strings in the document. The tag `enum:"a,b"` lists what a string may be. What the document
// does not name keeps the value that the struct had: its default.
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
// Decode's are a *Error, with the place in the document. A struct that breaks the rules above panics: that is a fault
// of the program, found by its first test.
//
// # Debugging
//
// Print of what was decoded shows what a document came to.
package strictyaml
