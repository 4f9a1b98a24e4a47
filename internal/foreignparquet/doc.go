// Package foreignparquet writes small Parquet files byte by byte as other programs wrote them, faults included, for
// tests of everything that reads Parquet. The files are made from what is publicly known of those writers; none is a
// copy of theirs.
//
// Every file holds the same rows as Twin, which has no fault: whoever reads a file of Files must get what it gets of
// Twin.
package foreignparquet
