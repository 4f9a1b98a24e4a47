package decoder

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// source is how the values section of a page is read.
type source uint8

const (
	fromFixed    source = iota // PLAIN of fixed width
	fromBytes                  // PLAIN byte arrays
	fromBits                   // PLAIN booleans
	fromBoolRuns               // RLE booleans
	fromDict                   // dictionary indices
	fromDelta                  // DELTA_BINARY_PACKED
	fromArrays                 // DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY
	fromSplit                  // BYTE_STREAM_SPLIT
)

// values reads the values that are there, nulls left out, one after another.
type values struct {
	from source
	ct   format.ColumnType
	src  []byte // fromFixed, fromBytes: what is left; fromBits: all
	bit  int    // fromBits
	runs runs   // fromBoolRuns, fromDict
	dict *Dictionary
	idx  [indexBatch]uint32

	delta  delta
	arrays deltaBytes
	split  split
}

// indexBatch is how many dictionary indices are unpacked at a time: they stay in the first cache.
const indexBatch = 1024

func (v *values) reset(ct *format.ColumnType, h *format.PageHeader, b []byte, dict *Dictionary) error {
	e, n := h.Encoding, int(h.NumValues)
	v.ct, v.src, v.bit, v.dict = *ct, b, 0, nil
	switch {
	case e.IsDictionary():
		return v.resetDict(b, dict)
	case e == format.RLE && ct.Physical == format.Boolean:
		if len(b) < 4 {
			return format.Corrupt("booleans without their length")
		}
		size := binary.LittleEndian.Uint32(b)
		if int64(size) > int64(len(b)-4) {
			return format.Corrupt("%d bytes of booleans in %d", size, len(b)-4)
		}
		v.from, v.runs = fromBoolRuns, newRuns(b[4:4+size], 1, 1)
	case e == format.DeltaBinaryPacked && (ct.Physical == format.Int32 || ct.Physical == format.Int64):
		v.from = fromDelta
		var err error
		v.delta, err = newDelta(b, n)
		return err
	case (e == format.DeltaLengthByteArray && ct.Physical == format.ByteArray) || (e == format.DeltaByteArray && ct.Kind() == format.KindBytes):
		v.from = fromArrays
		return v.arrays.reset(b, n, e == format.DeltaByteArray)
	case e == format.ByteStreamSplit && ct.ValueSize() > 0:
		v.from = fromSplit
		var err error
		v.split, err = newSplit(b, ct.ValueSize())
		return err
	case e != format.Plain:
		return &format.UnsupportedError{What: "encoding", Name: fmt.Sprintf("%v of %v", e, ct.Physical)}
	case ct.Physical == format.Boolean:
		v.from = fromBits
	case ct.Physical == format.ByteArray:
		v.from = fromBytes
	default:
		v.from = fromFixed
	}
	return nil
}

func (v *values) resetDict(b []byte, dict *Dictionary) error {
	if dict == nil {
		return format.Corrupt("dictionary indices without a dictionary")
	}
	if dict.kind != v.ct.Kind() {
		return format.Corrupt("dictionary of %v for a column of %v", dict.kind, v.ct.Physical)
	}
	v.from, v.dict, v.runs = fromDict, dict, runs{}
	if len(b) == 0 {
		return nil // a page of nulls may leave out even the width
	}
	if b[0] > 32 {
		return format.Corrupt("dictionary indices of %d bits", b[0])
	}
	v.runs = newRuns(b[1:], uint(b[0]), uint32(1<<b[0]-1))
	return nil
}

// atLeast checks before anything is decoded that n values can be there.
func (v *values) atLeast(n int) error {
	have, need := len(v.src), 0
	switch v.from {
	case fromFixed:
		need = n * v.ct.ValueSize()
	case fromBits:
		need = (n + 7) / 8
	case fromBytes:
		need = 4 * n
	case fromSplit:
		need = n * v.ct.ValueSize()
	case fromDelta:
		return v.delta.atLeast(n)
	case fromArrays:
		return v.arrays.lengths.atLeast(n)
	default:
		return nil
	}
	if need > have {
		return format.Corrupt("%d values need %d bytes, the page has %d", n, need, have)
	}
	return nil
}

