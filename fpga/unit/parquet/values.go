package parquet

import (
	"encoding/binary"
	"fmt"
)

// source is how the values section of a page is read.
type source uint8

const (
	fromFixed    source = iota // PLAIN of fixed width
	fromBytes                  // PLAIN byte arrays
	fromBits                   // PLAIN booleans
	fromBoolRuns               // RLE booleans
	fromDict                   // dictionary indices
)

// values reads the values that are there, nulls left out, one after another.
type values struct {
	from source
	ct   ColumnType
	src  []byte // fromFixed, fromBytes: what is left; fromBits: all
	bit  int    // fromBits
	runs runs   // fromBoolRuns, fromDict
	dict *Dictionary
	idx  [indexBatch]uint32
}

// indexBatch is how many dictionary indices are unpacked at a time: they stay in the first cache.
const indexBatch = 1024

func (v *values) reset(ct *ColumnType, e Encoding, b []byte, dict *Dictionary) error {
	v.ct, v.src, v.bit, v.dict = *ct, b, 0, nil
	switch {
	case e.dictionary():
		return v.resetDict(b, dict)
	case e == RLE && ct.Physical == Boolean:
		if len(b) < 4 {
			return corrupt("booleans without their length")
		}
		n := binary.LittleEndian.Uint32(b)
		if int64(n) > int64(len(b)-4) {
			return corrupt("%d bytes of booleans in %d", n, len(b)-4)
		}
		v.from, v.runs = fromBoolRuns, newRuns(b[4:4+n], 1, 1)
	case e != Plain:
		return &UnsupportedError{What: "encoding", Name: fmt.Sprintf("%v of %v", e, ct.Physical)}
	case ct.Physical == Boolean:
		v.from = fromBits
	case ct.Physical == ByteArray:
		v.from = fromBytes
	default:
		v.from = fromFixed
	}
	return nil
}

func (v *values) resetDict(b []byte, dict *Dictionary) error {
	if dict == nil {
		return corrupt("dictionary indices without a dictionary")
	}
	if dict.kind != v.ct.Kind() {
		return corrupt("dictionary of %v for a column of %v", dict.kind, v.ct.Physical)
	}
	v.from, v.dict, v.runs = fromDict, dict, runs{}
	if len(b) == 0 {
		return nil // a page of nulls may leave out even the width
	}
	if b[0] > 32 {
		return corrupt("dictionary indices of %d bits", b[0])
	}
	v.runs = newRuns(b[1:], uint(b[0]), uint32(1<<b[0]-1))
	return nil
}

// atLeast checks before anything is decoded that n values can be there.
func (v *values) atLeast(n int) error {
	have := len(v.src)
	var need int
	switch v.from {
	case fromFixed:
		need = n * v.ct.size()
	case fromBits:
		need = (n + 7) / 8
	case fromBytes:
		need = 4 * n
	default:
		return nil
	}
	if need > have {
		return corrupt("%d values need %d bytes, the page has %d", n, need, have)
	}
	return nil
}

// skip moves past n values.
func (v *values) skip(n int) error {
	switch v.from {
	case fromFixed:
		size := n * v.ct.size()
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
	default:
		return v.runs.skip(n)
	}
	return nil
}

func errValuesEnd() error { return corrupt("page ends before its values do") }

