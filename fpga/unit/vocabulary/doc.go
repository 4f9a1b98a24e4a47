// Package vocabulary finds the indices of keys: the lookup of Piper's and MiniPipe's ApplyVocab.
//
// # Overview
//
// A vocabulary is a list of different keys, and a key's index is its place in the list. [NewTable] prepares a list for
// lookups, and [Lookup] replaces a column of keys by their indices, [Absent] for a key that is not in the list.
// What becomes of an index, and of an absent key, is the matter of package sdk/vocabulary.
//
// [Reference] is the definition: a Go map. [Table] shares nothing with it. A table is an array of indices where the
// keys are dense, as behind a modulus, and a hash table with open addressing elsewhere. The array has 4 bytes for each
// integer from the least key to the greatest: 2 MB for the 524,288 keys of MiniPipe's pipeline III. Both work a column
// at a time, so that one table at a time is in the processor's caches.
//
// An image does not offer this unit yet: the host looks keys up, behind the drive.
//
// # Concurrency
//
// A Table does not change. Any number of goroutines may use it.
//
// # Errors
//
// NewTable refuses a list that holds a key twice with a *[DuplicateError]. Lookups do not fail.
//
// # Debugging
//
// [Table.Bytes] is the memory of a table.
package vocabulary
