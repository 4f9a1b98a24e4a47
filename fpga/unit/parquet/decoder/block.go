package decoder

import (
	"slices"
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Block holds decoded rows of one column. The caller owns it; Next appends to its slices and Reset empties them,
// keeping their memory. Only the slices of its Kind are used.
//
// An element is a value or a null. A flat column has one element a row. A list has Lengths[i] elements in row i, in row
// order; a null list and an empty one have none. An element that is null holds 0, or no bytes.
type Block struct {
	Kind format.Kind
	Rows int
	I64  []int64
	F32  []float32
	F64  []float64
	// Offsets cut Data: element i is Data[Offsets[i]:Offsets[i+1]]. There is one more than elements, or none before the
	// first row.
	Offsets []uint32
	Data    []byte
	// Valid has a byte an element, 1 for a value and 0 for a null, if ColumnType.NullableValues; else it is empty.
	Valid []byte
	// RowValid has a byte a row, 1 for a list and 0 for a null, if ColumnType.NullableRows; else it is empty.
	RowValid []byte
	Lengths  []int32 // lists, and lists in lists: elements of each row; lists in a map: entries of each row
	Inner    []int32 // lists in a map: elements of each entry, none of a null or empty list
	Nulls    int     // zeros in Valid
	NullRows int     // zeros in RowValid

	// MaxValues bounds the elements, and the rows. MaxData bounds the bytes of Data. 0 means the defaults. Decoding
	// that would pass a bound fails with ErrLimit.
	MaxValues int // default DefaultMaxValues
	MaxData   int // default DefaultMaxData; at most 4 GiB - 1

	// Lend allows I64, F32 and F64 to be the page's own bytes, where values are PLAIN and none is null. Lent reports
	// that they are. Lent values must not be written, may begin at any address, and are valid as long as the page is.
	Lend, Lent bool

	ownMemory ownMemory // the block's own memory, while values are lent
}

// ownMemory is memory that a block keeps for its own values while values are lent.
type ownMemory struct {
	int64s   []int64
	float32s []float32
	float64s []float64
}

// The bounds of a Block that sets none.
const (
	DefaultMaxValues = 1 << 24
	DefaultMaxData   = 1 << 26
)

// Reset empties the block for values of kind k and keeps its memory and its bounds.
func (b *Block) Reset(k format.Kind) {
	b.returnLent()
	b.Kind, b.Rows, b.Nulls, b.NullRows = k, 0, 0, 0
	b.I64, b.F32, b.F64 = b.I64[:0], b.F32[:0], b.F64[:0]
	b.Offsets, b.Data = b.Offsets[:0], b.Data[:0]
	b.Valid, b.RowValid, b.Lengths, b.Inner = b.Valid[:0], b.RowValid[:0], b.Lengths[:0], b.Inner[:0]
}

// returnLent replaces lent values by the block's own memory, which is empty.
func (b *Block) returnLent() {
	if b.Lent {
		b.I64, b.F32, b.F64, b.Lent = b.ownMemory.int64s, b.ownMemory.float32s, b.ownMemory.float64s, false
		b.ownMemory = ownMemory{}
	}
}

// copyLent copies lent values into the block's own memory.
func (b *Block) copyLent() {
	if !b.Lent {
		return
	}
	i64, f32, f64 := b.I64, b.F32, b.F64
	b.returnLent()
	b.I64, b.F32, b.F64 = append(b.I64[:0], i64...), append(b.F32[:0], f32...), append(b.F64[:0], f64...)
}

// lendValues makes the first n values of src the block's. The block must have no values, or a view that ends where src
// begins; ok is false otherwise.
func lendValues[T fixedWidth](b *Block, values *[]T, src []byte, n int) (ok bool) {
	if !b.Lend || (len(*values) > 0 && !b.Lent) {
		return false
	}
	first := unsafe.Pointer(unsafe.SliceData(src))
	if have := len(*values); have > 0 {
		size := unsafe.Sizeof((*values)[0])
		first = unsafe.Pointer(unsafe.SliceData(*values))
		if unsafe.Add(first, uintptr(have)*size) != unsafe.Pointer(unsafe.SliceData(src)) {
			return false
		}
		n += have
	}
	if !b.Lent {
		b.ownMemory = ownMemory{b.I64, b.F32, b.F64}
		b.I64, b.F32, b.F64, b.Lent = nil, nil, nil, true
	}
	*values = unsafe.Slice((*T)(first), n)
	return true
}

// WidenToFloat64 makes a block of float64 of a block of float32. Rows can be appended again after Reset.
func (b *Block) WidenToFloat64() {
	if b.Kind != format.KindFloat32 {
		return
	}
	values := b.F32
	b.returnLent()
	b.F64 = growSlice(b.F64[:0], len(values))
	convert.Float32ToFloat64(b.F64, values)
	b.Kind = format.KindFloat64
}

// Values is the number of elements in the block.
func (b *Block) Values() int {
	switch b.Kind {
	case format.KindInt64:
		return len(b.I64)
	case format.KindFloat32:
		return len(b.F32)
	case format.KindFloat64:
		return len(b.F64)
	}
	return max(0, len(b.Offsets)-1)
}

// Bytes is element i of a block of bytes.
func (b *Block) Bytes(i int) []byte { return b.Data[b.Offsets[i]:b.Offsets[i+1]] }

// blockMark is a block's state, to which the block returns when decoding fails half way.
type blockMark struct {
	rows, nulls, nullRows                  int
	values, data, valid, rowValid, lengths int
	inner                                  int
	lastLength, lastInner                  int32
}

// mark returns the block's state.
func (b *Block) mark() blockMark {
	m := blockMark{rows: b.Rows, nulls: b.Nulls, nullRows: b.NullRows, values: b.Values(), data: len(b.Data),
		valid: len(b.Valid), rowValid: len(b.RowValid), lengths: len(b.Lengths), inner: len(b.Inner)}
	if m.lengths > 0 {
		m.lastLength = b.Lengths[m.lengths-1]
	}
	if m.inner > 0 {
		m.lastInner = b.Inner[m.inner-1]
	}
	return m
}

// rollback returns the block to a state.
func (b *Block) rollback(m blockMark) {
	b.Rows, b.Nulls, b.NullRows = m.rows, m.nulls, m.nullRows
	switch b.Kind {
	case format.KindInt64:
		b.I64 = b.I64[:m.values]
	case format.KindFloat32:
		b.F32 = b.F32[:m.values]
	case format.KindFloat64:
		b.F64 = b.F64[:m.values]
	case format.KindBytes:
		b.Offsets, b.Data = b.Offsets[:min(len(b.Offsets), m.values+1)], b.Data[:m.data]
	}
	b.Valid, b.RowValid = b.Valid[:m.valid], b.RowValid[:m.rowValid]
	b.Lengths, b.Inner = b.Lengths[:m.lengths], b.Inner[:m.inner]
	if m.lengths > 0 {
		b.Lengths[m.lengths-1] = m.lastLength
	}
	if m.inner > 0 {
		b.Inner[m.inner-1] = m.lastInner
	}
}

func (b *Block) maxValues() int {
	if b.MaxValues > 0 {
		return b.MaxValues
	}
	return DefaultMaxValues
}

func (b *Block) maxData() int {
	if b.MaxData > 0 {
		return min(b.MaxData, 1<<32-1)
	}
	return DefaultMaxData
}

// growSlice lengthens s by n and returns all of it. The new elements are not cleared.
func growSlice[T any](s []T, n int) []T {
	return slices.Grow(s, n)[:len(s)+n]
}