// nextBytes takes one PLAIN byte array.
func (v *values) nextBytes() ([]byte, error) {
	if len(v.src) < 4 {
		return nil, errValuesEnd()
	}
	n := binary.LittleEndian.Uint32(v.src)
	if int64(n) > int64(len(v.src)-4) {
		return nil, corrupt("byte array of %d bytes, the page has %d left", n, len(v.src)-4)
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
	switch v.ct.Physical {
	case Boolean, Int32, Int64:
		at := len(b.I64)
		b.I64 = extend(b.I64, n)
		return v.ints(b.I64[at:])
	case Float:
		at := len(b.F32)
		b.F32 = extend(b.F32, n)
		if v.from == fromDict {
			return gather(v, b.F32[at:], v.dict.f32)
		}
		return v.copyTo(rawBytes(b.F32[at:]))
	case Double:
		at := len(b.F64)
		b.F64 = extend(b.F64, n)
		if v.from == fromDict {
			return gather(v, b.F64[at:], v.dict.f64)
		}
		return v.copyTo(rawBytes(b.F64[at:]))
	}
	return v.appendBytes(b, n)
}

// ints decodes len(dst) integers or booleans.
func (v *values) ints(dst []int64) error {
	switch {
	case v.from == fromDict:
		return gather(v, dst, v.dict.i64)
	case v.from == fromBits:
		return v.bits(dst)
	case v.from == fromBoolRuns:
		return v.boolRuns(dst)
	case v.ct.Physical == Int64:
		return v.copyTo(rawBytes(dst))
	}
	if 4*len(dst) > len(v.src) {
		return errValuesEnd()
	}
	if v.ct.Unsigned {
		widenUnsigned(dst, v.src)
	} else {
		widen(dst, v.src)
	}
	v.src = v.src[4*len(dst):]
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

// widen sign-extends len(dst) int32s of src, which has them.
func widen(dst []int64, src []byte) {
	src = src[:4*len(dst)]
	for len(dst) >= 4 && len(src) >= 16 {
		d, s := dst[:4:4], src[:16:16]
		d[0] = int64(int32(binary.LittleEndian.Uint32(s[0:])))
		d[1] = int64(int32(binary.LittleEndian.Uint32(s[4:])))
		d[2] = int64(int32(binary.LittleEndian.Uint32(s[8:])))
		d[3] = int64(int32(binary.LittleEndian.Uint32(s[12:])))
		dst, src = dst[4:], src[16:]
	}
	for i := range dst {
		dst[i] = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

// widenUnsigned zero-extends len(dst) uint32s of src, which has them.
func widenUnsigned(dst []int64, src []byte) {
	src = src[:4*len(dst)]
	for len(dst) >= 4 && len(src) >= 16 {
		d, s := dst[:4:4], src[:16:16]
		d[0] = int64(binary.LittleEndian.Uint32(s[0:]))
		d[1] = int64(binary.LittleEndian.Uint32(s[4:]))
		d[2] = int64(binary.LittleEndian.Uint32(s[8:]))
		d[3] = int64(binary.LittleEndian.Uint32(s[12:]))
		dst, src = dst[4:], src[16:]
	}
	for i := range dst {
		dst[i] = int64(binary.LittleEndian.Uint32(src[4*i:]))
	}
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
	unpack32(idx, v.runs.packed, v.runs.bit, v.runs.width)
	v.runs.take(len(idx))
	return idx, 0, nil
}

func errIndex(i uint32, n int) error {
	return corrupt("dictionary index %d, the dictionary has %d values", i, n)
}

// gather decodes len(dst) values through the dictionary.
func gather[T number](v *values, dst, dict []T) error {
	for len(dst) > 0 {
		idx, repeat, err := v.indices(len(dst))
		if err != nil {
			return err
		}
		if repeat > 0 {
			fill(dst[:repeat], dict[v.runs.value])
			dst = dst[repeat:]
			continue
		}
		d := dst[:len(idx)]
		for i, x := range idx {
			if uint(x) >= uint(len(dict)) {
				return errIndex(x, len(dict))
			}
			d[i] = dict[x]
		}
		dst = dst[len(idx):]
	}
	return nil
}

// appendBytes decodes n byte arrays onto the end of b.
func (v *values) appendBytes(b *Block, n int) error {
	if len(b.Offsets) == 0 {
		b.Offsets = append(b.Offsets, 0)
	}
	limit := b.maxData()
	switch v.from {
	case fromDict:
		return v.gatherBytes(b, n, limit)
	case fromBytes:
		return v.plainBytes(b, n, limit)
	}
	size := int(v.ct.TypeLength)
	if n*size > len(v.src) {
		return errValuesEnd()
	}
	if n*size > limit-len(b.Data) {
		return errData(limit)
	}
	at := len(b.Offsets)
	end := uint32(len(b.Data))
	b.Offsets = extend(b.Offsets, n)
	for i := range b.Offsets[at:] {
		end += uint32(size)
		b.Offsets[at+i] = end
	}
	b.Data = append(b.Data, v.src[:n*size]...)
	v.src = v.src[n*size:]
	return nil
}

// plainBytes decodes n PLAIN byte arrays onto the end of b.
func (v *values) plainBytes(b *Block, n, limit int) error {
	if 4*n > len(v.src) {
		return errValuesEnd()
	}
	at := len(b.Offsets)
	b.Offsets = extend(b.Offsets, n)
	offsets, data, src := b.Offsets[at:], b.Data, v.src
	for i := range offsets {
		if len(src) < 4 {
			return errValuesEnd()
		}
		size := int(binary.LittleEndian.Uint32(src))
		if size > len(src)-4 {
			return corrupt("byte array of %d bytes, the page has %d left", size, len(src)-4)
		}
		if size > limit-len(data) {
			return errData(limit)
		}
		data = append(data, src[4:4+size]...)
		src = src[4+size:]
		offsets[i] = uint32(len(data))
	}
	b.Data, v.src = data, src
	return nil
}

func (v *values) gatherBytes(b *Block, n, limit int) error {
	for n > 0 {
		idx, repeat, err := v.indices(n)
		if err != nil {
			return err
		}
		for range repeat {
			if err := b.appendBytesOf(v.dict, v.runs.value, limit); err != nil {
				return err
			}
		}
		for _, x := range idx {
			if err := b.appendBytesOf(v.dict, x, limit); err != nil {
				return err
			}
		}
		n -= repeat + len(idx)
	}
	return nil
}

// appendBytesOf appends value x of a dictionary, whose offsets are looked at again here because its memory may be shared.
func (b *Block) appendBytesOf(d *Dictionary, x uint32, limit int) error {
	if int64(x) >= int64(d.n) {
		return errIndex(x, d.n)
	}
	from, to := d.off[x], d.off[x+1]
	if from > to || int64(to) > int64(len(d.data)) {
		return corrupt("dictionary's offsets changed under the decoder")
	}
	return b.appendBytes(d.data[from:to], limit)
}

func (b *Block) appendBytes(p []byte, limit int) error {
	if len(p) > limit-len(b.Data) {
		return errData(limit)
	}
	b.Data = append(b.Data, p...)
	b.Offsets = append(b.Offsets, uint32(len(b.Data)))
	return nil
}

func errData(limit int) error {
	return fmt.Errorf("%w: bytes of a block would pass %d", ErrLimit, limit)
}

// appendNulls puts n empty slots at the end of b.
func (b *Block) appendNulls(n int) {
	switch b.Kind {
	case KindInt64:
		b.I64 = appendZeros(b.I64, n)
	case KindFloat32:
		b.F32 = appendZeros(b.F32, n)
	case KindFloat64:
		b.F64 = appendZeros(b.F64, n)
	case KindBytes:
		if len(b.Offsets) == 0 {
			b.Offsets = append(b.Offsets, 0)
		}
		at := len(b.Offsets)
		b.Offsets = extend(b.Offsets, n)
		fill(b.Offsets[at:], uint32(len(b.Data)))
	}
}

func appendZeros[T any](s []T, n int) []T {
	at := len(s)
	s = extend(s, n)
	clear(s[at:])
	return s
}

// spread takes the last there values of b apart so that they stand where valid has ones, and puts empty slots
// between. It makes b len(valid) - there slots longer.
func (b *Block) spread(valid []byte, there int) {
	if there == 0 {
		b.appendNulls(len(valid))
		return
	}
	more := len(valid) - there
	switch b.Kind {
	case KindInt64:
		b.I64 = extend(b.I64, more)
		spread(bitsOf[uint64](b.I64[len(b.I64)-len(valid):]), valid, there)
	case KindFloat32:
		b.F32 = extend(b.F32, more)
		spread(bitsOf[uint32](b.F32[len(b.F32)-len(valid):]), valid, there)
	case KindFloat64:
		b.F64 = extend(b.F64, more)
		spread(bitsOf[uint64](b.F64[len(b.F64)-len(valid):]), valid, there)
	case KindBytes:
		b.Offsets = extend(b.Offsets, more)
		spreadOffsets(b.Offsets[len(b.Offsets)-len(valid)-1:], valid, there)
	}
}

// spread works from the end, where no value is overwritten before it has moved. Which slots are null is hard to
// foretell, so nothing branches on it.
func spread[T uint32 | uint64](v []T, valid []byte, there int) {
	v = v[:len(valid)]
	for i := len(valid) - 1; i >= 0; i-- {
		if there == 0 {
			clear(v[:i+1])
			return
		}
		if there == i+1 {
			return // the rest is in its place
		}
		is := valid[i] & 1
		v[i] = v[there-1] & -T(is)
		there -= int(is)
	}
}

// spreadOffsets does the same to the ends of byte arrays: a null ends where the value before it does. off has one
// more entry than valid, the first being where the first value begins.
func spreadOffsets(off []uint32, valid []byte, there int) {
	for i := len(valid) - 1; i >= 0; i-- {
		off[i+1] = off[there]
		there -= int(valid[i])
	}
}
