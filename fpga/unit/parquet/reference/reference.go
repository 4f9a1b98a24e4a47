// Package reference decodes Parquet column chunks level by level and value by value, as the specification's text says.
// It is the definition that package decoder is tested against: it shares with it the types, page headers and limits of
// package format, and nothing else. It is slow and keeps a whole chunk as Go values.
package reference

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Column is a whole chunk as the reference decodes it. A row is nil (null) or a value: int64, float32, float64 or
// []byte; a row of a list is nil or a []any of nils and values; a row of lists in a map is nil or a []any of lists,
// null or not; a row of lists in lists is that of a list of the elements of all of them.
type Column struct {
	Kind format.Kind
	List bool
	Rows []any
}

// These are the bounds of the reference, which keeps a whole chunk as Go values.
const (
	maxValues    = 1 << 25
	maxPageBytes = 256 << 20 // bytes
)

// ReadColumn decodes a whole chunk, level by level and value by value. It is slow and takes much memory, and refuses
// chunks of more than 2^25 values with ErrLimit.
func ReadColumn(r io.ReaderAt, f *format.File, rowGroup, leaf int) (Column, error) {
	ch, l, err := f.Chunk(rowGroup, leaf)
	if err != nil {
		return Column{}, err
	}
	ref := Chunk{Type: l.ColumnType(ch.Codec)}
	fail := func(page int, offset int64, err error) (Column, error) {
		return Column{}, &format.PageError{RowGroup: rowGroup, Column: l.Path, Page: page, Offset: offset, Err: err}
	}
	if ch.NumValues > maxValues {
		return fail(0, ch.Offset, fmt.Errorf("%w: %d values", format.ErrLimit, ch.NumValues))
	}
	b := make([]byte, ch.Compressed)
	if err := format.ReadFull(r, b, ch.Offset); err != nil {
		return fail(0, ch.Offset, err)
	}
	left, page, offset := ch.NumValues, 0, ch.Offset
	for left > 0 {
		h, n, err := format.ParsePageHeader(b)
		if err != nil {
			if errors.Is(err, format.ErrMoreInput) {
				err = format.Corrupt("the page's header ends behind its chunk")
			}
			return fail(page, offset, err)
		}
		if len(b)-n < int(h.Compressed) {
			return fail(page, offset, format.Corrupt("page reaches beyond its chunk"))
		}
		switch {
		case h.Type == format.DictionaryPage && left < ch.NumValues:
			return fail(page, offset, format.Corrupt("a dictionary page behind the chunk's first values"))
		case h.HoldsRows():
			if left -= int64(h.NumValues); left < 0 {
				return fail(page, offset, format.Corrupt("pages have more values than the chunk"))
			}
		}
		// Pages that hold no values are skipped: data pages of 0 values, indexes, and pages of unknown types.
		if h.Type == format.DictionaryPage || h.HoldsRows() && h.NumValues > 0 {
			if err := ref.AddPage(&h, b[n:n+int(h.Compressed)]); err != nil {
				return fail(page, offset, err)
			}
		}
		b = b[n+int(h.Compressed):]
		offset += int64(n) + int64(h.Compressed)
		page++
	}
	if got, want := int64(len(ref.Rows)), f.RowGroups[rowGroup].Rows; got != want {
		return fail(page, offset, format.Corrupt("%d rows in the pages, %d in the row group", got, want))
	}
	return Column{Kind: l.Physical.Kind(), List: l.List, Rows: ref.Rows}, nil
}

// Chunk decodes the pages of one column chunk, one after the other. A caller that has no whole file sets Type, and
// Dictionary where no dictionary page comes first.
type Chunk struct {
	Type       format.ColumnType
	Dictionary []any // nil until a dictionary page was added
	Rows       []any // Rows are those of the data pages added so far, as in Column.
	rowEnded   bool  // the last data page ended its last row
}

// AddPage decodes the page behind a header: payload is the page as it lies in the file.
func (c *Chunk) AddPage(h *format.PageHeader, payload []byte) error {
	if h.HasCRC {
		if err := h.CheckCRC(crc32.ChecksumIEEE(payload)); err != nil {
			return err
		}
	}
	switch h.Type {
	case format.IndexPage:
		return nil
	case format.DictionaryPage:
		return c.decodeDictionary(h, payload)
	case format.DataPage:
		return c.decodePageV1(h, payload)
	case format.DataPageV2:
		return c.decodePageV2(h, payload)
	}
	return &format.UnsupportedError{What: "page type", Name: h.Type.String()}
}

