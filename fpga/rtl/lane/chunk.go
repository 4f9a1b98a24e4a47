package lane

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Bounds of chunks that are simulated.
const (
	maxChunkBytes = 1 << 30
	maxPageBytes  = 256 << 20 // unpacked
	// maxPageValues keeps the results of a run of one level below what a simulator makes of one transfer.
	maxPageValues = 1 << 22
)

// chunkRows are the rows of a column chunk. A flat column has one element a row.
type chunkRows struct {
	lengths    []uint32 // elements of each row
	rowPresent []bool   // It says of each row that it is not null.
	present    []bool   // It says of each element that it is not null.
}

// section is the values of a data page that are not null, as the page holds them.
type section struct {
	setup      rtl.Setup // It sets plain_decoder up, or hybrid_decoder for indices of the dictionary.
	encoded    bool      // the section holds indices
	bytes      []byte
	count      int   // values
	elements   int   // The page has as many, null or not.
	page       int   // number of the page in its chunk
	pageOffset int64 // The page's header begins there in the file.
}

// chunk is a column chunk: its rows, and its values as they are in its pages.
type chunk struct {
	chunkRows
	columnType format.ColumnType
	path       string
	rowGroup   int
	dictionary *rtl.Setup // nil until a dictionary page has come
	sections   []section
	tokens     [][]byte // Each element has one; nil for numbers.
	values     []uint64 // Each element has one once values are decoded; 0 for a null.
}

// chunkDecoder reads the pages of one column chunk. The levels of all pages become rows at the end, since a row of a
// list may go on in the next page.
type chunkDecoder struct {
	*chunk
	s                        *unitSet
	page                     int
	offset                   int64    // The page's header begins there in the file.
	repetitions, definitions []uint8  // They are those of all pages so far.
	arrays                   [][]byte // byte arrays that are not null
}

// fail names a page in an error.
func (c *chunk) fail(page int, offset int64, err error) error {
	return &format.PageError{RowGroup: c.rowGroup, Column: c.path, Page: page, Offset: offset, Err: err}
}

// decodeChunk decodes the chunk of a leaf in a row group.
func (s *unitSet) decodeChunk(r io.ReaderAt, f *format.File, rowGroup, leaf int) (*chunk, error) {
	ch, l, err := f.Chunk(rowGroup, leaf)
	if err != nil {
		return nil, err
	}
	c := &chunk{columnType: l.ColumnType(ch.Codec), path: l.Path, rowGroup: rowGroup}
	d := &chunkDecoder{chunk: c, s: s, offset: ch.Offset}
	switch physical := c.columnType.Physical; {
	case c.columnType.MaxRep > 1:
		return nil, lacks("column %q: the unit list_lengths takes lists, and no lists of lists", l.Name)
	case physical == format.ByteArray && c.columnType.List:
		return nil, lacks("column %q: no unit takes lists of byte arrays", l.Name)
	case ch.Compressed > maxChunkBytes:
		return nil, lacks("column %q: a simulated chunk has at most %d bytes", l.Name, maxChunkBytes)
	}
	b := make([]byte, ch.Compressed)
	err = format.ReadFull(r, b, ch.Offset)
	if err == nil {
		err = d.addPages(b, ch.NumValues)
	}
	if err == nil {
		err = d.finish(f.RowGroups[rowGroup].Rows)
	}
	if err != nil {
		return nil, c.fail(d.page, d.offset, err)
	}
	return c, nil
}

// addPages reads pages until they have the values of the chunk.
func (d *chunkDecoder) addPages(b []byte, left int64) error {
	for left > 0 {
		h, n, err := format.ParsePageHeader(b)
		if errors.Is(err, format.ErrMoreInput) || err == nil && len(b)-n < int(h.Compressed) {
			err = format.Corrupt("the page reaches beyond its chunk")
		}
		if err != nil {
			return err
		}
		if h.HoldsRows() {
			if left -= int64(h.NumValues); left < 0 {
				return format.Corrupt("pages have more values than the chunk")
			}
		}
		if err := d.addPage(&h, b[n:n+int(h.Compressed)]); err != nil {
			return err
		}
		b = b[n+int(h.Compressed):]
		d.offset += int64(n) + int64(h.Compressed)
		d.page++
	}
	return nil
}

