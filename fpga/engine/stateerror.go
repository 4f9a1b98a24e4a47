package engine

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// stateError is an error that ends a slice in a certain state.
type stateError struct {
	state program.State
	err   error
}

func (e *stateError) Error() string { return e.err.Error() }
func (e *stateError) Unwrap() error { return e.err }

// sliceError is the error of a slice whose numbers are out of bounds.
func sliceError(format string, args ...any) error {
	return &stateError{program.BadSlice, fmt.Errorf("slice: "+format, args...)}
}

// dataError is the error of a column's bytes, or of values that the pipeline does not allow.
func dataError(format string, args ...any) error {
	return &stateError{program.BadData, fmt.Errorf(format, args...)}
}

// pageError is the error of pages that contradict themselves or the footer.
func pageError(message string, args ...any) error {
	return &stateError{program.BadData, format.Corrupt(message, args...)}
}

// errorState returns the state that an error ends a slice in. A stateError names its state. Other errors come from the
// column's bytes: NoSupport if a unit does not read them, else BadData.
func errorState(err error) program.State {
	var f *stateError
	switch {
	case errors.As(err, &f):
		return f.state
	case errors.Is(err, format.ErrUnsupported), errors.Is(err, format.ErrLimit):
		return program.NoSupport
	}
	return program.BadData
}