// decodeDictionary decodes a dictionary page.
func (c *Chunk) decodeDictionary(h *format.PageHeader, payload []byte) error {
	if c.Dictionary != nil {
		return format.Corrupt("a second dictionary page")
	}
	if h.Encoding != format.Plain && h.Encoding != format.PlainDictionary {
		return &format.UnsupportedError{What: "encoding", Name: h.Encoding.String() + " of a dictionary"}
	}
	b, err := Unpack(payload, int(h.Uncompressed), c.Type.Codec)
	if err != nil {
		return err
	}
	c.Dictionary, err = c.decodePlain(b, int(h.NumValues))
	if c.Dictionary == nil {
		c.Dictionary = []any{}
	}
	return err
}

// decodePageV1 decodes a v1 data page.
func (c *Chunk) decodePageV1(h *format.PageHeader, payload []byte) error {
	b, err := Unpack(payload, int(h.Uncompressed), c.Type.Codec)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	rep, b, err := decodeLevels(b, h.RepEncoding, n, c.Type.MaxRep)
	if err != nil {
		return err
	}
	def, b, err := decodeLevels(b, h.DefEncoding, n, c.Type.MaxDef)
	if err != nil {
		return err
	}
	if n > 0 {
		if c.rowEnded && rep[0] != 0 {
			return format.Corrupt("page begins inside a row that the page before ended")
		}
		c.rowEnded = false
	}
	return c.assembleRows(h, rep, def, b)
}

// decodePageV2 decodes a v2 data page.
func (c *Chunk) decodePageV2(h *format.PageHeader, payload []byte) error {
	levels := int(h.RepBytes + h.DefBytes)
	codec := c.Type.Codec
	if !h.IsCompressed && !c.Type.AlwaysCompressed {
		codec = format.Uncompressed
	}
	b, err := Unpack(payload[levels:], int(h.Uncompressed)-levels, codec)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	rep, def := make([]uint32, n), make([]uint32, n) // a column without levels has zeros
	if c.Type.MaxRep > 0 {
		if rep, err = ReadRuns(payload[:h.RepBytes], levelWidth(c.Type.MaxRep), n); err != nil {
			return err
		}
	}
	if c.Type.MaxDef > 0 {
		if def, err = ReadRuns(payload[h.RepBytes:levels], levelWidth(c.Type.MaxDef), n); err != nil {
			return err
		}
	}
	before := len(c.Rows)
	if err := c.assembleRows(h, rep, def, b); err != nil || c.Type.List && c.Type.RowsUncounted {
		return err
	}
	if len(c.Rows)-before != int(h.NumRows) || (n > 0 && rep[0] != 0) {
		return format.Corrupt("%d rows in the page, %d in its header", len(c.Rows)-before, h.NumRows)
	}
	c.rowEnded = c.rowEnded || n > 0
	return nil
}

// assembleRows makes rows of a page's levels and values.
func (c *Chunk) assembleRows(h *format.PageHeader, rep, def []uint32, b []byte) error {
	there := 0
	for i := range def {
		if rep[i] > uint32(c.Type.MaxRep) || def[i] > uint32(c.Type.MaxDef) {
			return format.Corrupt("level out of range")
		}
		if def[i] == uint32(c.Type.MaxDef) {
			there++
		}
	}
	values, err := c.decodeValues(h, b, there)
	if err != nil {
		return err
	}
	for i := range def {
		var v any
		if def[i] == uint32(c.Type.MaxDef) {
			v, values = values[0], values[1:]
		}
		if c.Type.Flattened && i > 0 && !c.mayFollow(rep[i], def[i-1]) {
			return format.Corrupt("an empty or null list has elements")
		}
		if err := c.addRow(rep[i], def[i], v); err != nil {
			return err
		}
	}
	return nil
}

// addRow adds what a pair of levels says: a row, or an element of the last row.
func (c *Chunk) addRow(rep, def uint32, v any) error {
	element := uint32(c.Type.RepDef)
	switch {
	case !c.Type.List:
		c.Rows = append(c.Rows, v)
	case c.Type.Flattened:
		return c.addFlattened(rep, def, v)
	case c.Type.MaxRep == 2:
		return c.addMapRow(rep, def, v)
	case rep == 0 && def+1 < element:
		c.Rows = append(c.Rows, nil)
	case rep == 0 && def < element:
		c.Rows = append(c.Rows, []any{})
	case rep == 0:
		c.Rows = append(c.Rows, []any{v})
	default:
		if len(c.Rows) == 0 {
			return format.Corrupt("chunk begins inside a row")
		}
		list, _ := c.Rows[len(c.Rows)-1].([]any)
		if len(list) == 0 || def < element {
			return format.Corrupt("an empty or null list has elements")
		}
		c.Rows[len(c.Rows)-1] = append(list, v)
	}
	return nil
}

// mayFollow reports whether a repetition level of lists in lists may follow a definition level of the same page: an
// empty or null list has no further element.
func (c *Chunk) mayFollow(rep, before uint32) bool {
	switch rep {
	case 0:
		return true
	case uint32(c.Type.MaxRep):
		return before >= uint32(c.Type.RepDef)
	}
	return before >= uint32(c.Type.EntryDef)
}

