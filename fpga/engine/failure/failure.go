// Package failure makes the errors that end a slice, each with the state of the slice.
package failure

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// stateError is an error that ends a slice in a certain state.
type stateError struct {
	state program.State
	err   error
}

// New returns an error that ends a slice in a state.
func New(state program.State, err error) error { return &stateError{state, err} }

func (e *stateError) Error() string { return e.err.Error() }
func (e *stateError) Unwrap() error { return e.err }

// Slice is the error of a slice whose numbers are out of bounds.
func Slice(format string, args ...any) error {
	return New(program.BadSlice, fmt.Errorf("slice: "+format, args...))
}

// Data is the error of a column's bytes, or of values that the pipeline does not allow.
func Data(format string, args ...any) error {
	return New(program.BadData, fmt.Errorf(format, args...))
}

// Page is the error of pages that contradict themselves or the footer.
func Page(message string, args ...any) error {
	return New(program.BadData, format.Corrupt(message, args...))
}

// StateOf returns the state that an error ends a slice in. An error of New names it. Other errors come
// from the column's bytes: NoSupport if a unit does not read them, else BadData.
func StateOf(err error) program.State {
	var f *stateError
	switch {
	case errors.As(err, &f):
		return f.state
	case errors.Is(err, format.ErrUnsupported), errors.Is(err, format.ErrLimit):
		return program.NoSupport
	}
	return program.BadData
}

// InRows adds the place in the mini-batch to an error about count rows from row first on: the one row that the error
// is about, if the error knows it.
func InRows(first uint64, count int, err error) error {
	if e := (*block.RowError)(nil); errors.As(err, &e) && e.Row < max(count, 1) {
		return fmt.Errorf("row %d of the mini-batch: %w", first+uint64(e.Row), err)
	}
	return fmt.Errorf("rows %d to %d of the mini-batch: %w", first, first+uint64(max(count, 1))-1, err)
}
