package decoder

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// valueSource is how the values of a page are encoded.
type valueSource uint8

const (
	fromFixed    valueSource = iota // PLAIN of fixed width
	fromBytes                       // PLAIN byte arrays
	fromBits                        // PLAIN booleans
	fromBoolRuns                    // RLE booleans
	fromDict                        // dictionary indices
	fromDelta                       // DELTA_BINARY_PACKED
	fromArrays                      // DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY
	fromSplit                       // BYTE_STREAM_SPLIT
)

// valueReader reads the values of a page that are not null, one after another.
type valueReader struct {
	source     valueSource
	columnType format.ColumnType
	src        []byte // fromFixed, fromBytes: the bytes that are left; fromBits: all bytes
	bit        int    // fromBits
	runs       runs   // fromBoolRuns, fromDict
	dict       *Dictionary
	indices    [indexBatch]uint32

	delta  deltaReader
	arrays deltaByteReader
	split  splitReader
}

// indexBatch is how many dictionary indices are unpacked at a time: they stay in the first cache.
const indexBatch = 1024

// reset begins the values of a page.
func (v *valueReader) reset(ct *format.ColumnType, h *format.PageHeader, b []byte, dict *Dictionary) error {
	e, n := h.Encoding, int(h.NumValues)
	v.columnType, v.src, v.bit, v.dict = *ct, b, 0, nil
	switch {
	case e.IsDictionary():
		return v.resetDictionary(b, dict)
	case e == format.RLE && ct.Physical == format.Boolean:
		if len(b) < 4 {
			return format.Corrupt("booleans without their length")
		}
		size := binary.LittleEndian.Uint32(b)
		if int64(size) > int64(len(b)-4) {
			return format.Corrupt("%d bytes of booleans in %d", size, len(b)-4)
		}
		v.source, v.runs = fromBoolRuns, newRuns(b[4:4+size], 1, 1)
	case e == format.DeltaBinaryPacked && (ct.Physical == format.Int32 || ct.Physical == format.Int64):
		v.source = fromDelta
		var err error
		v.delta, err = newDeltaReader(b, n)
		return err
	case (e == format.DeltaLengthByteArray && ct.Physical == format.ByteArray) ||
		(e == format.DeltaByteArray && (ct.Physical == format.ByteArray || ct.Physical == format.FixedLenByteArray)):
		v.source = fromArrays
		return v.arrays.reset(b, n, e == format.DeltaByteArray)
	case e == format.ByteStreamSplit && ct.ValueSize() > 0 && ct.Physical != format.Int96:
		v.source = fromSplit
		var err error
		v.split, err = newSplitReader(b, ct.ValueSize())
		return err
	case e != format.Plain:
		return &format.UnsupportedError{What: "encoding", Name: fmt.Sprintf("%v of %v", e, ct.Physical)}
	case ct.Physical == format.Boolean:
		v.source = fromBits
	case ct.Physical == format.ByteArray:
		v.source = fromBytes
	default:
		v.source = fromFixed
	}
	return nil
}

// resetDictionary begins values that are indices of a dictionary.
func (v *valueReader) resetDictionary(b []byte, dict *Dictionary) error {
	if dict == nil {
		return format.Corrupt("dictionary indices without a dictionary")
	}
	if dict.kind != v.columnType.Kind() {
		return format.Corrupt("dictionary of %v for a column of %v", dict.kind, v.columnType.Physical)
	}
	v.source, v.dict, v.runs = fromDict, dict, runs{}
	if len(b) == 0 {
		return nil // a page of nulls may leave out even the width
	}
	if b[0] > 32 {
		return format.Corrupt("dictionary indices of %d bits", b[0])
	}
	v.runs = newRuns(b[1:], uint(b[0]), uint32(1<<b[0]-1))
	return nil
}

