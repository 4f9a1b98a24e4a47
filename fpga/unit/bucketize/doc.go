// Package bucketize is the unit bucketize: a number becomes the index of the interval between borders that holds it.
//
// # Overview
//
// Borders b[0] <= ... <= b[n-1] make n+1 buckets. With SideLeft, which is TorchArrow's and PreSto's, bucket i is
// (b[i-1], b[i]]; with SideRight, which is NVTabular's and numpy.digitize's, it is [b[i-1], b[i]). Equal borders under
// SideLeft are TorchArrow's: the value itself goes one bucket past the first of them, values just above it go past all
// of them.
//
// Values and borders are compared as float32, float64 or int64; a number of another type is converted first, to
// nearest even. So under CompareFloat32 the integer 16777217 lies on the border 16777216.
//
// The kernels turn values into unsigned keys of the same order, cut the keys' range into cells of at most one border
// where that is possible (equal cells, or a table of two levels, finer where borders are dense), and finish with a
// compare, or a few. Comparing as float32, which is the default, has paths for AVX-512 and AVX2, which gather, and for
// NEON, which loads word by word; float64 and int64 are plain Go.
//
// # Concurrency
//
// A Table is immutable and may be shared.
//
// # Errors
//
// New returns ErrBorders for borders that are empty, decreasing or NaN, and ErrParams for unknown enumerators. A
// *NaNError names the place of a NaN under NaNFail; ErrCompare says that float values were given to a table of
// integers.
//
// # Debugging
//
// Reference is the definition, a value at a time, by linear search.
package bucketize
