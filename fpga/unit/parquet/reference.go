package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Column is a whole chunk as the reference decodes it. A row is nil (null) or a value: int64, float32, float64 or
// []byte; a row of a list is nil or a []any of nils and values; a row of lists in a map is nil or a []any of lists, null
// or not.
type Column struct {
	Kind Kind
	List bool
	Rows []any
}

// Bounds of the reference, which keeps a whole chunk as Go values.
const (
	referenceValues = 1 << 25
	referencePage   = 256 << 20 // bytes
)

// ReadColumnReference decodes a whole chunk, level by level and value by value. It is the definition that the Decoder is
// held to: it shares with it the metadata, page headers included, and nothing else. It is slow and takes much memory,
// and refuses chunks of more than 2^25 values with ErrLimit.
func ReadColumnReference(r io.ReaderAt, f *File, rowGroup, leaf int) (Column, error) {
	ch, l, err := f.chunk(rowGroup, leaf)
	if err != nil {
		return Column{}, err
	}
	ref := reference{ct: l.ColumnType(ch.Codec), column: Column{Kind: l.Physical.Kind(), List: l.List}}
	fail := func(page int, offset int64, err error) (Column, error) {
		return Column{}, &PageError{RowGroup: rowGroup, Column: l.Path, Page: page, Offset: offset, Err: err}
	}
	if ch.NumValues > referenceValues {
		return fail(0, ch.Offset, fmt.Errorf("%w: %d values", ErrLimit, ch.NumValues))
	}
	b := make([]byte, ch.Compressed)
	if err := readFull(r, b, ch.Offset); err != nil {
		return fail(0, ch.Offset, err)
	}
	left, page, offset := ch.NumValues, 0, ch.Offset
	for left > 0 {
		h, n, err := ParsePageHeader(b)
		if err != nil {
			return fail(page, offset, ended(err))
		}
		if len(b)-n < int(h.Compressed) {
			return fail(page, offset, corrupt("page reaches beyond its chunk"))
		}
		if h.data() {
			if left -= int64(h.NumValues); left < 0 {
				return fail(page, offset, corrupt("pages have more values than the chunk"))
			}
		}
		if err := ref.page(&h, b[n:n+int(h.Compressed)]); err != nil {
			return fail(page, offset, err)
		}
		b = b[n+int(h.Compressed):]
		offset += int64(n) + int64(h.Compressed)
		page++
	}
	if got, want := int64(len(ref.column.Rows)), f.RowGroups[rowGroup].Rows; got != want {
		return fail(page, offset, corrupt("%d rows in the pages, %d in the row group", got, want))
	}
	return ref.column, nil
}

// reference is the state of a chunk being decoded.
type reference struct {
	ct     ColumnType
	dict   []any // nil until a dictionary page
	column Column
}

func (ref *reference) page(h *PageHeader, payload []byte) error {
	if h.HasCRC {
		if err := h.CheckCRC(crc32.ChecksumIEEE(payload)); err != nil {
			return err
		}
	}
	switch h.Type {
	case IndexPage:
		return nil
	case DictionaryPage:
		return ref.dictionary(h, payload)
	case DataPage:
		return ref.dataV1(h, payload)
	case DataPageV2:
		return ref.dataV2(h, payload)
	}
	return &UnsupportedError{What: "page type", Name: h.Type.String()}
}

func (ref *reference) dictionary(h *PageHeader, payload []byte) error {
	if ref.dict != nil {
		return corrupt("a second dictionary page")
	}
	if h.Encoding != Plain && h.Encoding != PlainDictionary {
		return &UnsupportedError{What: "encoding", Name: h.Encoding.String() + " of a dictionary"}
	}
	b, err := referenceUnpack(payload, int(h.Uncompressed), ref.ct.Codec)
	if err != nil {
		return err
	}
	ref.dict, err = ref.plain(b, int(h.NumValues))
	if ref.dict == nil {
		ref.dict = []any{}
	}
	return err
}