// addFlattened adds what a pair of levels says of lists in lists: a row, an element of the last row, or a list without
// elements inside the last row.
func (c *Chunk) addFlattened(rep, def uint32, v any) error {
	entry, element := uint32(c.Type.EntryDef), uint32(c.Type.RepDef)
	if rep == 0 {
		var row any // null
		if def+1 >= entry {
			row = []any{}
		}
		c.Rows = append(c.Rows, row)
	}
	switch {
	case len(c.Rows) == 0:
		return format.Corrupt("chunk begins inside a row")
	case rep > 0 && def < entry, rep == uint32(c.Type.MaxRep) && def < element:
		return format.Corrupt("an empty or null list inside a list")
	case def >= element:
		list, _ := c.Rows[len(c.Rows)-1].([]any)
		c.Rows[len(c.Rows)-1] = append(list, v)
	}
	return nil
}

// addMapRow adds what a pair of levels says of lists in a map: a row, an entry of the last row, or an element of the
// last entry.
func (c *Chunk) addMapRow(rep, def uint32, v any) error {
	entry, element := uint32(c.Type.EntryDef), uint32(c.Type.RepDef)
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
		return format.Corrupt("chunk begins inside a row")
	}
	entries, _ := c.Rows[len(c.Rows)-1].([]any)
	if len(entries) == 0 || def < entry {
		return format.Corrupt("an empty or null map goes on")
	}
	if rep == 1 {
		c.Rows[len(c.Rows)-1] = append(entries, list)
		return nil
	}
	last, _ := entries[len(entries)-1].([]any)
	if len(last) == 0 || def < element {
		return format.Corrupt("an empty or null list goes on")
	}
	entries[len(entries)-1] = append(last, v)
	return nil
}

// decodeValues decodes a data page's n values.
func (c *Chunk) decodeValues(h *format.PageHeader, b []byte, n int) ([]any, error) {
	switch {
	case h.Encoding == format.Plain:
		return c.decodePlain(b, n)
	case h.Encoding == format.RLE && c.Type.Physical == format.Boolean:
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, format.Corrupt("booleans reach beyond their page")
		}
		bits, err := ReadRuns(b[4:4+binary.LittleEndian.Uint32(b)], 1, n)
		if err != nil {
			return nil, err
		}
		var out []any
		for _, v := range bits {
			if v > 1 {
				return nil, format.Corrupt("boolean %d", v)
			}
			out = append(out, int64(v))
		}
		return out, nil
	case h.Encoding == format.PlainDictionary || h.Encoding == format.RLEDictionary:
		return c.decodeIndices(b, n)
	case h.Encoding == format.DeltaBinaryPacked && (c.Type.Physical == format.Int32 || c.Type.Physical == format.Int64):
		return c.decodeDeltas(b, n, h.NumValues)
	case h.Encoding == format.DeltaLengthByteArray && c.Type.Physical == format.ByteArray:
		return c.decodeByteArrays(b, n, h.NumValues, false)
	case h.Encoding == format.DeltaByteArray && (c.Type.Physical == format.ByteArray ||
		c.Type.Physical == format.FixedLenByteArray):
		return c.decodeByteArrays(b, n, h.NumValues, true)
	case h.Encoding == format.ByteStreamSplit && c.Type.Physical != format.Boolean &&
		c.Type.Physical != format.ByteArray:
		return c.joinStreams(b, n)
	}
	return nil, &format.UnsupportedError{What: "encoding", Name: fmt.Sprintf("%v of %v", h.Encoding, c.Type.Physical)}
}

// decodeIndices decodes n values through the dictionary.
func (c *Chunk) decodeIndices(b []byte, n int) ([]any, error) {
	if c.Dictionary == nil {
		return nil, format.Corrupt("indices without a dictionary")
	}
	if n == 0 && len(b) == 0 {
		return nil, nil
	}
	if len(b) == 0 || b[0] > 32 {
		return nil, format.Corrupt("width of indices")
	}
	indices, err := ReadRuns(b[1:], int(b[0]), n)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, i := range indices {
		if int64(i) >= int64(len(c.Dictionary)) {
			return nil, format.Corrupt("index %d, dictionary of %d", i, len(c.Dictionary))
		}
		out = append(out, c.Dictionary[i])
	}
	return out, nil
}

