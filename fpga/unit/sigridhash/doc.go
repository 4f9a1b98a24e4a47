// Package sigridhash is the unit sigrid_hash: ids of any range folded onto the rows of an embedding table.
//
// # Overview
//
// The definition is TorchArrow's (csrc/velox/functions/rec/sigrid_hash.h) over two functions of folly
// (folly/hash/Hash.h):
//
//	h   = int64(hash_128_to_64(upper = uint64(salt), lower = twang_mix64(uint64(id))))
//	out = floorMod(h, max)
//
// and max == 1 gives 0. The kernels multiply by a reciprocal made once (plain Go, AVX2, AVX-512, NEON; package floormod
// says why that is exact); the reference divides. AVX-512 has two variants, for AMD's processors and for Intel's
// (package simd selects one); the second takes max up to 2^31, and a greater max takes the first on both. NEON takes a
// max up to 2^31, and a greater max takes plain Go.
//
// # Concurrency
//
// A Hasher is immutable and may be shared.
//
// # Errors
//
// New returns ErrMax when max is not above zero. Hash cannot fail.
//
// # Debugging
//
// Raw gives the hash before the modulo, which the golden file lists beside the results.
package sigridhash
