// Package catalogue has the types in which an operator says what a pipeline's document may write of it: its text, its
// parameters, and how it joins a chain of operators. Each operator below fpga/operator declares an [Entry]; package
// sdk/pipeline reads documents by the entries, and writes the manual, the JSON Schema and the functions of the Python
// package from them.
package catalogue
