// Package summary holds what a pass over a data set leaves beside mini-batches: the statistics of its columns, whole
// and for each partition. It also compares two summaries.
//
// # Overview
//
// A [Summary] has a [Statistics] for each column of the data set, and for each column of each partition. Package
// accumulator, below, makes the statistics of the values of mini-batches; this package links no sketches.
//
// The numbers depend on the rows and on their order in the data set, and on nothing else: neither engines, drives,
// threads, sizes of mini-batches and splits, nor the order in which mini-batches arrive change a bit of them.
//
//   - Counts, the least and the greatest value are exact.
//   - The mean and the deviation are the correctly rounded float64 of the exact quotient and of the exact root. The
//     sums behind them are integers without bound. The deviation divides by one less than the number of values, as
//     NVTabular's Normalize does.
//   - The number of distinct values, the quantiles and the most frequent values are exact while each partition, and
//     all of them together, have at most [ExactValues] distinct values (Statistics.Exact). Otherwise distinct values
//     are counted by HyperLogLog of 2^14 registers (standard error 0.8 %), quantiles come from DDSketch (within 0.1 %
//     of a value that has the rank), and the count of a frequent value may be too small by at most
//     Statistics.MissedCount.
//
// NaN, the infinities and nulls are counted, and enter nothing else. Zeros of both signs are one value.
//
// [Compare] measures how far the statistics of each column moved between two summaries.
//
// # The file
//
// A column's targets are the labels of its values by folds, for target encodings (package targetencoding). A summary
// with targets has the version 2, and every other one the version 1.
//
// A summary's file is one line of JSON in canonical form: fields in the order of the structs, no white space, strings
// as encoding/json writes them without HTML escapes, real numbers in their shortest decimal form. The last member is
// the CRC32C of the bytes before it. The SHA-256 of the file names the summary.
//
// # Concurrency
//
// A Summary does not change.
//
// # Errors
//
// [Read] returns errors that wrap [ErrDamaged] for bytes that are no summary, and [ErrVersion] for a version that this
// build does not read.
//
// # Debugging
//
// `millrace dataset summarize` writes a summary and prints it as a table or as JSON.
package summary
