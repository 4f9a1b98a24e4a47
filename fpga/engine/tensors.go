package engine

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/bfloat16"
	"github.com/millrace/millrace/fpga/unit/fillnan"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

var littleEndian = binary.LittleEndian

// tensors are the places in the output range that a slice writes, each cut to its size.
type tensors struct {
	rows, width  uint64 // rows of the mini-batch; columns of dense
	fixed        bool
	ids32        bool
	denseBytes   uint64 // bytes of an element of dense: 4, or 2 for bfloat16
	dense        []byte
	lengths      []byte // empty when fixed
	label        []byte
	values       []byte
	weights      []byte    // empty without weights
	capacity     uint64    // elements of values
	written      uint64    // elements of values, those of earlier slices included
	bytesWritten uint64    // by this slice
	denseTile    denseTile // values of dense that are not yet in dense
}

// layOutTensors finds the tensors in the output range.
func (o *tensors) layOutTensors(mem []byte, s *program.Slice, out *program.Output) error {
	rows := uint64(s.Rows)
	*o = tensors{denseTile: denseTile{values: o.denseTile.values}, rows: rows, width: uint64(out.Dense),
		fixed: out.Fixed, ids32: out.IDs == program.IDs32, denseBytes: out.DenseType.Bytes(), capacity: s.ValueCap,
		written: s.Values}
	cut := func(to *[]byte, off, size uint64, name string) error {
		b, ok := spanBytes(mem, program.Span{Off: off, Len: size})
		if !ok || off%program.Align != 0 {
			return sliceError("%s at %d, %d bytes, in an output range of %d (alignment %d)", name, off, size, len(mem),
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
		return sliceError("%d values in an output range of %d bytes", s.ValueCap, len(mem))
	}
	if s.Values > s.ValueCap {
		return sliceError("%d values written, there is room for %d", s.Values, s.ValueCap)
	}
	if out.Weights {
		if s.ValueCap > uint64(len(mem))/4 {
			return sliceError("%d weights in an output range of %d bytes", s.ValueCap, len(mem))
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

// storeScalars writes v to the tensor of a sink, as rows row, row+1, ... of the mini-batch. Lists become columns of
// dense.
func (o *tensors) storeScalars(s *sink, row uint64, v *block.Values) error {
	switch s.tensor {
	case program.ToSparse:
		return o.storeSparse(uint64(s.index), row, v)
	case program.ToDense:
		if s.length.Length > 0 {
			return o.storeDenseLists(s, row, v)
		}
		if s.classes > 0 {
			o.storeOneHot(uint64(s.index), row, v, s.classes)
			return nil
		}
		if err := rejectNulls(row, v, "dense"); err != nil {
			return err
		}
		if i := s.findRefused(v.Float32s[:v.Count]); i >= 0 {
			return s.refusedError(row+uint64(i), v.Float32s[i])
		}
		o.storeDense(uint64(s.index), row, v.Float32s[:v.Count])
		o.bytesWritten += o.denseBytes * uint64(v.Count)
	default:
		if err := rejectNulls(row, v, "label"); err != nil {
			return err
		}
		if i := s.findRefused(v.Float32s[:v.Count]); i >= 0 {
			return s.refusedError(row+uint64(i), v.Float32s[i])
		}
		scatter(o.label[4*row:], 4, v.Float32s[:v.Count])
		o.bytesWritten += 4 * uint64(v.Count)
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
			return dataError("row %d of the mini-batch is null and reaches %s: fill_null it", row+uint64(i), tensor)
		}
	}
	return nil
}

// findRefused returns the index of the first value that the sink refuses, or -1.
func (s *sink) findRefused(values []float32) int {
	switch s.refuses {
	case program.RefusesNaN:
		return fillnan.FindNaN(values)
	case program.RefusesNonFinite:
		return fillnan.FindNonFinite(values)
	}
	return -1
}

// refusedError returns the error for a value of a row that the sink refuses.
func (s *sink) refusedError(row uint64, value float32) error {
	what := "an infinity"
	if value != value {
		what = "a NaN"
	}
	if s.tensor == program.ToLabel {
		return dataError("the label of row %d of the mini-batch is %s: write label: {nan: VALUE} with the value that "+
			"a row with a NaN is to have, and bound infinities with clamp, or filter the rows", row, what)
	}
	return dataError("dense column %d of row %d of the mini-batch is %s: put fill_nan last, or write nan: keep",
		s.index, row, what)
}

// rejectLargeUnsigned returns an error if an unsigned value of a block is 2^63 or more. row is the row of the block's
// first value.
func rejectLargeUnsigned(row uint64, b *decoder.Block) error {
	all := int64(0)
	for _, x := range b.I64 {
		all |= x
	}
	if all >= 0 {
		return nil
	}
	i := slices.IndexFunc(b.I64, func(x int64) bool { return x < 0 })
	return dataError("%d (in or behind row %d of the mini-batch) is an unsigned integer of 2^63 or more, which no "+
		"operator takes as a number: begin with a hash, as hash_bucket, or write the column as float64",
		uint64(b.I64[i]), row)
}

// storeSparse writes a scalar's ids. A null has no id. The check (outputFits) has made sure that the output has
// room.
func (o *tensors) storeSparse(key, row uint64, v *block.Values) error {
	if o.fixed {
		if err := rejectNulls(row, v, "a key whose lengths are all 1"); err != nil {
			return err
		}
		return o.storeIDs(o.scalarIndex(key, row), row, v, v.Count)
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
	o.bytesWritten += 4 * uint64(v.Count)
	if err := o.storeIDs(o.written, row, v, kept); err != nil {
		return err
	}
	o.storeUnitWeights(o.written, kept)
	o.written += uint64(kept)
	return nil
}

// storeLists writes as many whole rows of a list as fit, with the weights of their ids; without weights every id weighs
// 1. It returns the number of these rows, and the number of elements that the output needs for all rows.
func (o *tensors) storeLists(key, row uint64, v *block.Values, weights []float32) (rows int, need uint64, err error) {
	rows, fit := len(v.Lengths), v.Count
	need = uint64(v.Count)
	if need > o.capacity-o.written {
		rows, fit = 0, 0
		for _, l := range v.Lengths {
			if uint64(fit)+uint64(l) > o.capacity-o.written {
				break
			}
			rows++
			fit += int(l)
		}
	}
	copy(o.lengths[4*(key*o.rows+row):], bytesOf(v.Lengths[:rows]))
	if err := o.storeIDs(o.written, row, v, fit); err != nil {
		return 0, 0, err
	}
	if weights != nil {
		o.storeWeights(o.written, weights[:fit])
	} else {
		o.storeUnitWeights(o.written, fit)
	}
	need += o.written
	o.written += uint64(fit)
	o.bytesWritten += 4 * uint64(rows)
	return rows, need, nil
}

// scalarIndex returns the element at which a key's scalars from row on are written.
func (o *tensors) scalarIndex(key, row uint64) uint64 {
	if o.fixed {
		return key*o.rows + row
	}
	return o.written
}

// idMemory returns the memory of n ids from element at on, to be written directly; nil if ids do not have 64 bits, or
// there is no room.
func (o *tensors) idMemory(at uint64, n int) []int64 {
	if o.ids32 || at > o.capacity || uint64(n) > o.capacity-at || !isAligned(o.values) {
		return nil
	}
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(o.values))), o.capacity)[at:][:n]
}

// id32Memory is idMemory for ids of 32 bits.
func (o *tensors) id32Memory(at uint64, n int) []byte {
	if !o.ids32 || at > o.capacity || uint64(n) > o.capacity-at {
		return nil
	}
	return o.values[4*at:][:4*n]
}

// idDestination returns the destination of n ids from element at on.
func (o *tensors) idDestination(at uint64, n int) block.Destination {
	return block.Destination{IDs: o.idMemory(at, n), IDs32: o.id32Memory(at, n)}
}

// storeIDs writes the first n ids of v from element at on, unless an operator has written them there.
func (o *tensors) storeIDs(at, row uint64, v *block.Values, n int) error {
	if o.ids32 {
		o.bytesWritten += 4 * uint64(n)
		if v.InTensor {
			return nil
		}
		ids := v.Int64s[:n]
		if fit := zeroextend.Narrow(o.values[4*at:][:4*n], ids); fit < n {
			return dataError("id %d (near row %d of the mini-batch) does not fit int32: use ids: int64", ids[fit], row)
		}
		return nil
	}
	o.bytesWritten += 8 * uint64(n)
	ids := v.Int64s[:n]
	if dst := o.idMemory(at, n); n > 0 && (dst == nil || &dst[0] != &ids[0]) {
		copy(o.values[8*at:][:8*n], bytesOf(ids))
	}
	return nil
}

// storeUnitWeights writes weights of 1 from element at on, if the output has weights.
func (o *tensors) storeUnitWeights(at uint64, n int) {
	if len(o.weights) > 0 {
		repeatWord(o.weights[4*at:][:4*n], math.Float32bits(1))
		o.bytesWritten += 4 * uint64(n)
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
