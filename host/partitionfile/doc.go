// Package partitionfile finds the files that a data set's partitions are read from, and describes their contents.
//
// # Overview
//
// [Expand] turns names of files, folders and patterns into files. [Resolver.FindFormat] finds the format of the files
// by their names and first bytes. [Describe] reads one file's rows, row groups and columns, and which of the columns a
// pipeline can read.
//
// # Concurrency
//
// All functions are safe for concurrent use.
//
// # Errors
//
// [ErrNotRegular] is wrapped where a name is a pipe or a device, [*MixedFormatsError] where files have several formats,
// [*UnknownFormatError] where a file has none that is known. Nothing here opens a file that is not regular: opening a
// pipe would wait for its writer.
package partitionfile
