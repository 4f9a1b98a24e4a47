// Package targetencoding replaces a key by the mean of the label over the rows that have the key, smoothed towards the
// mean of all rows.
//
// # Overview
//
// A [Builder] counts, in one pass over the training data, the rows and sums the labels of each key and fold; what it
// makes is a [Table]. An [Encoding] holds the values that a table gives the keys:
//
//	((sum of labels) + p * mean) / (rows + p)
//
// mean is that of all rows, and p the smoothing. In training, sum and rows are those of the other folds than the
// row's own, so that no row's feature holds its own label; in serving they are those of all folds. A key that the table
// lacks, and a row without a key, get the mean. Every value is the float32 nearest to the exact one.
//
// The fold of a row depends on its name alone, which is its partition's name and its number there, and on a seed: see
// [Folding]. So a mini-batch is the same on every machine that makes it, and in every order of making. A table knows
// the partitions whose rows it counted, and in training an encoding fits only these ([Encoding.Fits]).
//
// An [Applier] puts the encodings of keys into the dense features of mini-batches.
//
// Source: NVTabular's TargetEncoding, which draws folds at random.
//
// # The form
//
// A table's form is a sequence of varints: the folds, then rows and sum of labels of each fold, the number of
// partitions, and for each the distance of the hash of its name from the one before, the number of keys, and for each
// key its distance from the one before and its rows and sum of each fold. Hashes and keys ascend. Every table has one
// form; as text it is in base64.
//
// # Concurrency
//
// A Builder has one user at a time. Everything else does not change once it is made.
//
// # Errors
//
// [Builder.Add] returns errors that wrap [ErrTarget] for a label that is not a whole number, and [ErrKeys] for too many
// keys; [ErrPartitions] says that there are too many partitions. Bytes that are not a table are [ErrDamaged].
//
// # Debugging
//
// `millrace dataset summarize --pipeline p.yaml --output json` prints tables as part of a summary.
package targetencoding
