// Package tensors writes values at their place in the tensors of a mini-batch: dense columns, labels, and the ids of
// keys with their lengths and weights. A null or a number that a tensor does not take is an error with the row.
//
// An [Output] belongs to one goroutine. It writes only inside the output range that [Output.LayOut] was given.
package tensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/bfloat16"
	"github.com/millrace/millrace/fpga/unit/fillnan"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

var littleEndian = binary.LittleEndian

// Output is the tensors in the output range that a slice writes, each cut to its size.
type Output struct {
	rows, width  uint64 // rows of the mini-batch; columns of dense
	Fixed        bool   // Every key has one id a row, and no lengths.
	ids32        bool
	denseBytes   uint64 // bytes of an element of dense: 4, or 2 for bfloat16
	dense        []byte
	lengths      []byte // empty when fixed
	label        []byte
	values       []byte
	weights      []byte    // empty without weights
	Capacity     uint64    // The elements that values has room for.
	Written      uint64    // The elements of values that are written, those of earlier slices included.
	BytesWritten uint64    // The bytes that this slice has written.
	denseTile    denseTile // values of dense that are not yet in dense
}

// Place is a tensor, and where in it the values of a chain go.
type Place struct {
	Tensor  program.Dest
	Index   uint32 // The column of dense, or the key.
	Refuses program.Refusal
	Classes uint32          // The columns of a one-hot encoding, else 0.
	Length  block.RowLength // The columns of lists that become columns of dense.
}

// Keys is keys of the output that follow each other.
type Keys struct {
	first uint32
	Count int
}

// AddPlace adds the key that a place is, if it is one. It is the next key.
func (k *Keys) AddPlace(s *Place) {
	if s.Tensor != program.ToSparse {
		return
	}
	if k.Count == 0 {
		k.first = s.Index
	}
	k.Count++
}

// LayOut finds the tensors in the output range.
func (o *Output) LayOut(mem []byte, s *program.Slice, out *program.Output) error {
	rows := uint64(s.Rows)
	*o = Output{denseTile: denseTile{values: o.denseTile.values}, rows: rows, width: uint64(out.Dense),
		Fixed: out.Fixed, ids32: out.IDs == program.IDs32, denseBytes: out.DenseType.Bytes(), Capacity: s.ValueCap,
		Written: s.Values}
	cut := func(to *[]byte, off, size uint64, name string) error {
		b, ok := program.Span{Off: off, Len: size}.In(mem)
		if !ok || off%program.Align != 0 {
			return failure.Slice("%s at %d, %d bytes, in an output range of %d (alignment %d)", name, off, size, len(mem),
				program.Align)
		}
		*to = b
		return nil
	}
	if out.Dense > 0 {
		if err := cut(&o.dense, s.Layout.Dense, rows*uint64(out.Dense)*o.denseBytes, "dense"); err != nil {
			return err
		}
	}
	if out.Keys > 0 && !out.Fixed {
		if err := cut(&o.lengths, s.Layout.Lengths, rows*uint64(out.Keys)*4, "lengths"); err != nil {
			return err
		}
	}
	if out.Label {
		if err := cut(&o.label, s.Layout.Label, rows*4, "label"); err != nil {
			return err
		}
	}
	if s.ValueCap > uint64(len(mem))/out.IDs.Bytes() {
		return failure.Slice("%d values in an output range of %d bytes", s.ValueCap, len(mem))
	}
	if s.Values > s.ValueCap {
		return failure.Slice("%d values written, there is room for %d", s.Values, s.ValueCap)
	}
	if out.Weights {
		if s.ValueCap > uint64(len(mem))/4 {
			return failure.Slice("%d weights in an output range of %d bytes", s.ValueCap, len(mem))
		}
		if err := cut(&o.weights, s.Layout.Weights, s.ValueCap*4, "weights"); err != nil {
			return err
		}
	}
	if out.Keys > 0 {
		return cut(&o.values, s.Layout.Values, s.ValueCap*out.IDs.Bytes(), "values")
	}
	return nil
}

