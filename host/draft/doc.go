// Package draft drafts a pipeline from the columns and rows of files, for people who have files and no pipeline yet.
//
// # Overview
//
// [New] reads the columns of the files and the first rows of one file, decides for each column whether it is the label,
// a number or an id, and writes a pipeline document ([Draft.Document]). Comments in the document say what was assumed
// and which columns were left out, with the reason. A draft is a beginning: its author reads the comments and changes
// what is wrong.
//
//	guess.go     what a column is, by its type and its name; pure
//	sample.go    the first rows, made into mini-batches by the CPU engine, so that a column that cannot be decoded
//	             is left out and ranges of values are known
//	document.go  the YAML document with its comments; pure
//
// A column becomes what its type permits: real numbers and booleans become dense features; lists of integers become
// keys; text becomes a key: hexadecimal text is read as numbers, and other text is hashed. Integers may be amounts or
// ids. The words of the column's name decide. If no word does, the width decides: integers of 64 bits are ids.
//
// # Concurrency
//
// New is safe for concurrent use.
//
// # Errors
//
// [*NothingError] says that no column of the files can become a feature, and why each column cannot. Other errors are
// those of the files.
//
// # Debugging
//
// Every decision is a comment of the document.
package draft
