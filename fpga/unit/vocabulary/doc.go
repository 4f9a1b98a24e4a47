// Package vocabulary gives keys their indices and finds them: GenVocab and ApplyVocab of Piper and MiniPipe.
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
// A [Generator] gives every key of a column the next index when it first appears, and ends as a Table: the same array
// or hash table serves both loops. Keys begin in a hash table and move to an array when they turn out to be dense. A
// generator keeps no counts and no positions, so that it takes keys in their order only.
//
// An [Encoder] has a whole column of keys of 16 or 32 bits at hand, and [Encode] writes the indices over the keys,
// which is faster. Keys that are dense have an array. Other keys are divided by their hashes into parts, each of which
// has a hash table that stays in the second-level cache; the indices are given in the order of the column afterwards.
//
// A drive's memory holds a table as bytes: [Store] makes them and says their [Shape], and [View] looks keys up in them
// where they lie. Others may write that memory, so a lookup there checks all it reads: whatever the bytes are, it ends
// after a bounded number of slots, reads nothing outside them and does not panic. It may yield any index then.
//
// # Concurrency
//
// A Table does not change, and a Stored does not change its bytes. Any number of goroutines may use them. A Generator
// and an Encoder belong to one goroutine at a time.
//
// # Errors
//
// NewTable and Store refuse a list that holds a key twice with a *[DuplicateError]. View refuses a shape that no table
// has. Lookups do not fail.
//
// # Debugging
//
// [Table.Bytes] is the memory of a table, [Shape.Bytes] that of a stored one.
package vocabulary
