// Package rescale is the unit rescale: an integer is counted in another unit, rounded towards minus infinity. With it a
// timestamp of milliseconds becomes seconds or days, and a date of days becomes seconds.
//
// # Overview
//
// The value x becomes floor(x * multiplier / divisor). Both factors are at least 1, and one of them is 1. The result is
// exact. A product that does not fit int64 is an error; a division never fails.
//
// # Concurrency
//
// The function keeps no state.
//
// # Errors
//
// ErrFactors says that the factors are out of range. A RangeError names a value whose product does not fit int64.
//
// # Debugging
//
// Reference is the definition, a value at a time, with integers of any size.
package rescale
