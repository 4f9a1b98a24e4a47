package block

import (
	"bytes"

	"github.com/millrace/millrace/fpga/program"
)

// Values are a block of values on its way through operators. Slices of other kinds than Kind are nil.
type Values struct {
	Kind     program.Kind
	Count    int // The number of values, nulls included.
	Int64s   []int64
	Float32s []float32
	Float64s []float64
	Offsets  []uint32 // Offsets has one element more than there are strings of bytes, which lie in Data.
	Data     []byte
	Valid    []byte // Valid has a byte a value, 0 for a null. It is nil if there are no nulls.

	List    bool
	Lengths []int32 // Lengths says how many values each row of lists has.
	// Scores are those of ids in lists, before the chain dropped some of the ids; nil if the values have none.
	Scores []float32

	// The operators may overwrite the slices that they own. Other sinks still read the rest.
	OwnsValues, OwnsValid, OwnsLengths bool

	// InTensor reports that the values are ids of 32 bits that lie in the tensor already, and not in Int64s.
	InTensor bool
}

// RowOf returns the row of the block that a value belongs to.
func (v *Values) RowOf(value int) int {
	if !v.List {
		return value
	}
	for row, n := range v.Lengths {
		if value -= int(n); value < 0 {
			return row
		}
	}
	return 0 // lengths cover all values
}

// RowExtent returns the extent of the values in a row. *start is the first element of the row, and is moved behind its
// last.
func (v *Values) RowExtent(row int, start *int) program.Extent {
	extent := program.Extent{Elements: 1}
	if v.List {
		extent.Elements = uint64(v.Lengths[row])
	}
	at := *start
	*start += int(extent.Elements)
	if v.Kind == program.Bytes && len(v.Offsets) > 0 {
		extent.Bytes = uint64(v.Offsets[*start] - v.Offsets[at])
	}
	return extent
}

// RowsFrom returns the values of some rows of a block. *start is the first element of these rows, and is moved behind
// their last.
func (v *Values) RowsFrom(from, rows int, start *int) Values {
	part := *v
	part.Count = rows
	if v.List {
		part.Lengths, part.Count = v.Lengths[from:][:rows], 0
		for _, l := range part.Lengths {
			part.Count += int(l)
		}
	}
	at, end := *start, *start+part.Count
	*start = end
	switch v.Kind {
	case program.Int64:
		part.Int64s = v.Int64s[at:end]
	case program.Float32:
		part.Float32s = v.Float32s[at:end]
	case program.Float64:
		part.Float64s = v.Float64s[at:end]
	default:
		part.Offsets = v.Offsets[min(at, len(v.Offsets)):min(end+1, len(v.Offsets))]
	}
	if v.Scores != nil {
		part.Scores = v.Scores[at:end]
	}
	if v.Valid != nil {
		if part.Valid = v.Valid[at:end]; bytes.IndexByte(part.Valid, 0) < 0 {
			part.Valid = nil
		}
	}
	return part
}
