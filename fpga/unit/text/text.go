package text

import (
	"errors"
	"fmt"
)

const (
	// Dense is the number of dense features of a row.
	Dense = 13
	// Sparse is the number of sparse features of a row.
	Sparse = 26
	// MaxLine is the most bytes a line may have before its LF, malformed or not. A well-formed line has at most 401.
	MaxLine = 64 << 10
	// BinaryRow is the size of a binary row in bytes.
	BinaryRow = 4 * (1 + Dense + Sparse)
)

// Policy says what a malformed row leads to.
type Policy uint8

// The policies.
const (
	Fail Policy = iota // a *RowError
	Drop               // the row is left out and counted
	Null               // a malformed cell becomes null; a line with a wrong number of fields becomes a row of nulls
)

// Options say how lines are read. The zero value reads 40 fields and fails at the first malformed row.
type Options struct {
	Policy      Policy
	LabelAbsent bool // 39 fields: there is no label
}

// Position is a row boundary in a partition. The zero value is its start.
type Position struct {
	Offset int64 // bytes before it
	Line   int64 // lines before it, empty and dropped ones too; for binary rows, rows
}

// Columns are the buffers that rows are decoded into: a slice a column, the same index a row. A nil slice of values
// means that the column is checked and not kept; a nil slice of validity, that it is not wanted. Nulls hold 0.
type Columns struct {
	Label       []int64
	LabelValid  []byte
	Dense       [Dense][]int64
	DenseValid  [Dense][]byte
	Sparse      [Sparse][]int64
	SparseValid [Sparse][]byte
}

// NewColumns returns buffers for rows rows of every column.
func NewColumns(rows int) *Columns {
	const n = 1 + Dense + Sparse
	values, valid := make([]int64, n*rows), make([]byte, n*rows)
	c := new(Columns)
	next := func(v *[]int64, ok *[]byte) {
		*v, values = values[:rows:rows], values[rows:]
		*ok, valid = valid[:rows:rows], valid[rows:]
	}
	next(&c.Label, &c.LabelValid)
	for i := range c.Dense {
		next(&c.Dense[i], &c.DenseValid[i])
	}
	for i := range c.Sparse {
		next(&c.Sparse[i], &c.SparseValid[i])
	}
	return c
}

// Counts are the numbers of dropped, empty and nulled lines of a call.
type Counts struct {
	Dropped int64 // malformed lines left out, under Drop
	Blank   int64 // empty lines
	Nulled  int64 // malformed rows that were kept with nulls, under Null
}

// Result is the outcome of one call.
type Result struct {
	Rows     int  // rows written
	Consumed int  // bytes of the window done with: the next window begins there
	More     bool // fewer rows than asked for, and the window is not final: a longer one may hold more
	Counts
}

// These errors say what is wrong with a row, a line or a call. A *RowError wraps one of the first six.
var (
	ErrFieldCount  = errors.New("wrong number of fields")
	ErrLabel       = errors.New("label is not an integer from -2147483648 to 2147483647 in 1 to 10 decimal digits")
	ErrDecimal     = errors.New("not an integer from -2147483648 to 2147483647 in 1 to 10 decimal digits")
	ErrHex         = errors.New("not 1 to 8 hexadecimal digits")
	ErrLineTooLong = errors.New("line is longer than 65536 bytes")
	ErrPartialRow  = errors.New("data ends inside a binary row")
	ErrOptions     = errors.New("unknown policy")
	ErrColumns     = errors.New("buffers are too short")
)

// RowError names a row that is malformed.
type RowError struct {
	Line   int64 // from 1; for binary rows the row, from 1
	Offset int64 // Offset is where the line begins in the partition.
	Field  int   // Field counts from 0 in the line; -1 is the whole line.
	Name   string
	Err    error
}

func (e *RowError) Error() string {
	if e.Field < 0 {
		return fmt.Sprintf("criteo row: line %d (byte %d): %v", e.Line, e.Offset, e.Err)
	}
	return fmt.Sprintf("criteo row: line %d (byte %d): field %d (%s): %v", e.Line, e.Offset, e.Field, e.Name, e.Err)
}

// Unwrap returns the kind of error.
func (e *RowError) Unwrap() error { return e.Err }