// StoreScalars writes v to its place, as rows row, row+1, ... of the mini-batch. Lists become columns of
// dense.
func (o *Output) StoreScalars(s *Place, row uint64, v *block.Values) error {
	switch s.Tensor {
	case program.ToSparse:
		return o.storeSparse(uint64(s.Index), row, v)
	case program.ToDense:
		if s.Length.Length > 0 {
			return o.storeDenseLists(s, row, v)
		}
		if s.Classes > 0 {
			o.storeOneHot(uint64(s.Index), row, v, s.Classes)
			return nil
		}
		if err := rejectNulls(row, v, "dense"); err != nil {
			return err
		}
		if i := s.findRefused(v.Float32s[:v.Count]); i >= 0 {
			return s.refusedError(row+uint64(i), v.Float32s[i])
		}
		o.storeDense(uint64(s.Index), row, v.Float32s[:v.Count])
		o.BytesWritten += o.denseBytes * uint64(v.Count)
	default:
		if err := rejectNulls(row, v, "label"); err != nil {
			return err
		}
		if i := s.findRefused(v.Float32s[:v.Count]); i >= 0 {
			return s.refusedError(row+uint64(i), v.Float32s[i])
		}
		scatter(o.label[4*row:], 4, v.Float32s[:v.Count])
		o.BytesWritten += 4 * uint64(v.Count)
	}
	return nil
}

// scatter writes values stride bytes apart.
func scatter(dst []byte, stride int, src []float32) {
	at := 0
	for _, x := range src {
		littleEndian.PutUint32(dst[at:], math.Float32bits(x))
		at += stride
	}
}

// scatterBFloat16 writes values, rounded to bfloat16, stride bytes apart.
func scatterBFloat16(dst []byte, stride int, src []float32) {
	at := 0
	for _, x := range src {
		littleEndian.PutUint16(dst[at:], bfloat16.Round(x))
		at += stride
	}
}

// rejectNulls returns an error if v has a null: the tensor takes none.
func rejectNulls(row uint64, v *block.Values, tensor string) error {
	if v.Valid != nil {
		if i := bytes.IndexByte(v.Valid[:v.Count], 0); i >= 0 {
			return failure.Data("row %d of the mini-batch is null and reaches %s: fill_null it", row+uint64(i), tensor)
		}
	}
	return nil
}

// findRefused returns the index of the first value that the place refuses, or -1.
func (s *Place) findRefused(values []float32) int {
	switch s.Refuses {
	case program.RefusesNaN:
		return fillnan.FindNaN(values)
	case program.RefusesNonFinite:
		return fillnan.FindNonFinite(values)
	}
	return -1
}

// refusedError returns the error for a value of a row that the place refuses.
func (s *Place) refusedError(row uint64, value float32) error {
	what := "an infinity"
	if value != value {
		what = "a NaN"
	}
	if s.Tensor == program.ToLabel {
		return failure.Data("the label of row %d of the mini-batch is %s: write label: {nan: VALUE} with the value that "+
			"a row with a NaN is to have, and bound infinities with clamp, or filter the rows", row, what)
	}
	return failure.Data("dense column %d of row %d of the mini-batch is %s: put fill_nan last, or write nan: keep",
		s.Index, row, what)
}

// storeSparse writes a scalar's ids. A null has no id. The check (outputFits) has made sure that the output has
// room.
func (o *Output) storeSparse(key, row uint64, v *block.Values) error {
	if o.Fixed {
		if err := rejectNulls(row, v, "a key whose lengths are all 1"); err != nil {
			return err
		}
		return o.storeIDs(o.ScalarIndex(key, row), row, v, v.Count)
	}
	lengths := o.lengths[4*(key*o.rows+row):]
	kept := v.Count
	if v.Valid == nil {
		repeatWord(lengths[:4*v.Count], 1)
	} else {
		kept = 0
		src := v.Int64s[:v.Count]
		for i, ok := range v.Valid[:v.Count] {
			littleEndian.PutUint32(lengths[4*i:], uint32(ok))
			// The next value overwrites a null.
			src[kept] = src[i]
			kept += int(ok)
		}
	}
	o.BytesWritten += 4 * uint64(v.Count)
	if err := o.storeIDs(o.Written, row, v, kept); err != nil {
		return err
	}
	o.storeUnitWeights(o.Written, kept)
	o.Written += uint64(kept)
	return nil
}

