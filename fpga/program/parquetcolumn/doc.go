// Package parquetcolumn relates a program's columns to the leaves of a Parquet file: it translates
// between the kinds and parts of package program and those of package format. The slicer, the engine and the
// reference engine use it to check that a leaf has the type that a column expects.
//
// # Concurrency
//
// The functions depend on their arguments alone.
//
// # Errors
//
// There are none: every kind and every part has a counterpart.
package parquetcolumn
