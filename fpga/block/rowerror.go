package block

import "errors"

// RowError is an error of a step about the value of one row.
type RowError struct {
	Row int // Row is the row of the block.
	Err error
}

// Error implements error. The engine says which row of the mini-batch it is.
func (e *RowError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the row.
func (e *RowError) Unwrap() error { return e.Err }

// ValueError is an error of a unit about one value of a column.
type ValueError interface {
	error
	ValueIndex() int // ValueIndex returns the value's place in the column, from 0.
}

// rowError adds to the error of a unit which row of v it is about, if the unit says which value.
func (v *Values) rowError(err error) error {
	var at ValueError
	if errors.As(err, &at) {
		return &RowError{Row: v.RowOf(at.ValueIndex()), Err: err}
	}
	return err
}
