// Package bfloat16 rounds float32 to bfloat16: the upper half of a float32, with its sign, its 8 bits of exponent, and
// 7 bits of fraction. A pipeline asks for it with dense_type: bfloat16.
//
// # Overview
//
// The result is the bfloat16 nearest to the float32, ties to even. A value beyond the largest bfloat16 by half a unit
// of its last place or more becomes an infinity. Denormals are kept and rounded like other numbers, unlike by the
// processors' instruction VCVTNEPS2BF16, which makes 0 of them. Every NaN becomes 7fc0h: sign and payload are lost, as
// where package convert makes a NaN narrower.
//
// The dense tensor is rounded where package rowmajor writes its rows; Round is for the values that are written alone.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// There are none.
//
// # Debugging
//
// ReferenceRound is the definition. It compares distances with math/big.
package bfloat16
