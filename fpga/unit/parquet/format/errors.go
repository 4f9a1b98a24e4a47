package format

import (
	"errors"
	"fmt"
	"strings"
)

// These errors say what can be wrong. errors.Is matches them.
var (
	// ErrMoreInput says that the bytes end too early: read more of them.
	ErrMoreInput = errors.New("parquet: more input needed")
	// ErrCorrupt says that the bytes contradict themselves or the footer. Errors that match it say how.
	ErrCorrupt = errors.New("damaged or truncated: compare with the writer's copy")
	// ErrCRC says that a page's bytes do not have the checksum of its header.
	ErrCRC = errors.New("page checksum mismatch")
	// ErrUnsupported says that this unit does not read a type, nesting, encoding, codec or encryption. The error is an
	// *UnsupportedError, which names it.
	ErrUnsupported = errors.New("not supported")
	// ErrTooSmall says that the caller's memory cannot hold what a page promises. The error is a *SizeError, which says
	// how much memory is needed.
	ErrTooSmall = errors.New("memory too small")
	// ErrLimit says that decoding would pass the limits of a Block or of the reference.
	ErrLimit = errors.New("limit reached")
	// ErrContinues says that a page begins inside a row, and the caller asked for whole rows.
	ErrContinues = errors.New("parquet: page continues the row before it")
)

// UnsupportedError names a feature that is not read. It matches ErrUnsupported.
type UnsupportedError struct {
	What string // "type", "nesting", "encoding", "codec", "encryption", "page type"
	Name string // e.g. "INT96", "DELTA_BYTE_ARRAY", "BROTLI", "map"
}

// Error names the feature that is not supported.
func (e *UnsupportedError) Error() string {
	name := strings.TrimPrefix(e.Name, e.What+" ") // a number without a name prints as "encoding 31" already
	return fmt.Sprintf("%s %s is not supported", e.What, name)
}

// Is matches ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// SizeError says how many bytes a page needs and how many there are. It matches ErrTooSmall.
type SizeError struct {
	What       string // "unpacked page", "dictionary"
	Need, Have int64  // bytes
}

// Error says how much memory to give.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s needs %d bytes of memory, has %d", e.What, e.Need, e.Have)
}

// Is matches ErrTooSmall.
func (e *SizeError) Is(target error) bool { return target == ErrTooSmall }

// PageError says where in a file a fault lies. The code that walks the pages fills in the fields that it knows; -1
// means not known.
type PageError struct {
	RowGroup int    // in the file, from 0
	Column   string // the leaf's path
	Page     int    // in the chunk, from 0, a dictionary page counted
	Offset   int64  // byte of the file at which the page's header begins
	Err      error
}

// Error names the place, then the fault.
func (e *PageError) Error() string {
	return fmt.Sprintf("row group %d: column %q: page %d at byte %d of the file: %v", e.RowGroup, e.Column, e.Page,
		e.Offset, e.Err)
}

// Unwrap returns the fault.
func (e *PageError) Unwrap() error { return e.Err }

// corruptError says how bytes contradict themselves. It matches ErrCorrupt.
type corruptError struct{ how string }

func (e *corruptError) Error() string { return e.how + ": " + ErrCorrupt.Error() }

func (e *corruptError) Is(target error) bool { return target == ErrCorrupt }

// Corrupt makes an error that matches ErrCorrupt. The text describes the fault and the remedy.
func Corrupt(format string, args ...any) error { return &corruptError{fmt.Sprintf(format, args...)} }

func corrupt(format string, args ...any) error { return Corrupt(format, args...) }