// addPage reads the page behind a header.
func (d *chunkDecoder) addPage(h *format.PageHeader, payload []byte) error {
	d.s.note(firmwareHeaders)
	if h.Type == format.IndexPage {
		return nil
	}
	if h.Type != format.DictionaryPage && !h.HoldsRows() {
		return &format.UnsupportedError{What: "page type", Name: h.Type.String()}
	}
	switch {
	case h.Uncompressed > maxPageBytes:
		return &format.SizeError{What: "unpacked page", Need: int64(h.Uncompressed), Have: maxPageBytes}
	case h.NumValues > maxPageValues:
		return lacks("a simulated page has at most %d values, and not %d", maxPageValues, h.NumValues)
	}
	var unpacked []byte
	if h.Packed(&d.columnType) {
		d.s.note(firmwareDecompression + d.columnType.Codec.String())
		unpacked = make([]byte, h.Uncompressed)
	}
	page, err := decoder.Unpack(unpacked, h, payload, &d.columnType)
	if err != nil {
		return err
	}
	if h.Type == format.DictionaryPage {
		return d.addDictionary(h, page)
	}
	return d.addRows(h, page)
}

// addDictionary decodes a dictionary page.
func (d *chunkDecoder) addDictionary(h *format.PageHeader, page []byte) error {
	switch {
	case d.dictionary != nil:
		return format.Corrupt("a second dictionary page")
	case h.Encoding != format.Plain && h.Encoding != format.PlainDictionary:
		return &format.UnsupportedError{What: "encoding", Name: h.Encoding.String() + " of a dictionary"}
	}
	values, err := d.s.decodePlain(page, d.columnType, uint32(h.NumValues))
	if err != nil {
		return err
	}
	setup, err := rtl.DictionaryGather(values)
	d.dictionary = &setup
	return err
}

// addRows decodes a data page.
func (d *chunkDecoder) addRows(h *format.PageHeader, page []byte) error {
	repetitions, definitions, rest, err := d.readLevels(h, page)
	if err != nil {
		return err
	}
	ct := &d.columnType
	rows, one := 0, section{page: d.page, pageOffset: d.offset}
	for i, definition := range definitions {
		if repetitions[i] == 0 {
			rows++
		}
		if definition >= ct.RepDef {
			one.elements++
		}
		if definition == ct.MaxDef {
			one.count++
		}
	}
	if h.Type == format.DataPageV2 && !(ct.List && ct.RowsUncounted) &&
		(rows != int(h.NumRows) || len(repetitions) > 0 && repetitions[0] != 0) {
		return format.Corrupt("%d rows in the page, %d in its header", rows, h.NumRows)
	}
	d.repetitions, d.definitions = append(d.repetitions, repetitions...), append(d.definitions, definitions...)
	return d.addSection(one, h.Encoding, rest)
}

// addSection adds the section of a data page's values.
func (d *chunkDecoder) addSection(one section, encoding format.Encoding, b []byte) (err error) {
	switch {
	case d.columnType.Physical == format.ByteArray && encoding == format.Plain:
		return d.cutByteArrays(b, one.count)
	case d.columnType.Physical == format.ByteArray:
		return lacks("no unit decodes byte arrays, which are cut here of PLAIN pages only, and not of %v", encoding)
	case encoding == format.Plain:
		one.bytes = b
		one.setup, err = rtl.PlainDecoder(d.columnType, uint32(one.count))
	case !encoding.IsDictionary():
		return lacks("no unit decodes %v of %v", encoding, d.columnType.Physical)
	case d.dictionary == nil:
		return format.Corrupt("indices without a dictionary")
	case one.count == 0 && len(b) == 0:
		one.encoded = true
		one.setup, err = rtl.HybridDecoder(0, 0, 0)
	case len(b) == 0 || b[0] > 32:
		return format.Corrupt("width of indices")
	default:
		one.encoded, one.bytes = true, b[1:]
		one.setup, err = rtl.HybridDecoder(uint(b[0]), 1<<32-1, uint32(one.count))
	}
	d.sections = append(d.sections, one)
	return err
}

// cutByteArrays cuts a section of PLAIN byte arrays, for which there is no unit, into tokens.
func (d *chunkDecoder) cutByteArrays(b []byte, count int) error {
	d.s.note(firmwareByteArrays)
	for i := range count {
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return format.Corrupt("page ends before value %d of %d", i, count)
		}
		end := 4 + int(binary.LittleEndian.Uint32(b))
		d.arrays = append(d.arrays, b[4:end])
		b = b[end:]
	}
	return nil
}