func (ref *reference) dataV1(h *PageHeader, payload []byte) error {
	b, err := referenceUnpack(payload, int(h.Uncompressed), ref.ct.Codec)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	rep, b, err := referenceLevels(b, h.RepEncoding, n, ref.ct.MaxRep)
	if err != nil {
		return err
	}
	def, b, err := referenceLevels(b, h.DefEncoding, n, ref.ct.MaxDef)
	if err != nil {
		return err
	}
	return ref.rows(h, rep, def, b)
}

func (ref *reference) dataV2(h *PageHeader, payload []byte) error {
	levels := int(h.RepBytes + h.DefBytes)
	codec := ref.ct.Codec
	if !h.IsCompressed && !ref.ct.AlwaysCompressed {
		codec = Uncompressed
	}
	b, err := referenceUnpack(payload[levels:], int(h.Uncompressed)-levels, codec)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	rep, def := make([]uint32, n), make([]uint32, n) // a column without levels has zeros
	if ref.ct.MaxRep > 0 {
		if rep, err = referenceHybrid(payload[:h.RepBytes], bitsFor(ref.ct.MaxRep), n); err != nil {
			return err
		}
	}
	if ref.ct.MaxDef > 0 {
		if def, err = referenceHybrid(payload[h.RepBytes:levels], bitsFor(ref.ct.MaxDef), n); err != nil {
			return err
		}
	}
	before := len(ref.column.Rows)
	if err := ref.rows(h, rep, def, b); err != nil || ref.ct.List && ref.ct.RowsUncounted {
		return err
	}
	if len(ref.column.Rows)-before != int(h.NumRows) || (n > 0 && rep[0] != 0) {
		return corrupt("%d rows in the page, %d in its header", len(ref.column.Rows)-before, h.NumRows)
	}
	return nil
}

// rows puts a page's levels and values together.
func (ref *reference) rows(h *PageHeader, rep, def []uint32, b []byte) error {
	there := 0
	for i := range def {
		if rep[i] > uint32(ref.ct.MaxRep) || def[i] > uint32(ref.ct.MaxDef) {
			return corrupt("level out of range")
		}
		if def[i] == uint32(ref.ct.MaxDef) {
			there++
		}
	}
	values, err := ref.values(h, b, there)
	if err != nil {
		return err
	}
	for i := range def {
		var v any
		if def[i] == uint32(ref.ct.MaxDef) {
			v, values = values[0], values[1:]
		}
		if err := ref.add(rep[i], def[i], v); err != nil {
			return err
		}
	}
	return nil
}

// add adds what one pair of levels says: a row, or an element of the last row.
func (ref *reference) add(rep, def uint32, v any) error {
	c := &ref.column
	element := uint32(ref.ct.RepDef)
	switch {
	case !c.List:
		c.Rows = append(c.Rows, v)
	case ref.ct.MaxRep == 2:
		return ref.addNested(rep, def, v)
	case rep == 0 && def+1 < element:
		c.Rows = append(c.Rows, nil)
	case rep == 0 && def < element:
		c.Rows = append(c.Rows, []any{})
	case rep == 0:
		c.Rows = append(c.Rows, []any{v})
	default:
		if len(c.Rows) == 0 {
			return corrupt("chunk begins inside a row")
		}
		list, _ := c.Rows[len(c.Rows)-1].([]any)
		if len(list) == 0 || def < element {
			return corrupt("an empty or null list has elements")
		}
		c.Rows[len(c.Rows)-1] = append(list, v)
	}
	return nil
}

// addNested adds what a pair of levels says of lists in a map: a row, an entry of the last row, or an element of the last
// entry.
func (ref *reference) addNested(rep, def uint32, v any) error {
	c := &ref.column
	entry, element := uint32(ref.ct.EntryDef), uint32(ref.ct.RepDef)
	var list any // an entry that begins: nil, []any{} or with one element
	switch {
	case def >= element:
		list = []any{v}
	case def+1 == element:
		list = []any{}
	}
	if rep == 0 {
		switch {
		case def >= entry:
			c.Rows = append(c.Rows, []any{list})
		case def+1 == entry:
			c.Rows = append(c.Rows, []any{})
		default:
			c.Rows = append(c.Rows, nil)
		}
		return nil
	}
	if len(c.Rows) == 0 {
		return corrupt("chunk begins inside a row")
	}
	entries, _ := c.Rows[len(c.Rows)-1].([]any)
	if len(entries) == 0 || def < entry {
		return corrupt("an empty or null map goes on")
	}
	if rep == 1 {
		c.Rows[len(c.Rows)-1] = append(entries, list)
		return nil
	}
	last, _ := entries[len(entries)-1].([]any)
	if len(last) == 0 || def < element {
		return corrupt("an empty or null list goes on")
	}
	entries[len(entries)-1] = append(last, v)
	return nil
}

