package engine

import (
	"bytes"
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

var le = binary.LittleEndian

// tensors are the places in the output range that a slice writes, each cut to its size.
type tensors struct {
	rows, width uint64 // of the mini-batch; of dense
	fixed       bool
	ids32       bool
	dense       []byte
	lengths     []byte // empty when fixed
	label       []byte
	values      []byte
	weights     []byte // empty without weights
	capacity    uint64 // elements
	written     uint64 // elements, earlier slices included
	bytes       uint64 // written by this slice
	tile        tile   // of dense, not yet written
}

// place cuts the tensors out of the output range.
func (o *tensors) place(mem []byte, s *program.Slice, out *program.Output) error {
	rows := uint64(s.Rows)
	*o = tensors{tile: tile{values: o.tile.values}, rows: rows, width: uint64(out.Dense), fixed: out.Fixed, ids32: out.IDs == program.IDs32, capacity: s.ValueCap, written: s.Values}
	cut := func(to *[]byte, off, size uint64, name string) error {
		b, ok := sub(mem, program.Span{Off: off, Len: size})
		if !ok || off%program.Align != 0 {
			return badSlice("%s at %d, %d bytes, in an output range of %d (alignment %d)", name, off, size, len(mem), program.Align)
		}
		*to = b
		return nil
	}
	if out.Dense > 0 {
		if err := cut(&o.dense, s.Place.Dense, rows*uint64(out.Dense)*4, "dense"); err != nil {
			return err
		}
	}
	if out.Keys > 0 && !out.Fixed {
		if err := cut(&o.lengths, s.Place.Lengths, rows*uint64(out.Keys)*4, "lengths"); err != nil {
			return err
		}
	}
	if out.Label {
		if err := cut(&o.label, s.Place.Label, rows*4, "label"); err != nil {
			return err
		}
	}
	if s.ValueCap > uint64(len(mem))/out.IDs.Bytes() {
		return badSlice("%d values in an output range of %d bytes", s.ValueCap, len(mem))
	}
	if s.Values > s.ValueCap {
		return badSlice("%d values written, there is room for %d", s.Values, s.ValueCap)
	}
	if out.Weights {
		if s.ValueCap > uint64(len(mem))/4 {
			return badSlice("%d weights in an output range of %d bytes", s.ValueCap, len(mem))
		}
		if err := cut(&o.weights, s.Place.Weights, s.ValueCap*4, "weights"); err != nil {
			return err
		}
	}
	if out.Keys > 0 {
		return cut(&o.values, s.Place.Values, s.ValueCap*out.IDs.Bytes(), "values")
	}
	return nil
}

// store writes v to the tensor of a sink, as rows row, row+1, ... of the mini-batch.
func (o *tensors) store(s *sink, row uint64, v *vec) error {
	switch s.to {
	case program.ToSparse:
		return o.sparse(uint64(s.index), row, v)
	case program.ToDense:
		if err := noNull(row, v, "dense"); err != nil {
			return err
		}
		o.putDense(uint64(s.index), row, v.f32[:v.n])
	default:
		if err := noNull(row, v, "label"); err != nil {
			return err
		}
		scatter(o.label[4*row:], 4, v.f32[:v.n])
	}
	o.bytes += 4 * uint64(v.n)
	return nil
}

// scatter writes values stride bytes apart.
func scatter(dst []byte, stride int, src []float32) {
	at := 0
	for _, x := range src {
		le.PutUint32(dst[at:], math.Float32bits(x))
		at += stride
	}
}

func noNull(row uint64, v *vec, tensor string) error {
	if v.valid != nil {
		if i := bytes.IndexByte(v.valid[:v.n], 0); i >= 0 {
			return badData("row %d of the mini-batch is null and reaches %s: fill_null it", row+uint64(i), tensor)
		}
	}
	return nil
}

// sparse writes a scalar's values; of a null there is none. Room for all of them was checked.
func (o *tensors) sparse(key, row uint64, v *vec) error {
	if o.fixed {
		if err := noNull(row, v, "a key whose lengths are all 1"); err != nil {
			return err
		}
		return o.putIDs(o.at(key, row), row, v, v.n)
	}
	lengths := o.lengths[4*(key*o.rows+row):]
	kept := v.n
	if v.valid == nil {
		repeat32(lengths[:4*v.n], 1)
	} else {
		kept = 0
		src := v.i64[:v.n]
		for i, ok := range v.valid[:v.n] {
			le.PutUint32(lengths[4*i:], uint32(ok))
			// A null's slot is overwritten by the next value.
			src[kept] = src[i]
			kept += int(ok)
		}
	}
	o.bytes += 4 * uint64(v.n)
	if err := o.putIDs(o.written, row, v, kept); err != nil {
		return err
	}
	o.putOnes(o.written, kept)
	o.written += uint64(kept)
	return nil
}

// lists writes as many whole rows of a list as fit and returns how many, and how many elements all of them want.
func (o *tensors) lists(key, row uint64, v *vec) (rows int, want uint64, err error) {
	rows, fit := len(v.lengths), v.n
	want = uint64(v.n)
	if want > o.capacity-o.written {
		rows, fit = 0, 0
		for _, l := range v.lengths {
			if uint64(fit)+uint64(l) > o.capacity-o.written {
				break
			}
			rows++
			fit += int(l)
		}
	}
	copy(o.lengths[4*(key*o.rows+row):], bytesOf(v.lengths[:rows]))
	if err := o.putIDs(o.written, row, v, fit); err != nil {
		return 0, 0, err
	}
	o.putOnes(o.written, fit)
	want += o.written
	o.written += uint64(fit)
	o.bytes += 4 * uint64(rows)
	return rows, want, nil
}

// at is where the values of a key's scalars from row on go.
func (o *tensors) at(key, row uint64) uint64 {
	if o.fixed {
		return key*o.rows + row
	}
	return o.written
}

// ids is the memory of n ids from element at on, to be written in place; nil where ids are not 64 bits wide, or there
// is no room.
func (o *tensors) ids(at uint64, n int) []int64 {
	if o.ids32 || at > o.capacity || uint64(n) > o.capacity-at || !aligned(o.values) {
		return nil
	}
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(o.values))), o.capacity)[at:][:n]
}