// checkCount checks, before anything is decoded, that the page can hold n values.
func (v *valueReader) checkCount(n int) error {
	have, need := len(v.src), 0
	switch v.source {
	case fromFixed:
		need = n * v.columnType.ValueSize()
	case fromBits:
		need = (n + 7) / 8
	case fromBytes:
		need = 4 * n
	case fromSplit:
		need = n * v.columnType.ValueSize()
	case fromDelta:
		return v.delta.checkCount(n)
	case fromArrays:
		return v.arrays.lengths.checkCount(n)
	default:
		return nil
	}
	if need > have {
		return format.Corrupt("%d values need %d bytes, the page has %d", n, need, have)
	}
	return nil
}

// skip moves past n values.
func (v *valueReader) skip(n int) error {
	switch v.source {
	case fromFixed:
		size := n * v.columnType.ValueSize()
		if size > len(v.src) {
			return valuesEndError()
		}
		v.src = v.src[size:]
	case fromBits:
		if v.bit+n > 8*len(v.src) {
			return valuesEndError()
		}
		v.bit += n
	case fromBytes:
		src, err := skipByteArrays(v.src, n)
		if err != nil {
			return err
		}
		v.src = src
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
		return v.arrays.eachValue(n, arrayLength(&v.columnType), func(_, _ []byte) error { return nil })
	case fromSplit:
		_, err := v.split.advance(n)
		return err
	default:
		return v.runs.skip(n)
	}
	return nil
}

// valuesEndError is the error of a page that ends before its values do.
func valuesEndError() error { return format.Corrupt("page ends before its values do") }

// appendValues decodes n values to the end of b. It leaves validity to its caller.
func (v *valueReader) appendValues(b *Block, n int) error {
	if n == 0 {
		return nil
	}
	if v.source == fromFixed && b.Lend && v.lendTo(b, n) {
		return nil
	}
	b.copyLent()
	switch v.columnType.Physical {
	case format.Boolean, format.Int32, format.Int64:
		at := len(b.I64)
		b.I64 = growSlice(b.I64, n)
		return v.readInts(b.I64[at:])
	case format.Float:
		at := len(b.F32)
		b.F32 = growSlice(b.F32, n)
		switch v.source {
		case fromDict:
			return gatherValues(v, b.F32[at:], v.dict.float32s)
		case fromSplit:
			return v.split.readWords32(sameBits[uint32](b.F32[at:]))
		}
		return v.copyBytes(bytesOf(b.F32[at:]))
	case format.Double:
		at := len(b.F64)
		b.F64 = growSlice(b.F64, n)
		switch v.source {
		case fromDict:
			return gatherValues(v, b.F64[at:], v.dict.float64s)
		case fromSplit:
			return v.split.readWords64(sameBits[uint64](b.F64[at:]))
		}
		return v.copyBytes(bytesOf(b.F64[at:]))
	}
	return v.appendBytes(b, n)
}

// lendTo lends the block the page's own bytes as the next n values. ok is false where values do not lie in the page as
// the block wants them.
func (v *valueReader) lendTo(b *Block, n int) (ok bool) {
	size := n * v.columnType.ValueSize()
	if size > len(v.src) {
		return false // copyBytes makes the error
	}
	switch v.columnType.Physical {
	case format.Int64:
		ok = lendValues(b, &b.I64, v.src, n)
	case format.Float:
		ok = lendValues(b, &b.F32, v.src, n)
	case format.Double:
		ok = lendValues(b, &b.F64, v.src, n)
	}
	if ok {
		v.src = v.src[size:]
	}
	return ok
}

// readInts decodes len(dst) integers or booleans.
func (v *valueReader) readInts(dst []int64) error {
	switch {
	case v.source == fromDict:
		return v.gatherInts(dst)
	case v.source == fromBits:
		return v.readBooleans(dst)
	case v.source == fromBoolRuns:
		return v.readBooleanRuns(dst)
	case v.source == fromDelta:
		return v.readDeltas(dst)
	case v.source == fromSplit:
		return v.split.readInts(dst, &v.columnType, v.indices[:])
	case v.columnType.Physical == format.Int64:
		return v.copyBytes(bytesOf(dst))
	}
	if 4*len(dst) > len(v.src) {
		return valuesEndError()
	}
	if v.columnType.Unsigned {
		convert.Uint32ToInt64(dst, v.src)
	} else {
		convert.Int32ToInt64(dst, v.src)
	}
	v.src = v.src[4*len(dst):]
	return nil
}