// values decodes a data page's n values.
func (ref *reference) values(h *PageHeader, b []byte, n int) ([]any, error) {
	switch {
	case h.Encoding == Plain:
		return ref.plain(b, n)
	case h.Encoding == RLE && ref.ct.Physical == Boolean:
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, corrupt("booleans reach beyond their page")
		}
		bits, err := referenceHybrid(b[4:4+binary.LittleEndian.Uint32(b)], 1, n)
		if err != nil {
			return nil, err
		}
		var out []any
		for _, v := range bits {
			if v > 1 {
				return nil, corrupt("boolean %d", v)
			}
			out = append(out, int64(v))
		}
		return out, nil
	case h.Encoding == PlainDictionary || h.Encoding == RLEDictionary:
		return ref.lookUp(b, n)
	case h.Encoding == DeltaBinaryPacked && (ref.ct.Physical == Int32 || ref.ct.Physical == Int64):
		return ref.deltas(b, n, h.NumValues)
	case h.Encoding == DeltaLengthByteArray && ref.ct.Physical == ByteArray:
		return ref.deltaArrays(b, n, h.NumValues, false)
	case h.Encoding == DeltaByteArray && (ref.ct.Physical == ByteArray || ref.ct.Physical == FixedLenByteArray):
		return ref.deltaArrays(b, n, h.NumValues, true)
	case h.Encoding == ByteStreamSplit && ref.ct.Physical != Boolean && ref.ct.Physical != ByteArray:
		return ref.split(b, n)
	}
	return nil, &UnsupportedError{What: "encoding", Name: fmt.Sprintf("%v of %v", h.Encoding, ref.ct.Physical)}
}

func (ref *reference) lookUp(b []byte, n int) ([]any, error) {
	if ref.dict == nil {
		return nil, corrupt("indices without a dictionary")
	}
	if n == 0 && len(b) == 0 {
		return nil, nil
	}
	if len(b) == 0 || b[0] > 32 {
		return nil, corrupt("width of indices")
	}
	indices, err := referenceHybrid(b[1:], int(b[0]), n)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, i := range indices {
		if int64(i) >= int64(len(ref.dict)) {
			return nil, corrupt("index %d, dictionary of %d", i, len(ref.dict))
		}
		out = append(out, ref.dict[i])
	}
	return out, nil
}

// plain decodes n PLAIN values.
func (ref *reference) plain(b []byte, n int) ([]any, error) {
	var out []any
	for i := range n {
		if ref.ct.Physical == Boolean {
			if i/8 >= len(b) {
				return nil, corrupt("page ends before value %d of %d", i, n)
			}
			out = append(out, int64(b[i/8]>>(i%8)&1))
			continue
		}
		size := map[Type]int{Int32: 4, Int64: 8, Float: 4, Double: 8, ByteArray: 4, FixedLenByteArray: int(ref.ct.TypeLength)}[ref.ct.Physical]
		if size > len(b) {
			return nil, corrupt("page ends before value %d of %d", i, n)
		}
		v := b[:size]
		b = b[size:]
		switch ref.ct.Physical {
		case Int32:
			x := binary.LittleEndian.Uint32(v)
			if ref.ct.Unsigned {
				out = append(out, int64(x))
			} else {
				out = append(out, int64(int32(x)))
			}
		case Int64:
			out = append(out, int64(binary.LittleEndian.Uint64(v)))
		case Float:
			out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(v)))
		case Double:
			out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(v)))
		case FixedLenByteArray:
			out = append(out, v)
		case ByteArray:
			length := binary.LittleEndian.Uint32(v)
			if uint64(length) > uint64(len(b)) {
				return nil, corrupt("page ends inside value %d of %d", i, n)
			}
			out = append(out, b[:length])
			b = b[length:]
		}
	}
	return out, nil
}

