// Package reference is the slow, obvious engine: mini-batches by the definition.
//
// # Overview
//
// A [Reader] holds a program and the bytes of one partition. [Reader.MiniBatch] decodes whole column chunks with the
// units' references, applies each operator's reference to one Go value at a time, row by row, and builds the tensors of
// a mini-batch (package sdk/tensor describes them). It shares with the fast engine only the types of programs and of
// Parquet metadata: no pages, no windows, no blocks, no kernels.
//
//	value   nil (null), int64, float32, float64 or []byte
//	list    []any of values
//
// An operator that meets a null yields null, and only fill_null makes a value of it; an operator that meets a list with
// a null in it nulls the whole list. In the tensors a null scalar and a null list are lists of length 0; in dense and
// label they are an error.
//
// # Concurrency
//
// A Reader keeps the chunks that it decoded last and belongs to one goroutine at a time.
//
// # Errors
//
// Errors name column and row, and wrap [ErrData] where the data is at fault.
//
// # Debugging
//
// A mini-batch of one row, by [Reader.MiniBatch], shows the program's output for that row.
package reference
