// Package reference is the slow, obvious engine: mini-batches by the definition.
//
// # Overview
//
// A [Reader] holds a program and the bytes of one partition. [Reader.MiniBatch] decodes whole column chunks with the
// units' references, applies the reference of each operator (fpga/operator/NAME/reference) to one Go value at a time,
// row by row, and builds the tensors of a mini-batch (package sdk/tensor describes them). It shares with the fast
// engine only the types of programs and of Parquet metadata: no pages, no windows, no blocks, no kernels.
//
// Package fpga/rowvalue says what Go values stand for values and lists, and how an operator treats nulls. In the
// tensors a null scalar and a null list are lists of length 0; in dense and label they are an error.
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
