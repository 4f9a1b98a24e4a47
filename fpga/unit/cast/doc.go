// Package cast is the unit cast: numbers become numbers of another type, where package convert has no conversion or
// none that is exact.
//
// # Overview
//
//   - a real number becomes the int64 that is left without its fraction: it is rounded towards 0. A NaN, and a number
//     whose integer is not an int64, overflow; -2^63 fits, and 2^63 does not;
//   - an unsigned integer of 64 bits becomes an int64, and overflows from 2^63 on, or the nearest float32 or float64,
//     ties to even, rounded once;
//   - a float64 becomes its 64 bits, as an int64, so that equal numbers are equal integers: -0 has the bits of 0, and
//     every NaN those of 0x7ff8000000000000.
//
// An overflow is an error, or becomes a null in the functions whose names end in OrNull.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// An OverflowError names the row and the number. It wraps ErrOverflow.
//
// # Debugging
//
// The functions whose names begin with Reference are the definitions, with numbers of any size.
package cast