// narrowIDs is the same of ids of 32 bits.
func (o *tensors) narrowIDs(at uint64, n int) []byte {
	if !o.ids32 || at > o.capacity || uint64(n) > o.capacity-at {
		return nil
	}
	return o.values[4*at:][:4*n]
}

// idRoom is the place of n ids from element at on.
func (o *tensors) idRoom(at uint64, n int) place {
	return place{ids: o.ids(at, n), narrow: o.narrowIDs(at, n)}
}

// putIDs writes the first n ids of v from element at on, if they are not there.
func (o *tensors) putIDs(at, row uint64, v *vec, n int) error {
	if o.ids32 {
		o.bytes += 4 * uint64(n)
		if v.placed {
			return nil
		}
		ids := v.i64[:n]
		if fit := zeroextend.Narrow(o.values[4*at:][:4*n], ids); fit < n {
			return badData("id %d (near row %d of the mini-batch) does not fit int32: use ids: int64", ids[fit], row)
		}
		return nil
	}
	o.bytes += 8 * uint64(n)
	ids := v.i64[:n]
	if dst := o.ids(at, n); n > 0 && (dst == nil || &dst[0] != &ids[0]) {
		copy(o.values[8*at:][:8*n], bytesOf(ids))
	}
	return nil
}

// putOnes writes weights of 1 from element at on, where there are weights.
func (o *tensors) putOnes(at uint64, n int) {
	if len(o.weights) > 0 {
		repeat32(o.weights[4*at:][:4*n], math.Float32bits(1))
		o.bytes += 4 * uint64(n)
	}
}

// bytesOf is the memory of v, on a little-endian machine.
func bytesOf[T int32 | int64](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}

// repeat32 fills dst, which holds whole numbers, with x.
func repeat32(dst []byte, x uint32) {
	if len(dst) == 0 {
		return
	}
	le.PutUint32(dst, x)
	for n := 4; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
