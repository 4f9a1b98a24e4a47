// Package mapid is the unit map_id: ids by a table.
//
// # Overview
//
// DPP (Table XI) names MapId without a definition. RAP's takes a dense table whose index is the id, and gives 0 for
// ids behind its end; ids below 0 read other memory there. This unit gives a constant for every id that a table does
// not hold, ids below 0 included, and takes tables of pairs, too.
//
// Map takes the keys of such pairs as an Index: a hash table of positions in the keys, with open addressing. Its memory
// is 16 bytes a key at most, and the values stay where they are, so that tables of values may share an Index. Keys that
// fall together too often, as a hostile program may choose them, are looked up by halving instead.
//
// # Concurrency
//
// An Index is immutable and may be shared. It keeps the slice of keys that it was made of, which must not change.
//
// # Errors
//
// New returns ErrKeys if the keys do not ascend or are too many. Map and Dense cannot fail.
//
// # Debugging
//
// Reference and ReferenceDense are the definitions, a value at a time.
package mapid
