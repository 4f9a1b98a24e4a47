package block

// RowError is an error of a step about the value of one row.
type RowError struct {
	Row int // Row is the row of the block.
	Err error
}

// Error implements error. The engine says which row of the mini-batch it is.
func (e *RowError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the row.
func (e *RowError) Unwrap() error { return e.Err }
