package slicer

import "fmt"

// MemoryError says that the memory that a stream may use cannot hold one mini-batch of output and the largest page,
// packed and unpacked, with its dictionary.
type MemoryError struct {
	Partition string
	RowGroup  int    // -1 for text
	Column    string // leaf path; empty for text
	Page      int64  // number of the page in its chunk
	Need      uint64 // bytes of memory that suffice for this page, all streams and the program included
	Have      uint64 // bytes of memory there are
	Streams   int    // streams that share it
}

// Error says what to do.
func (e *MemoryError) Error() string {
	place := e.Partition
	if e.RowGroup >= 0 {
		place += fmt.Sprintf(": row group %d", e.RowGroup)
	}
	if e.Column != "" {
		place += ": column " + e.Column
	}
	s := fmt.Sprintf("%s: page %d needs %d bytes of local memory, there are %d", place, e.Page, e.Need, e.Have)
	if e.Streams > 1 {
		s += fmt.Sprintf(" for %d streams; use fewer streams,", e.Streams)
	} else {
		s += "; use"
	}
	return s + " a smaller batch or more memory"
}
