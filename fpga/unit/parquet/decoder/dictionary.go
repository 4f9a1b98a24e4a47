package decoder

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/zeroextend"
)

// Dictionary is a decoded dictionary that lies in memory of the caller. It is read-only, may be shared, and is valid as
// long as that memory holds it.
//
// In memory a dictionary is a header of 32 bytes, all little endian, and then its values: float32 or float64, count+1
// offsets of 32 bits and the bytes that they cut, or integers. Integers take 4 bytes each if all of them fit int32, or
// are an unsigned INT32, and else 8: a dictionary is read at random places, and one half as large stays in a nearer
// cache.
//
//	0  4  magic "MRD1"
//	4  1  physical type
//	5  1  1 if INT(w, unsigned)
//	6  1  bytes of an integer, 4 or 8; else 0
//	7  1  0
//	8  4  count of values
//	12 4  0
//	16 8  bytes of values, offsets included
//	24 8  0
type Dictionary struct {
	count    int
	kind     format.Kind
	int64s   []int64 // integers are in one of the first three
	int32s   []int32
	uint32s  []uint32
	float32s []float32
	float64s []float64
	offsets  []uint32
	data     []byte
}

const (
	dictionaryMagic  = "MRD1"
	dictionaryHeader = 32
)

// Len is the number of values.
func (d *Dictionary) Len() int { return d.count }

// DictionarySize returns the most memory that DecodeDictionary of this page needs, in bytes. It follows from the header
// alone, and is as absurd as the header.
func DictionarySize(h *format.PageHeader, ct *format.ColumnType) int64 {
	n := int64(max(0, h.NumValues))
	switch {
	case ct.Kind() == format.KindBytes:
		n = (n+1)*4 + int64(max(0, h.Uncompressed))
	case ct.Physical == format.Int64 || ct.Physical == format.Double:
		n *= 8
	default:
		n *= 4
	}
	return dictionaryHeader + n
}

// DecodeDictionary decodes an unpacked dictionary page into dst and returns the bytes used. dst must be aligned to 8
// bytes; a *SizeError says that it is too small. dst and page must not overlap.
func DecodeDictionary(dst []byte, h *format.PageHeader, page []byte, ct *format.ColumnType) (used int, err error) {
	if err := ct.Validate(); err != nil {
		return 0, err
	}
	if h.Type != format.DictionaryPage {
		return 0, format.Corrupt("%v where a dictionary page was expected", h.Type)
	}
	if h.Encoding != format.Plain && h.Encoding != format.PlainDictionary {
		return 0, &format.UnsupportedError{What: "encoding", Name: h.Encoding.String() + " of a dictionary"}
	}
	n := int(h.NumValues)
	if err := checkDictionarySize(n, len(page), ct); err != nil {
		return 0, err
	}
	// The page holds n values, so what follows allocates nothing and writes at most what was checked here.
	body := dictionaryBytes(n, len(page), ct)
	if dictionaryHeader+body > len(dst) {
		return 0, &format.SizeError{What: "dictionary", Need: int64(dictionaryHeader + body), Have: int64(len(dst))}
	}
	out, size := dst[dictionaryHeader:dictionaryHeader+body], 0
	switch ct.Kind() {
	case format.KindInt64:
		size, err = writeIntegers(out, page, n, ct)
		body = n * size
	case format.KindFloat32, format.KindFloat64:
		copy(out, page)
	case format.KindBytes:
		body, err = writeByteArrays(out, page, n, ct)
	}
	if err != nil {
		return 0, err
	}
	head := dst[:dictionaryHeader]
	clear(head)
	copy(head, dictionaryMagic)
	head[4] = byte(ct.Physical)
	if ct.Unsigned {
		head[5] = 1
	}
	head[6] = byte(size)
	binary.LittleEndian.PutUint32(head[8:], uint32(n))
	binary.LittleEndian.PutUint64(head[16:], uint64(body))
	return dictionaryHeader + body, nil
}

// checkDictionarySize checks that a page can hold the values that its header promises.
func checkDictionarySize(n, page int, ct *format.ColumnType) error {
	need := 4 * n // the length of every byte array
	switch {
	case n < 0:
		return format.Corrupt("dictionary of %d values", n)
	case ct.Physical == format.Boolean:
		need = (n + 7) / 8
	case ct.ValueSize() > 0:
		need = n * ct.ValueSize()
	}
	if need > page {
		return format.Corrupt("dictionary of %d values needs %d bytes, its page has %d", n, need, page)
	}
	return nil
}

// dictionaryBytes returns how many bytes behind the header n values of a page take at most.
func dictionaryBytes(n, page int, ct *format.ColumnType) int {
	switch ct.Physical {
	case format.Int64, format.Double:
		return 8 * n
	case format.ByteArray:
		return 4*(n+1) + page - 4*n
	case format.FixedLenByteArray, format.Int96:
		return 4*(n+1) + n*int(ct.TypeLength)
	}
	return 4 * n
}

