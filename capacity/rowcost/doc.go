// Package rowcost counts what a row of a user's own pipeline costs: the bytes that are read of it, the values that go
// through each unit of a drive, and the bytes of its tensors.
//
// # Overview
//
// [Data] is what the footers of a data set's files say of its columns; [Data.Add] takes the description of a file
// (package partitionfile), as `millrace dataset inspect` prints it. [Of] walks a lowered pipeline over it and returns a
// [Cost]: everything is a mean for each row, and no value is read. [Cost.Batch] is the work of a mini-batch, from which
// the model of drives (package timing) has P.
//
// # Assumptions
//
// The mean length of a list follows from the footer, except that an empty list counts as one id where the file has no
// statistics. What operators make of lists follows from the mean length: firstx of 10 keeps the smaller one of 10 and
// the mean, which is too much where lengths differ. A map's footer does not say how often a key occurs: every row
// counts as having it. Each of these is a line of Cost.Assumes if the pipeline depends on it. All of them err on the
// side of more work, but for n-grams and parts of lists whose lengths differ. A filter's share is not known either:
// every row counts as passing, and the caller says so.
//
// # Concurrency
//
// The package is pure. A Data must not be changed while Of uses it.
//
// # Errors
//
// [ErrData] for a description that does not fit: of no Parquet file, without rows, or without a column that the
// pipeline reads.
package rowcost
