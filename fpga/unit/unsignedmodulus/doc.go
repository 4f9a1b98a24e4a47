// Package unsignedmodulus is the unit unsigned_modulus: the remainder of an id's 64 bits, read as an unsigned number.
//
// # Overview
//
// Hashes of 64 bits are unsigned by their definitions, and an id holds their bits as an int64. The remainder of the
// unsigned number is what programs take that keep hashes unsigned: TensorFlow's string_to_hash_bucket_fast divides
// FarmHash's Fingerprint64, a uint64, by the number of buckets
// (tensorflow/core/kernels/string_to_hash_bucket_fast_op.h, "input_hash % num_buckets_"), and Java has it as
// Long.remainderUnsigned. For ids from 0 on, and for powers of two, it is what package positivemodulus computes; for
// other moduli the remainders of negative ids differ.
//
// # Concurrency
//
// A Modulus is immutable and may be shared by goroutines.
//
// # Errors
//
// New returns ErrModulus if the modulus is not above 0. Mod cannot fail.
//
// # Debugging
//
// Reference is the definition, a value at a time.
package unsignedmodulus
