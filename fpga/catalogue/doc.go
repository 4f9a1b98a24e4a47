// Package catalogue has the types in which an operator says what a pipeline's document may write of it: its text, its
// parameters, and how it joins a chain of operators. Each operator below fpga/operator declares an [Entry]. Package
// sdk/pipeline reads documents by the entries, sdk/pipeline/resolve applies them, and sdk/pipeline/documents writes the
// manual, the JSON Schema and the functions of the Python package from them.
package catalogue
