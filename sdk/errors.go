package sdk

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// What a stream fails with; matched with errors.Is.
var (
	// ErrData says that a partition's bytes are damaged, or hold what the pipeline does not allow. The error is a *DataError.
	ErrData = errors.New("bad data")
	// ErrSchema says that a partition has not the columns that the pipeline was lowered for. The error is a *DataError.
	ErrSchema = errors.New("schema does not match the pipeline")
	// ErrUnsupported says that a column is encoded in a way that the engine does not read. The error is a *DataError.
	ErrUnsupported = errors.New("not supported")
	// ErrEngine says that the engine refused a slice or answered against its contract: a fault of the software or a damaged
	// memory, never of the data.
	ErrEngine       = errors.New("engine fault")
	errStreamClosed = errors.New("stream is closed")
)

// DataError names the place in a partition that a stream failed at.
type DataError struct {
	Partition string
	RowGroup  int    // -1 for text
	Column    string // leaf path; empty for text
	Page      int64  // number of the page in its chunk that is at fault, or that the row begins in; -1 for text
	Line      int64  // text: number of the first line of the window that failed, from 1; else 0
	Offset    int64  // byte of the partition at which that page's header begins; 0 where it is not known
	Row       int64  // first row of the partition that could not be read
	Message   string // what the engine says
	Err       error  // ErrData, ErrSchema or ErrUnsupported
}

// Error tells the place, then the fault.
func (e *DataError) Error() string {
	s := e.Partition
	if e.RowGroup >= 0 {
		s += fmt.Sprintf(": row group %d", e.RowGroup)
	}
	if e.Column != "" {
		s += fmt.Sprintf(": column %q", e.Column)
	}
	if e.Page >= 0 {
		s += fmt.Sprintf(": page %d", e.Page)
		if e.Offset > 0 {
			s += fmt.Sprintf(" at byte %d of the file", e.Offset)
		}
	}
	if e.Line > 0 {
		s += fmt.Sprintf(": line %d or after", e.Line)
	}
	if e.Message == "" || e.Err == ErrSchema {
		s += fmt.Sprintf(": %v", e.Err)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the kind of error.
func (e *DataError) Unwrap() error { return e.Err }

// ErrSLM says that the memory a stream may use cannot hold one mini-batch of output and the largest page, packed and
// unpacked, with its dictionary.
type ErrSLM struct {
	Partition string
	RowGroup  int    // -1 for text
	Column    string // leaf path; empty for text
	Page      int64  // number of the page in its chunk
	Need      uint64 // bytes of memory that would do for this page, all streams and the program included
	Have      uint64 // bytes of memory there are
	Streams   int    // streams that share it
}

// Error says what to do.
func (e *ErrSLM) Error() string {
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

// EngineError is an answer of the engine that a host cannot act on. It wraps ErrEngine.
type EngineError struct {
	Partition string
	State     program.State
	Message   string
}

func (e *EngineError) Error() string {
	return fmt.Sprintf("%s: %v: %v: %s", e.Partition, ErrEngine, e.State, e.Message)
}

// Unwrap returns ErrEngine.
func (e *EngineError) Unwrap() error { return ErrEngine }
