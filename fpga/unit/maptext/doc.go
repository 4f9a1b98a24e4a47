// Package maptext is the unit map_text: texts by a table.
//
// # Overview
//
// A table has texts and a value for each. Texts are compared byte for byte: nothing is trimmed, folded or normalised,
// so "Yes" is not "yes", and an accented letter is not the same letter with a combining accent. The empty text may be a
// key. A Rule says what becomes of a text that the table lacks.
//
// Map looks texts up in an Index, a hash table of the keys' places. The hash is keyed at random in each process, so
// that a hostile table cannot choose keys that fall together; no value depends on it. Tables of values may share an
// Index.
//
// # Concurrency
//
// An Index is immutable and may be shared by goroutines.
//
// # Errors
//
// New returns ErrKeys if the keys do not ascend by their bytes or are too many. Map returns an error of package
// bytecolumn if the texts are not well formed, and an *UnknownError that names the text if the rule is Fail.
//
// # Debugging
//
// Reference is the definition, a text at a time.
package maptext
