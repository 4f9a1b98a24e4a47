package engine

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// fault is an error that ends a slice in a certain state.
type fault struct {
	state program.State
	err   error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func badSlice(format string, args ...any) error {
	return &fault{program.BadSlice, fmt.Errorf("slice: "+format, args...)}
}

func badData(format string, args ...any) error {
	return &fault{program.BadData, fmt.Errorf(format, args...)}
}

// badPage is badData of pages that contradict themselves or the footer.
func badPage(message string, args ...any) error {
	return &fault{program.BadData, format.Corrupt(message, args...)}
}

// stateOf is the state that an error ends a slice in: what it says itself, else NoSupport for what a unit does not read
// and BadData for the rest, which the column's bytes brought about.
func stateOf(err error) program.State {
	var f *fault
	switch {
	case errors.As(err, &f):
		return f.state
	case errors.Is(err, format.ErrUnsupported), errors.Is(err, format.ErrLimit):
		return program.NoSupport
	}
	return program.BadData
}