func bitsFor(max uint8) int {
	n := 0
	for ; max > 0; max >>= 1 {
		n++
	}
	return n
}

// referenceLevels takes n levels from the front of a v1 page; a column without levels has n zeros.
func referenceLevels(b []byte, e Encoding, n int, max uint8) (levels []uint32, rest []byte, err error) {
	width := bitsFor(max)
	switch {
	case max == 0:
		return make([]uint32, n), b, nil
	case e == RLE:
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, nil, corrupt("levels reach beyond their page")
		}
		size := 4 + int(binary.LittleEndian.Uint32(b))
		levels, err = referenceHybrid(b[4:size], width, n)
		return levels, b[size:], err
	case e == BitPacked:
		size := (n*width + 7) / 8
		if size > len(b) {
			return nil, nil, corrupt("levels reach beyond their page")
		}
		for i := range n {
			var v uint32
			for bit := i * width; bit < (i+1)*width; bit++ {
				v = v<<1 | uint32(b[bit/8]>>(7-bit%8)&1)
			}
			levels = append(levels, v)
		}
		return levels, b[size:], nil
	}
	return nil, nil, &UnsupportedError{What: "encoding", Name: e.String() + " of levels"}
}

// referenceHybrid decodes n values of width bits of the RLE / bit-packed hybrid.
func referenceHybrid(b []byte, width, n int) ([]uint32, error) {
	var out []uint32
	for len(out) < n {
		header, size := binary.Uvarint(b)
		if size <= 0 || header > math.MaxUint32 {
			return nil, corrupt("run's header")
		}
		b = b[size:]
		count := int(header >> 1)
		if header&1 == 0 {
			bytes := (width + 7) / 8
			if bytes > len(b) {
				return nil, corrupt("run ends early")
			}
			var v uint32
			for i := range bytes {
				v |= uint32(b[i]) << (8 * i)
			}
			b = b[bytes:]
			if count > 0 && uint64(v) >= 1<<width {
				return nil, corrupt("value %d of %d bits", v, width)
			}
			for ; count > 0 && len(out) < n; count-- {
				out = append(out, v)
			}
			continue
		}
		bit := 0
		for i := 0; i < 8*count && len(out) < n; i++ {
			var v uint32
			for k := range width {
				if bit/8 >= len(b) {
					return nil, corrupt("run ends early")
				}
				v |= uint32(b[bit/8]>>(bit%8)&1) << k
				bit++
			}
			out = append(out, v)
		}
		b = b[min(len(b), count*width):]
	}
	return out, nil
}

// referenceUnpack decompresses b, which must become want bytes.
func referenceUnpack(b []byte, want int, c Codec) ([]byte, error) {
	if want > referencePage {
		return nil, &SizeError{What: "unpacked page", Need: int64(want), Have: referencePage}
	}
	if c != Uncompressed && len(b) == 0 && want == 0 {
		return nil, nil
	}
	var out []byte
	var err error
	switch c {
	case Uncompressed:
		out = b
	case Snappy:
		var n int
		if n, err = snappy.DecodedLen(b); err == nil && n == want && n <= 64*len(b) {
			out, err = snappy.Decode(nil, b)
		}
	case Gzip:
		var gz *gzip.Reader
		if gz, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			out, err = io.ReadAll(io.LimitReader(gz, int64(want)+1))
		}
	case Zstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow)); err == nil {
			out, err = io.ReadAll(io.LimitReader(z, int64(want)+1))
			z.Close()
		}
	case LZ4Raw:
		if want <= 256*(len(b)+1) {
			out = make([]byte, want)
			var n int
			n, err = lz4.UncompressBlock(b, out)
			out = out[:max(0, n)]
		}
	case LZ4:
		if want <= 256*(len(b)+1) {
			out, err = referenceLZ4(b, want)
		}
	case Brotli:
		out, err = referenceBrotli(b, want)
	default:
		return nil, &UnsupportedError{What: "codec", Name: c.String()}
	}
	if err != nil {
		return nil, corrupt("%v: %v", c, err)
	}
	if len(out) != want {
		return nil, corrupt("%v: %d bytes, header says %d", c, len(out), want)
	}
	return out, nil
}