// decodePlain decodes n PLAIN values.
func (c *Chunk) decodePlain(b []byte, n int) ([]any, error) {
	var out []any
	for i := range n {
		if c.Type.Physical == format.Boolean {
			if i/8 >= len(b) {
				return nil, format.Corrupt("page ends before value %d of %d", i, n)
			}
			out = append(out, int64(b[i/8]>>(i%8)&1))
			continue
		}
		size := map[format.Type]int{format.Int32: 4, format.Int64: 8, format.Float: 4, format.Double: 8,
			format.ByteArray: 4, format.FixedLenByteArray: int(c.Type.TypeLength), format.Int96: 12}[c.Type.Physical]
		if size > len(b) {
			return nil, format.Corrupt("page ends before value %d of %d", i, n)
		}
		v := b[:size]
		b = b[size:]
		switch c.Type.Physical {
		case format.Int32:
			x := binary.LittleEndian.Uint32(v)
			if c.Type.Unsigned {
				out = append(out, int64(x))
			} else {
				out = append(out, int64(int32(x)))
			}
		case format.Int64:
			out = append(out, int64(binary.LittleEndian.Uint64(v)))
		case format.Float:
			out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(v)))
		case format.Double:
			out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(v)))
		case format.FixedLenByteArray, format.Int96:
			out = append(out, v)
		case format.ByteArray:
			length := binary.LittleEndian.Uint32(v)
			if uint64(length) > uint64(len(b)) {
				return nil, format.Corrupt("page ends inside value %d of %d", i, n)
			}
			out = append(out, b[:length])
			b = b[length:]
		}
	}
	return out, nil
}

// levelWidth returns the bits that levels up to greatest take.
func levelWidth(greatest uint8) int {
	n := 0
	for ; greatest > 0; greatest >>= 1 {
		n++
	}
	return n
}

// decodeLevels takes n levels from the front of a v1 page. A column without levels has n zeros.
func decodeLevels(b []byte, e format.Encoding, n int, greatest uint8) (levels []uint32, rest []byte, err error) {
	width := levelWidth(greatest)
	switch {
	case greatest == 0:
		return make([]uint32, n), b, nil
	case e == format.RLE:
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, nil, format.Corrupt("levels reach beyond their page")
		}
		size := 4 + int(binary.LittleEndian.Uint32(b))
		levels, err = ReadRuns(b[4:size], width, n)
		return levels, b[size:], err
	case e == format.BitPacked:
		size := (n*width + 7) / 8
		if size > len(b) {
			return nil, nil, format.Corrupt("levels reach beyond their page")
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
	return nil, nil, &format.UnsupportedError{What: "encoding", Name: e.String() + " of levels"}
}

// ReadRuns decodes n values of width bits, 0 to 32, from a section of the RLE / bit-packed hybrid.
func ReadRuns(b []byte, width, n int) ([]uint32, error) {
	var out []uint32
	for len(out) < n {
		header, size := binary.Uvarint(b)
		if size <= 0 || header > math.MaxUint32 {
			return nil, format.Corrupt("run's header")
		}
		b = b[size:]
		count := int(header >> 1)
		if header&1 == 0 {
			bytes := (width + 7) / 8
			if bytes > len(b) {
				return nil, format.Corrupt("run ends early")
			}
			var v uint32
			for i := range bytes {
				v |= uint32(b[i]) << (8 * i)
			}
			b = b[bytes:]
			if count > 0 && uint64(v) >= 1<<width {
				return nil, format.Corrupt("value %d of %d bits", v, width)
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
					return nil, format.Corrupt("run ends early")
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

// Unpack decompresses b, which must become want bytes.
func Unpack(b []byte, want int, c format.Codec) ([]byte, error) {
	if want > maxPageBytes {
		return nil, &format.SizeError{What: "unpacked page", Need: int64(want), Have: maxPageBytes}
	}
	if c != format.Uncompressed && len(b) == 0 && want == 0 {
		return nil, nil
	}
	var out []byte
	var err error
	switch c {
	case format.Uncompressed:
		out = b
	case format.Snappy:
		var n int
		if n, err = snappy.DecodedLen(b); err == nil && (n != want || n > 64*len(b)) {
			err = format.Corrupt("%d bytes, header says %d", n, want)
		}
		if err == nil {
			out, err = snappy.Decode(nil, b)
		}
	case format.Gzip:
		out, err = unpackGzip(b, want)
	case format.Zstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(format.MaxZstdWindow)); err == nil {
			out, err = io.ReadAll(io.LimitReader(z, int64(want)+1))
			z.Close()
		}
	case format.LZ4Raw:
		out, err = unpackLZ4Block(b, want)
	case format.LZ4:
		out, err = unpackLZ4(b, want)
	case format.Brotli:
		out, err = unpackBrotli(b, want)
	default:
		return nil, &format.UnsupportedError{What: "codec", Name: c.String()}
	}
	if err != nil {
		return nil, format.Corrupt("%v: %v", c, err)
	}
	if len(out) != want {
		return nil, format.Corrupt("%v: %d bytes, header says %d", c, len(out), want)
	}
	return out, nil
}
