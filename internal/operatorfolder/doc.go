// Package operatorfolder has a test that adds an operator to a copy of this tree: one folder of fpga/operator, whose
// files are in testdata. The operator must then work on every engine, in YAML and in Python, without an edit by hand
// anywhere else.
package operatorfolder