// readLevels decodes a data page's levels, and returns what is behind them. A column without levels has zeros.
func (d *chunkDecoder) readLevels(h *format.PageHeader, page []byte) (repetitions, definitions []uint8, rest []byte,
	err error,
) {
	ct := &d.columnType
	if h.Type == format.DataPageV2 {
		behind := int(h.RepBytes) + int(h.DefBytes)
		if repetitions, err = d.levels(page[:h.RepBytes], ct.MaxRep, h.NumValues); err == nil {
			definitions, err = d.levels(page[h.RepBytes:behind], ct.MaxDef, h.NumValues)
		}
		return repetitions, definitions, page[behind:], err
	}
	if repetitions, page, err = d.prefixedLevels(page, h.RepEncoding, ct.MaxRep, h.NumValues); err == nil {
		definitions, page, err = d.prefixedLevels(page, h.DefEncoding, ct.MaxDef, h.NumValues)
	}
	return repetitions, definitions, page, err
}

// prefixedLevels decodes levels behind their length, as a v1 page has them.
func (d *chunkDecoder) prefixedLevels(page []byte, encoding format.Encoding, greatest uint8, count int32,
) (levels []uint8, rest []byte, err error) {
	switch {
	case greatest == 0:
		return make([]uint8, count), page, nil
	case encoding == format.BitPacked:
		return nil, nil, lacks("no unit decodes levels in %v", encoding)
	case encoding != format.RLE:
		return nil, nil, &format.UnsupportedError{What: "encoding", Name: encoding.String() + " of levels"}
	case len(page) < 4 || uint64(binary.LittleEndian.Uint32(page)) > uint64(len(page)-4):
		return nil, nil, format.Corrupt("levels reach beyond their page")
	}
	end := 4 + int(binary.LittleEndian.Uint32(page))
	levels, err = d.levels(page[4:end], greatest, count)
	return levels, page[end:], err
}

// levels decodes a section of levels with unit hybrid_decoder.
func (d *chunkDecoder) levels(section []byte, greatest uint8, count int32) ([]uint8, error) {
	levels := make([]uint8, count)
	if greatest == 0 {
		return levels, nil
	}
	values, err := d.s.decodeHybrid(section, uint(bits.Len8(greatest)), uint32(greatest), uint32(count))
	for i, value := range values {
		levels[i] = uint8(value)
	}
	return levels, err
}

// finish makes rows of the levels of all pages, and puts byte arrays in their places.
func (d *chunkDecoder) finish(rows int64) error {
	var err error
	if d.chunkRows, err = d.s.rowsOf(d.columnType, d.repetitions, d.definitions); err != nil {
		return err
	}
	if int64(len(d.lengths)) != rows {
		return format.Corrupt("%d rows in the pages, %d in the row group", len(d.lengths), rows)
	}
	if d.columnType.Physical != format.ByteArray {
		return nil
	}
	d.tokens = make([][]byte, len(d.present))
	at := 0
	for i, present := range d.present {
		if present {
			d.tokens[i] = d.arrays[at]
			at++
		}
	}
	return nil
}

// decodeValues decodes the sections of a chunk, and puts every value in its place.
func (s *unitSet) decodeValues(c *chunk) error {
	if c.values != nil || c.tokens != nil {
		return nil
	}
	values := make([]uint64, len(c.present))
	at := 0
	for _, one := range c.sections {
		some, err := s.decodeSection(c, one)
		if err != nil {
			return c.fail(one.page, one.pageOffset, err)
		}
		at += s.place(values[at:], some, c.present[at:at+one.elements])
	}
	c.values = values
	return nil
}

// decodeSection decodes the values of a page.
func (s *unitSet) decodeSection(c *chunk, one section) ([]uint64, error) {
	if !one.encoded {
		return s.decodePlain(one.bytes, c.columnType, uint32(one.count))
	}
	indices, err := s.runHybrid(one.setup, one.bytes, one.count)
	if err != nil {
		return nil, err
	}
	return s.gather(*c.dictionary, indices)
}

// place puts values where elements are present, and returns the number of elements.
func (s *unitSet) place(to, values []uint64, present []bool) int {
	if slices.Contains(present, false) {
		s.note(firmwareNulls)
	}
	for i, there := range present {
		if there {
			to[i], values = values[0], values[1:]
		}
	}
	return len(present)
}

// absentChunk returns the rows of a column that the file lacks: all are null.
func absentChunk(rows int64, list, bytes bool) *chunk {
	c := &chunk{values: []uint64{}}
	c.lengths, c.rowPresent = make([]uint32, rows), make([]bool, rows)
	if list {
		return c
	}
	c.present = make([]bool, rows)
	for i := range c.lengths {
		c.lengths[i] = 1
	}
	c.values = make([]uint64, rows)
	if bytes {
		c.tokens = make([][]byte, rows)
	}
	return c
}