// readDeltas decodes DELTA_BINARY_PACKED. The deltas of 32-bit integers wrap at 32 bits.
func (v *valueReader) readDeltas(dst []int64) error {
	if err := v.delta.read(dst); err != nil {
		return err
	}
	switch {
	case v.columnType.Physical == format.Int64:
	case v.columnType.Unsigned:
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

// copyBytes copies the next len(dst) bytes of PLAIN values.
func (v *valueReader) copyBytes(dst []byte) error {
	if len(dst) > len(v.src) {
		return valuesEndError()
	}
	copy(dst, v.src)
	v.src = v.src[len(dst):]
	return nil
}

// readBooleans decodes PLAIN booleans.
func (v *valueReader) readBooleans(dst []int64) error {
	if v.bit+len(dst) > 8*len(v.src) {
		return valuesEndError()
	}
	for i := range dst {
		dst[i] = int64(v.src[v.bit>>3] >> (v.bit & 7) & 1)
		v.bit++
	}
	return nil
}

// readBooleanRuns decodes RLE booleans.
func (v *valueReader) readBooleanRuns(dst []int64) error {
	for len(dst) > 0 {
		if err := v.runs.openRun(); err != nil {
			return err
		}
		k := min(len(dst), v.runs.left)
		if v.runs.isPacked {
			for i := range k {
				dst[i] = int64(unpackOne(v.runs.packed, v.runs.bit+i, 1))
			}
		} else {
			fillSlice(dst[:k], int64(v.runs.value))
		}
		v.runs.advance(k)
		dst = dst[k:]
	}
	return nil
}

// nextIndices unpacks up to n indices of the current run. If the run repeats one index, repeat is how often and the
// index is v.runs.value; else the indices are returned.
func (v *valueReader) nextIndices(n int) (idx []uint32, repeat int, err error) {
	if err := v.runs.openRun(); err != nil {
		return nil, 0, err
	}
	k := min(n, v.runs.left)
	if !v.runs.isPacked {
		if int64(v.runs.value) >= int64(v.dict.count) {
			return nil, 0, indexError(v.runs.value, v.dict.count)
		}
		v.runs.advance(k)
		return nil, k, nil
	}
	idx = v.indices[:min(k, indexBatch)]
	encoding.Unpack32(idx, v.runs.packed, v.runs.bit, v.runs.width)
	v.runs.advance(len(idx))
	return idx, 0, nil
}

func indexError(i uint32, n int) error {
	return format.Corrupt("dictionary index %d, the dictionary has %d values", i, n)
}

// gatherValues decodes len(dst) values through the dictionary.
func gatherValues[T fixedWidth](v *valueReader, dst, dict []T) error {
	return lookUpIndices(v, dst, dict, encoding.Gather[T], func(x T) T { return x })
}

// gatherInts is gatherValues for integers, of which the dictionary may hold the lower 32 bits only.
func (v *valueReader) gatherInts(dst []int64) error {
	switch d := v.dict; {
	case d.int32s != nil:
		return lookUpIndices(v, dst, d.int32s, encoding.GatherNarrow[int32], func(x int32) int64 { return int64(x) })
	case d.uint32s != nil:
		return lookUpIndices(v, dst, d.uint32s, encoding.GatherNarrow[uint32], func(x uint32) int64 { return int64(x) })
	default:
		return gatherValues(v, dst, d.int64s)
	}
}

// lookUpIndices decodes len(dst) values through a dictionary: gather for indices, widen for a repeated value.
func lookUpIndices[D, S any](v *valueReader, dst []D, dict []S, gather func(dst []D, dict []S, idx []uint32) int,
	widen func(x S) D) error {
	for len(dst) > 0 {
		idx, repeat, err := v.nextIndices(len(dst))
		if err != nil {
			return err
		}
		if repeat > 0 {
			fillSlice(dst[:repeat], widen(dict[v.runs.value]))
			dst = dst[repeat:]
			continue
		}
		if done := gather(dst, dict, idx); done < len(idx) {
			return indexError(idx[done], len(dict))
		}
		dst = dst[len(idx):]
	}
	return nil
}
