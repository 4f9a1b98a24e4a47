// Package texttoint is the unit text_to_int: decimal text becomes an int64.
//
// # Overview
//
// A text is an optional sign, + or -, and one decimal digit of ASCII or more: 0, -123, +5, 007. Its value must be an
// int64, which is -2^63 to 2^63 - 1; zeros in front do not count. Nothing else is read: no space, no separator of
// digits, no point, no exponent, no other digits of Unicode. An empty text is a null.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// Integers returns a *bytecolumn.TextError, which names the text and its place, and wraps ErrInteger, ErrRange or
// bytecolumn.ErrNull. An error that wraps bytecolumn.ErrShape says that the column itself is not well formed.
//
// # Debugging
//
// Reference is the definition, with integers of any size.
package texttoint
