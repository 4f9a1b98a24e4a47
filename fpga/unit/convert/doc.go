// Package convert is the unit convert: integers and floats become floats of another width.
//
// # Overview
//
// Every conversion rounds once, to nearest, ties to even. Every NaN that becomes narrower becomes 7fc00000h; a NaN
// that becomes wider is quiet and keeps its payload.
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
// ReferenceFloat32 is the definition of what narrows, by way of math/big.
package convert
