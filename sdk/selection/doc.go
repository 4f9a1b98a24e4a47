// Package selection says which rows of a data set pass a filter.
//
// # Overview
//
// A [Condition] is a filter in the form in which rows are tested: a tree of tests over the keys of mini-batches, which
// a pass over the filter's columns makes, and over the names and numbers of rows. A [Builder] takes the outcome of the
// tests, partition by partition, and makes a [Selection]: for every partition the [Rows] that pass. A plan cuts passing
// rows as it cuts rows without a filter (dataset.NewSelectedPlan), so that the n-th row of a partition in such a plan
// is the n-th passing row; [Rows.Row] returns its number in the file, and a split begins at the row of its first
// passing row.
//
// A selection depends on the manifest of the data set and on the filter, whose digests it holds, and on nothing else:
// neither the engine nor the mini-batches of the pass change a bit of it. So it can be kept and used again.
//
// # The file
//
// All numbers are little-endian.
//
//	  0  8  magic "MRSELEC\n"
//	  8  2  major version, 2 minor version
//	 12 32  digest of the manifest
//	 44 32  digest of the filter
//	 76  4  partitions
//	 80     the partitions, in the order of the manifest:
//	        8  rows
//	           a chunk for each 65,536 rows, the last of which may be shorter:
//	           1  form: 0 no row passes, 1 every row passes, 2 a list, 3 a bitmap
//	              2: 2 bytes count, and 2 bytes for each passing row, which ascend
//	              3: a bit for each row, in bytes, the lowest bit first
//	trailer  4  CRC32C of everything before it
//
// The form of a chunk follows from its rows: 0 and 1 where they fit, the list where it has fewer bytes than the bitmap,
// else the bitmap. So equal selections have equal bytes. The SHA-256 of the file names the selection.
//
// # Concurrency
//
// A Selection and its Rows do not change. A Condition does not change. A Builder has one user.
//
// # Errors
//
// Bytes that are no selection give an error that wraps [ErrDamaged], and those of a later version [ErrVersion].
package selection