// skip moves past n values.
func (v *values) skip(n int) error {
	switch v.from {
	case fromFixed:
		size := n * v.ct.ValueSize()
		if size > len(v.src) {
			return errValuesEnd()
		}
		v.src = v.src[size:]
	case fromBits:
		if v.bit+n > 8*len(v.src) {
			return errValuesEnd()
		}
		v.bit += n
	case fromBytes:
		for ; n > 0; n-- {
			if _, err := v.nextBytes(); err != nil {
				return err
			}
		}
	case fromDelta:
		var dropped [deltaBatch]int64
		for n > 0 {
			k := min(n, deltaBatch)
			if err := v.delta.read(dropped[:k]); err != nil {
				return err
			}
			n -= k
		}
	case fromArrays:
		return v.arrays.next(n, fixedSize(&v.ct), func(_, _ []byte) error { return nil })
	case fromSplit:
		_, err := v.split.take(n)
		return err
	default:
		return v.runs.skip(n)
	}
	return nil
}

func errValuesEnd() error { return format.Corrupt("page ends before its values do") }

// nextBytes takes one PLAIN byte array.
func (v *values) nextBytes() ([]byte, error) {
	if len(v.src) < 4 {
		return nil, errValuesEnd()
	}
	n := binary.LittleEndian.Uint32(v.src)
	if int64(n) > int64(len(v.src)-4) {
		return nil, format.Corrupt("byte array of %d bytes, the page has %d left", n, len(v.src)-4)
	}
	b := v.src[4 : 4+n]
	v.src = v.src[4+n:]
	return b, nil
}

// append decodes n values onto the end of b, without a word about validity.
func (v *values) append(b *Block, n int) error {
	if n == 0 {
		return nil
	}
	if v.from == fromFixed && b.Lend && v.lend(b, n) {
		return nil
	}
	b.keep()
	switch v.ct.Physical {
	case format.Boolean, format.Int32, format.Int64:
		at := len(b.I64)
		b.I64 = extend(b.I64, n)
		return v.ints(b.I64[at:])
	case format.Float:
		at := len(b.F32)
		b.F32 = extend(b.F32, n)
		switch v.from {
		case fromDict:
			return gather(v, b.F32[at:], v.dict.f32)
		case fromSplit:
			return v.split.words4(bitsOf[uint32](b.F32[at:]))
		}
		return v.copyTo(rawBytes(b.F32[at:]))
	case format.Double:
		at := len(b.F64)
		b.F64 = extend(b.F64, n)
		switch v.from {
		case fromDict:
			return gather(v, b.F64[at:], v.dict.f64)
		case fromSplit:
			return v.split.words8(bitsOf[uint64](b.F64[at:]))
		}
		return v.copyTo(rawBytes(b.F64[at:]))
	}
	return v.appendBytes(b, n)
}

// lend hands out the page's own bytes as the next n values, where they are what is wanted.
func (v *values) lend(b *Block, n int) (ok bool) {
	size := n * v.ct.ValueSize()
	if size > len(v.src) {
		return false // the copy will say so
	}
	switch v.ct.Physical {
	case format.Int64:
		ok = lend(b, &b.I64, v.src, n)
	case format.Float:
		ok = lend(b, &b.F32, v.src, n)
	case format.Double:
		ok = lend(b, &b.F64, v.src, n)
	}
	if ok {
		v.src = v.src[size:]
	}
	return ok
}

// ints decodes len(dst) integers or booleans.
func (v *values) ints(dst []int64) error {
	switch {
	case v.from == fromDict:
		return v.gatherInts(dst)
	case v.from == fromBits:
		return v.bits(dst)
	case v.from == fromBoolRuns:
		return v.boolRuns(dst)
	case v.from == fromDelta:
		return v.deltas(dst)
	case v.from == fromSplit:
		return v.split.ints(dst, &v.ct, v.idx[:])
	case v.ct.Physical == format.Int64:
		return v.copyTo(rawBytes(dst))
	}
	if 4*len(dst) > len(v.src) {
		return errValuesEnd()
	}
	if v.ct.Unsigned {
		convert.Uint32ToInt64(dst, v.src)
	} else {
		convert.Int32ToInt64(dst, v.src)
	}
	v.src = v.src[4*len(dst):]
	return nil
}

