// Package fillnan is the unit fill_nan: every NaN becomes one value. It also finds the values that dense and the label
// refuse.
//
// # Overview
//
// Float32 and Float64 replace NaN in place, whatever its sign and payload, and keep the bits of every other value. They
// do what Polars' fill_nan does, and what NVTabular's FillMissing and pandas' fillna do to a NaN, which they treat as a
// null. FindNaN and FindNonFinite return the place of the first value that a tensor refuses.
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
// Reference is the definition, for one value.
package fillnan
