// Package convert is the unit convert: integers and floats become floats of another width.
//
// # Overview
//
// Every conversion rounds once, to nearest, ties to even. A NaN that becomes narrower is 7fc00000h, whatever NaN came
// in; one that becomes wider is quiet and keeps its payload.
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
