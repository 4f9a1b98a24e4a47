// Package hashbytes is the unit hash_bytes: the bytes of a value are hashed to an id of 64 bits, so that text can serve
// as a category.
//
// # Overview
//
// Three hash functions are here, each as its authors define it:
//
//   - XXH3 is XXH3_64bits of the xxHash specification, with its default secret and the seed 0.
//   - Murmur3 is Murmur3_x86_32 with the seed 42 as Apache Spark's function hash applies it to a string: words of four
//     bytes first, and then each byte that is left as a word of its own, sign-extended. The 32 bits are sign-extended
//     to the id. For lengths that are no multiple of four the result differs from Murmur3_x86_32 as published.
//   - FarmHash is Fingerprint64 of FarmHash, which TensorFlow's string_to_hash_bucket_fast and BigQuery's
//     FARM_FINGERPRINT use.
//
// The two hashes of 64 bits are unsigned by their definitions. The id has the same 64 bits, read as an int64; so half
// of the ids are negative. TensorFlow takes the remainder of the unsigned number, which package unsignedmodulus
// computes of the id.
//
// All bytes count: nothing is normalised, text need not be UTF-8, and the empty value has a hash like every other
// value. A null is not a value and has no hash.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// ErrOffsets says that the column itself is not well formed, ErrFunction that no hash function has the number.
//
// # Debugging
//
// Reference is the definition, a value at a time. testdata/vectors.json holds hashes of 360 lengths that other
// implementations computed.
package hashbytes