// StoreLists writes as many whole rows of a list as fit, with the weights of their ids; without weights every id weighs
// 1. It returns the number of these rows, and the number of elements that the output needs for all rows.
func (o *Output) StoreLists(key, row uint64, v *block.Values, weights []float32) (rows int, need uint64, err error) {
	rows, fit := len(v.Lengths), v.Count
	need = uint64(v.Count)
	if need > o.Capacity-o.Written {
		rows, fit = 0, 0
		for _, l := range v.Lengths {
			if uint64(fit)+uint64(l) > o.Capacity-o.Written {
				break
			}
			rows++
			fit += int(l)
		}
	}
	copy(o.lengths[4*(key*o.rows+row):], bytesOf(v.Lengths[:rows]))
	if err := o.storeIDs(o.Written, row, v, fit); err != nil {
		return 0, 0, err
	}
	if weights != nil {
		o.storeWeights(o.Written, weights[:fit])
	} else {
		o.storeUnitWeights(o.Written, fit)
	}
	need += o.Written
	o.Written += uint64(fit)
	o.BytesWritten += 4 * uint64(rows)
	return rows, need, nil
}

// HasWeights reports whether ids have weights.
func (o *Output) HasWeights() bool { return len(o.weights) > 0 }

// ScalarIndex returns the element at which a key's scalars from row on are written.
func (o *Output) ScalarIndex(key, row uint64) uint64 {
	if o.Fixed {
		return key*o.rows + row
	}
	return o.Written
}

// idMemory returns the memory of n ids from element at on, to be written directly; nil if ids do not have 64 bits, or
// there is no room.
func (o *Output) idMemory(at uint64, n int) []int64 {
	if o.ids32 || at > o.Capacity || uint64(n) > o.Capacity-at || !IsAligned(o.values) {
		return nil
	}
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(o.values))), o.Capacity)[at:][:n]
}

// id32Memory is idMemory for ids of 32 bits.
func (o *Output) id32Memory(at uint64, n int) []byte {
	if !o.ids32 || at > o.Capacity || uint64(n) > o.Capacity-at {
		return nil
	}
	return o.values[4*at:][:4*n]
}

// IDDestination returns the destination of n ids from element at on.
func (o *Output) IDDestination(at uint64, n int) block.Destination {
	return block.Destination{IDs: o.idMemory(at, n), IDs32: o.id32Memory(at, n)}
}

// storeIDs writes the first n ids of v from element at on, unless an operator has written them there.
func (o *Output) storeIDs(at, row uint64, v *block.Values, n int) error {
	if o.ids32 {
		o.BytesWritten += 4 * uint64(n)
		if v.InTensor {
			return nil
		}
		ids := v.Int64s[:n]
		if fit := zeroextend.Narrow(o.values[4*at:][:4*n], ids); fit < n {
			return failure.Data("id %d (near row %d of the mini-batch) does not fit int32: use ids: int64", ids[fit], row)
		}
		return nil
	}
	o.BytesWritten += 8 * uint64(n)
	ids := v.Int64s[:n]
	if dst := o.idMemory(at, n); n > 0 && (dst == nil || &dst[0] != &ids[0]) {
		copy(o.values[8*at:][:8*n], bytesOf(ids))
	}
	return nil
}

// storeUnitWeights writes weights of 1 from element at on, if the output has weights.
func (o *Output) storeUnitWeights(at uint64, n int) {
	if len(o.weights) > 0 {
		repeatWord(o.weights[4*at:][:4*n], math.Float32bits(1))
		o.BytesWritten += 4 * uint64(n)
	}
}

// bytesOf returns the memory of v, which is little-endian.
func bytesOf[T int32 | int64](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// repeatWord fills dst, whose length is a multiple of 4, with x.
func repeatWord(dst []byte, x uint32) {
	if len(dst) == 0 {
		return
	}
	littleEndian.PutUint32(dst, x)
	for n := 4; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// LocateAbsentKey completes an error of a chain that ends at the place, if it is about an absent key. The chain was
// given values from row first of the mini-batch on.
func (s *Place) LocateAbsentKey(err error, first uint64) {
	if e := (*block.AbsentKeyError)(nil); errors.As(err, &e) && s.Tensor == program.ToSparse && !e.Located.Given {
		e.Located = program.AbsentKey{Given: true, Row: uint32(first) + uint32(e.Row), Key: s.Index, Value: e.Key}
	}
}

// IsAligned reports whether b begins at a multiple of 8 bytes.
func IsAligned(b []byte) bool {
	return len(b) == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%8 == 0
}
