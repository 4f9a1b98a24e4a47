// Package foreignparquettest writes small Parquet files byte by byte as other programs wrote them, faults included, for
// tests of everything that reads Parquet. The files are made from public knowledge of those writers; none is a copy
// of a file that they wrote.
//
// Every file holds the same rows as Twin, which has no fault: a reader must get the same values from a file of Files
// as from Twin.
package foreignparquettest
