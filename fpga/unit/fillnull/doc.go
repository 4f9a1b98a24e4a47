// Package fillnull is the unit fill_null: every null becomes one value.
//
// # Overview
//
// It is TorchArrow's fill_null and NVTabular's FillMissing: coalesce(v, fill). Int64, Float32 and Float64 run in
// place over a column and its validity. Afterwards every element is a value and the caller drops the validity.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// There are none: validity shorter than the column is a fault of the caller and panics as an index does.
//
// # Debugging
//
// Reference is the definition, a value at a time.
package fillnull