// deltas decodes DELTA_BINARY_PACKED. The deltas of 32-bit integers wrap at 32 bits.
func (v *values) deltas(dst []int64) error {
	if err := v.delta.read(dst); err != nil {
		return err
	}
	switch {
	case v.ct.Physical == format.Int64:
	case v.ct.Unsigned:
		for i, x := range dst {
			dst[i] = int64(uint32(x))
		}
	default:
		for i, x := range dst {
			dst[i] = int64(int32(x))
		}
	}
	return nil
}

func (v *values) copyTo(dst []byte) error {
	if len(dst) > len(v.src) {
		return errValuesEnd()
	}
	copy(dst, v.src)
	v.src = v.src[len(dst):]
	return nil
}

// bits decodes PLAIN booleans.
func (v *values) bits(dst []int64) error {
	if v.bit+len(dst) > 8*len(v.src) {
		return errValuesEnd()
	}
	for i := range dst {
		dst[i] = int64(v.src[v.bit>>3] >> (v.bit & 7) & 1)
		v.bit++
	}
	return nil
}

// boolRuns decodes RLE booleans.
func (v *values) boolRuns(dst []int64) error {
	for len(dst) > 0 {
		if err := v.runs.run(); err != nil {
			return err
		}
		k := min(len(dst), v.runs.left)
		if v.runs.isPacked {
			for i := range k {
				dst[i] = int64(one(v.runs.packed, v.runs.bit+i, 1))
			}
		} else {
			fill(dst[:k], int64(v.runs.value))
		}
		v.runs.take(k)
		dst = dst[k:]
	}
	return nil
}

// indices unpacks up to n indices of the current run. If the run repeats one index, repeat is how many and the index is
// v.runs.value; else the indices are returned.
func (v *values) indices(n int) (idx []uint32, repeat int, err error) {
	if err := v.runs.run(); err != nil {
		return nil, 0, err
	}
	k := min(n, v.runs.left)
	if !v.runs.isPacked {
		if int64(v.runs.value) >= int64(v.dict.n) {
			return nil, 0, errIndex(v.runs.value, v.dict.n)
		}
		v.runs.take(k)
		return nil, k, nil
	}
	idx = v.idx[:min(k, indexBatch)]
	encoding.Unpack32(idx, v.runs.packed, v.runs.bit, v.runs.width)
	v.runs.take(len(idx))
	return idx, 0, nil
}

func errIndex(i uint32, n int) error {
	return format.Corrupt("dictionary index %d, the dictionary has %d values", i, n)
}

// gather decodes len(dst) values through the dictionary.
func gather[T number](v *values, dst, dict []T) error {
	return lookUp(v, dst, dict, encoding.Gather[T], func(x T) T { return x })
}

// gatherInts is gather for integers, of which the dictionary may hold the lower 32 bits only.
func (v *values) gatherInts(dst []int64) error {
	switch d := v.dict; {
	case d.i32 != nil:
		return lookUp(v, dst, d.i32, encoding.GatherNarrow[int32], func(x int32) int64 { return int64(x) })
	case d.u32 != nil:
		return lookUp(v, dst, d.u32, encoding.GatherNarrow[uint32], func(x uint32) int64 { return int64(x) })
	default:
		return gather(v, dst, d.i64)
	}
}

func lookUp[D, S any](v *values, dst []D, dict []S, gather func(dst []D, dict []S, idx []uint32) int, wide func(x S) D) error {
	for len(dst) > 0 {
		idx, repeat, err := v.indices(len(dst))
		if err != nil {
			return err
		}
		if repeat > 0 {
			fill(dst[:repeat], wide(dict[v.runs.value]))
			dst = dst[repeat:]
			continue
		}
		if done := gather(dst, dict, idx); done < len(idx) {
			return errIndex(idx[done], len(dict))
		}
		dst = dst[len(idx):]
	}
	return nil
}
