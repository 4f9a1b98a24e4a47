package partition

import (
	"errors"
	"fmt"
)

// Errors of partitions; matched with errors.Is.
var (
	// ErrUnreadable says that a partition cannot be read in the format that it is said to have. The wrapped error says
	// why.
	ErrUnreadable = errors.New("partition cannot be read")
	// ErrData says that a partition's bytes are damaged, or hold what the pipeline does not allow. The error is a
	// *DataError.
	ErrData = errors.New("bad data")
	// ErrSchema says that a partition lacks the columns that the pipeline was lowered for. The error is a *DataError.
	ErrSchema = errors.New("schema does not match the pipeline")
	// ErrUnsupported says that a column is encoded in a way that the engine does not read. The error is a *DataError.
	ErrUnsupported = errors.New("not supported")
)

// DataError names the place in a partition at which a stream failed.
type DataError struct {
	Partition string
	RowGroup  int    // -1 for text
	Column    string // leaf path; empty for text
	Page      int64  // number of the page in its chunk that is at fault, or that the row begins in; -1 for text
	Line      int64  // text: number of the first line of the window that failed, from 1; else 0
	Offset    int64  // byte of the partition at which that page's header begins; 0 if it is not known
	Row       int64  // first row of the partition that could not be read
	Message   string // what the engine says
	Err       error  // ErrData, ErrSchema or ErrUnsupported
}

// Error names the place, then the fault.
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
	if e.Message == "" || errors.Is(e.Err, ErrSchema) {
		s += fmt.Sprintf(": %v", e.Err)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the kind of error.
func (e *DataError) Unwrap() error { return e.Err }

// UnreadableError says which partition [Open] could not read, and why. It wraps ErrUnreadable.
type UnreadableError struct {
	Partition string
	Err       error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s: %v: %v", e.Partition, ErrUnreadable, e.Err)
}

// Unwrap returns ErrUnreadable and the reason.
func (e *UnreadableError) Unwrap() []error { return []error{ErrUnreadable, e.Err} }
