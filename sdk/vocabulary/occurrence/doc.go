// Package occurrence counts the keys of a pass over a data set: where each appeared first, and how often. It does so in
// bounded memory.
//
// # Overview
//
// An [Entry] is what is known of one key. A [Table] folds keys in, in memory, in an array of small integers and a hash
// table of other keys. What no longer fits goes to disk as a run of [SortedRuns]: a list of entries in the order of
// their keys. SortedRuns.Merged reads all runs as one list and folds entries of the same key: the least position, and
// the sum of counts. So neither the order of rows nor the number of runs changes the list.
//
// # Concurrency
//
// Neither a Table nor SortedRuns may be used by several goroutines at once.
//
// # Errors
//
// Those of the file system, with the name of the run; and a run whose bytes have changed on disk.
package occurrence
