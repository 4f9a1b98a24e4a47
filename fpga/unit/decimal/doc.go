// Package decimal is the unit decimal: a Parquet DECIMAL, an unscaled integer n with a scale s, becomes the float32 or
// float64 that is nearest to n / 10^s, or n itself as an int64.
//
// # Overview
//
// The integer is an int64, or 1 to 32 bytes in two's complement, the highest byte first, as Parquet keeps decimals in
// FIXED_LEN_BYTE_ARRAY and BYTE_ARRAY. The scale is 0 to 76, the digits of 32 bytes. A float is rounded once, to the
// nearest, ties to even: denormals are kept, what is beyond the largest float32 by half a unit of its last place
// becomes an infinity, and zero is +0. An integer of bytes that does not fit int64 is an error where an int64 is
// wanted.
//
// Most decimals are small: if |n| is at most 2^53 and s at most 22, both are exact as float64, and one division rounds
// once. For a float32 its result is rounded again, unless it lies halfway between two float32, where the second
// rounding could err. All other decimals are divided as integers of 384 bits, and the remainder becomes the last bit.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// ErrScale, ErrLength and ErrRange; a ValueError names the value of the last two. An error of bytecolumn says that the
// column itself is not well formed.
//
// # Debugging
//
// The functions in reference.go are the definition, with rational numbers of any size.
package decimal
