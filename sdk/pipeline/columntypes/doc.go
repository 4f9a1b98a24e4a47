// Package columntypes says which columns a data set has, as pipelines need to know them.
//
// A [Column] is a leaf of the partitions: its kind of values, what the file says that they stand for, and where it may
// be null. It may be a map ([Map]), whose features a pipeline names by key. A [Union] puts the columns of partitions
// together, which need not agree: it widens types where one holds both, lists the types where an operator has to decide
// how they are read, and says which partitions lack a column. [TextSchema] and [BinarySchema] are the columns of
// Criteo's rows.
//
// The package is pure. Errors that a column cannot be read are data, in [Column.Unsupported], because only pipelines
// that name the column are refused.
package columntypes
