// Package unpack is the unit unpack: the bytes of an array of numbers become a list of numbers.
//
// # Overview
//
// Embeddings are often kept as the bytes of their numbers, as NumPy's ndarray.tobytes and an array's memory have them:
// little-endian float32 numbers one behind the other, without a header. A value of 4n bytes is a list of n numbers,
// each with its bits, and a null or a value without bytes is an empty list.
//
// Bytes do not say what they are, so the unit refuses what is surely something else: a length that is not a multiple of
// 4, and a value that begins as a file of NumPy does (93h "NUMPY"), which is what numpy.save and Petastorm's
// NdarrayCodec write.
//
// # Concurrency
//
// The functions keep no state. Lists belongs to one goroutine at a time.
//
// # Errors
//
// Float32s returns an error of package bytecolumn if the values are not well formed, and a *ValueError, which wraps
// ErrLength or ErrHeader, for a value that is not an array.
//
// # Debugging
//
// Reference is the definition, a value at a time.
package unpack