// writeIntegers writes integers and returns how many bytes each takes.
func writeIntegers(out, page []byte, n int, ct *format.ColumnType) (size int, err error) {
	if _, ok := alignedValues[int64](out); !ok {
		return 0, unalignedError()
	}
	switch ct.Physical {
	case format.Int32:
		copy(out, page)
	case format.Boolean:
		for i := range n {
			binary.LittleEndian.PutUint32(out[4*i:], unpackOne(page, i, 1))
		}
	default:
		v := unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(page))), n) // at any address
		if zeroextend.Narrow(out, v) < n {
			copy(out, page[:8*n])
			return 8, nil
		}
	}
	return 4, nil
}

// writeByteArrays writes offsets and byte arrays, and returns how many bytes they take.
func writeByteArrays(out, page []byte, n int, ct *format.ColumnType) (int, error) {
	off, ok := alignedValues[uint32](out[:4*(n+1)])
	if !ok {
		return 0, unalignedError()
	}
	data := out[4*(n+1):]
	if int64(len(data)) > math.MaxUint32 {
		return 0, format.Corrupt("dictionary of %d bytes", len(data))
	}
	end := 0
	for i := range n {
		off[i] = uint32(end)
		size := int(ct.TypeLength)
		if ct.Physical == format.ByteArray {
			if len(page) < 4 {
				return 0, format.Corrupt("dictionary page ends before value %d of %d", i, n)
			}
			size = int(binary.LittleEndian.Uint32(page))
			page = page[4:]
		}
		if size > len(page) || size > len(data)-end {
			return 0, format.Corrupt("dictionary page ends inside value %d of %d", i, n)
		}
		copy(data[end:], page[:size])
		page = page[size:]
		end += size
	}
	off[n] = uint32(end)
	return 4*(n+1) + end, nil
}

func unalignedError() error {
	return format.Corrupt("dictionary's memory is not aligned to 8 bytes")
}

// OpenDictionary checks what lies at the beginning of b, which DecodeDictionary should have written, and makes it
// usable.
func OpenDictionary(b []byte, ct *format.ColumnType) (Dictionary, error) {
	var d Dictionary
	if len(b) < dictionaryHeader || string(b[:4]) != dictionaryMagic {
		return d, format.Corrupt("no dictionary lies there")
	}
	unsigned := byte(0)
	if ct.Unsigned {
		unsigned = 1
	}
	if b[4] != byte(ct.Physical) || b[5] != unsigned {
		return d, format.Corrupt("dictionary of %v, column of %v", format.Type(b[4]), ct.Physical)
	}
	n, size := int64(binary.LittleEndian.Uint32(b[8:])), int64(b[6])
	body := binary.LittleEndian.Uint64(b[16:])
	if body > uint64(len(b)-dictionaryHeader) {
		return d, format.Corrupt("dictionary of %d bytes in %d", body, len(b)-dictionaryHeader)
	}
	values := b[dictionaryHeader : dictionaryHeader+int(body)]
	kind := ct.Kind()
	want := 8 * n
	switch kind {
	case format.KindInt64:
		if size != 8 && size != 4 {
			return d, format.Corrupt("dictionary of integers of %d bytes", size)
		}
		want = size * n
	case format.KindFloat32:
		want = 4 * n
	case format.KindBytes:
		want = 4 * (n + 1)
	}
	if want > int64(len(values)) || (kind != format.KindBytes && want != int64(len(values))) {
		return d, format.Corrupt("dictionary of %d values has %d bytes", n, len(values))
	}
	d.count, d.kind = int(n), kind
	ok := false
	switch kind {
	case format.KindInt64:
		switch {
		case size == 8:
			d.int64s, ok = alignedValues[int64](values)
		case ct.Unsigned && ct.Physical == format.Int32:
			d.uint32s, ok = alignedValues[uint32](values)
		default:
			d.int32s, ok = alignedValues[int32](values)
		}
	case format.KindFloat32:
		d.float32s, ok = alignedValues[float32](values)
	case format.KindFloat64:
		d.float64s, ok = alignedValues[float64](values)
	case format.KindBytes:
		d.data = values[want:]
		if d.offsets, ok = alignedValues[uint32](values[:want]); ok {
			return d, d.checkOffsets()
		}
	}
	if !ok {
		return Dictionary{}, unalignedError()
	}
	return d, nil
}

func (d *Dictionary) checkOffsets() error {
	last := uint32(0)
	for _, o := range d.offsets {
		if o < last {
			return format.Corrupt("dictionary's offsets run backwards")
		}
		last = o
	}
	if d.offsets[0] != 0 || int(last) != len(d.data) {
		return format.Corrupt("dictionary's offsets end at %d of %d bytes", last, len(d.data))
	}
	return nil
}
