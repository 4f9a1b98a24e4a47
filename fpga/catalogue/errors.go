package catalogue

import "errors"

// The kinds of errors that an entry reports.
var (
	ErrMissing     = errors.New("missing")               // Something that has no default.
	ErrValue       = errors.New("wrong value")           // Of the wrong type or out of range.
	ErrUnsupported = errors.New("column cannot be read") // Of a type or encoding that no unit decodes.
	ErrColumnType  = errors.New("wrong type of column")  // For the operator or the tensor.
)
