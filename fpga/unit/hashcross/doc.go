// Package hashcross is the units hash_cross and hash_bucket: the hash of one or several ids, as a bucket.
//
// # Overview
//
// An id is hashed by the finaliser of SplitMix64, which is what pandas hashes integers with. The hashes of a row's ids
// are combined by exclusive or, and the bucket is the remainder of that unsigned number. With one id a row this is
// NVTabular's HashBucket, and with several its HashedCross, both without the row's index, which NVTabular on CPUs mixes
// into the hash, so that the same id has another bucket in another row.
//
// Exclusive or is symmetric, and equal ids cancel: the bucket of (1, 2) is that of (2, 1), and that of (1, 1) is 0.
// Package cartesian makes pairs whose order counts.
//
// An id is hashed as 64 bits. pandas hashes an int32 column by its 32 bits, so that only ids below 0 differ:
// zero_extend first gives its hashes.
//
// # Concurrency
//
// A Hasher is immutable and may be shared by goroutines.
//
// # Errors
//
// New returns ErrBuckets if the number of buckets is not above 0.
//
// # Debugging
//
// Reference is the definition, a row at a time.
package hashcross
