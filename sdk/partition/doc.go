// Package partition opens partitions. A partition knows the statements of a footer or an index about the rows of a
// file, the places of the file's bytes on a drive, and facts that streams learn because the file does not state them
// in one place.
//
// # Overview
//
// [Open] reads the footer of a Parquet file, or counts the rows of a text:
//
//	part, err := partition.Open(ctx, name, reader, size, program.Parquet, partition.Options{Extents: extents})
//
// A [Partition] then has rows in row groups ([Partition.RowGroups]) and bytes in [Extent]s. [Partition.Geometry] turns
// runs of its bytes into runs of whole blocks. [Partition.ReadPageIndex] reads where the pages of a column chunk lie. A
// [ResumePoint] is a place in a column chunk that an engine came by; streams note them, so that the next stream over
// the same rows need not walk there from the chunk's beginning.
//
// # Concurrency
//
// A partition is safe for concurrent use, if its reader is.
//
// # Errors
//
// [Open] fails with [ErrUnreadable]. A stream over a partition fails with a *[DataError], which names partition, row
// group, column and page or line, and wraps [ErrData], [ErrSchema] or [ErrUnsupported].
//
// # Debugging
//
// [Partition.Describe] returns a manifest's entry for the partition; compare its digest when two hosts disagree.
package partition
