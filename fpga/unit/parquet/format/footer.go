package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// These constants describe a file's ends.
const (
	magic          = "PAR1"
	magicEncrypted = "PARE"
	trailerBytes   = 8         // the footer's length and the magic
	maxFooterBytes = 256 << 20 // bytes of Thrift
	firstReadBytes = 64 << 10  // bytes of a file's end that are read at once; most footers fit
)

// These limits keep the memory of a footer in proportion to its bytes. No writer's footer comes near them.
const (
	maxSchemaElements = 1 << 20
	minChunkBytes     = 16 // of a ColumnChunk: its required fields take 17, and those of an encrypted one more
)

// ReadFooter reads the footer of a file of size bytes and checks it: the magic at both ends, the footer's length,
// every chunk's place and counts. A file with an encrypted footer is refused by name.
func ReadFooter(r io.ReaderAt, size int64) (*File, error) {
	b, err := readFooterBytes(r, size)
	if err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	f := &File{Size: size, FooterOffset: size - int64(len(b))}
	if err := f.parseMetadata(b[:len(b)-trailerBytes]); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	if err := f.checkMetadata(f.FooterOffset); err != nil {
		return nil, fmt.Errorf("footer: %w", err)
	}
	f.indexLeaves()
	return f, nil
}

// readFooterBytes returns the file's end from the footer's first byte.
func readFooterBytes(r io.ReaderAt, size int64) ([]byte, error) {
	if size < int64(len(magic)+trailerBytes) {
		return nil, corrupt("file of %d bytes is too short", size)
	}
	var head [len(magic)]byte
	if err := ReadFull(r, head[:], 0); err != nil {
		return nil, err
	}
	tail := make([]byte, min(size, firstReadBytes))
	if err := ReadFull(r, tail, size-int64(len(tail))); err != nil {
		return nil, err
	}
	end := tail[len(tail)-trailerBytes:]
	switch string(end[4:]) {
	case magic:
	case magicEncrypted:
		return nil, &UnsupportedError{What: "encryption", Name: "encrypted footer"}
	default:
		return nil, corrupt("file does not end in %s", magic)
	}
	if string(head[:]) != magic {
		return nil, corrupt("file does not begin with %s", magic)
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if n > size-int64(len(magic)+trailerBytes) {
		return nil, corrupt("%d bytes of footer in a file of %d", n, size)
	}
	if n > maxFooterBytes {
		return nil, &SizeError{What: "footer", Need: n, Have: maxFooterBytes}
	}
	n += trailerBytes
	if n <= int64(len(tail)) {
		return tail[int64(len(tail))-n:], nil
	}
	b := make([]byte, n)
	copy(b[n-int64(len(tail)):], tail)
	return b, ReadFull(r, b[:n-int64(len(tail))], size-n)
}

// ReadFull reads len(p) bytes at off. A file that ends before them is corrupt.
func ReadFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt("file ends at byte %d inside a read to byte %d", off+int64(n), off+int64(len(p)))
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(p), off, err)
}

// parseMetadata reads the structure FileMetaData.
func (f *File) parseMetadata(b []byte) error {
	r := compactReader{src: b}
	var last int32
	var elements []schemaElement
	const hasVersion, hasSchema, hasRows, hasGroups, all = 1, 2, 4, 8, 15
	seen, encrypted := 0, false
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			f.Version = r.int32Field(t)
			seen |= hasVersion
		case 2:
			elements = elements[:0]
			n := r.listField(t, thriftStruct)
			if n > maxSchemaElements {
				return fmt.Errorf("%w: a schema of %d elements, at most %d are read", ErrLimit, n, maxSchemaElements)
			}
			for ; n > 0 && r.err == nil; n-- {
				elements = append(elements, r.readSchemaElement())
			}
			seen |= hasSchema
		case 3:
			f.Rows = r.int64Field(t)
			seen |= hasRows
		case 4:
			f.RowGroups = f.RowGroups[:0]
			for n := r.listField(t, thriftStruct); n > 0 && r.err == nil; n-- {
				f.RowGroups = append(f.RowGroups, r.readRowGroup())
			}
			seen |= hasGroups
		case 6:
			f.CreatedBy = string(r.binaryField(t))
		case 8:
			encrypted = true // of single columns: the footer itself is plain and followed by a signature
			r.skipField(t)
		default:
			r.skipField(t)
		}
	}
	switch {
	case errors.Is(r.err, ErrMoreInput):
		return corrupt("ends inside its metadata")
	case r.err != nil:
		return r.err
	case seen != all:
		return corrupt("a required field is missing")
	case r.bytesLeft() > 0 && !encrypted:
		return corrupt("%d bytes after its metadata", r.bytesLeft())
	}
	f.writer = parseWriter(f.CreatedBy)
	var err error
	f.Leaves, f.Maps, err = schemaLeaves(elements)
	for i := range f.Leaves {
		l := &f.Leaves[i]
		l.RowsUncounted, l.AlwaysCompressed = l.List && f.writer.countsValuesAsRows(), f.writer.alwaysCompressed()
	}
	return err
}

// readRowGroup reads the structure RowGroup.
func (r *compactReader) readRowGroup() RowGroup {
	var g RowGroup
	var last int32
	const hasColumns, hasRows, all = 1, 2, 3
	seen := 0
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			n := r.listField(t, thriftStruct)
			if n > r.bytesLeft()/minChunkBytes {
				r.failCorrupt("list of more column chunks than fit")
				n = 0
			}
			g.Columns = make([]Chunk, 0, n)
			for ; n > 0 && r.err == nil; n-- {
				g.Columns = append(g.Columns, r.readChunk())
			}
			seen |= hasColumns
		case 3:
			g.Rows = r.int64Field(t)
			seen |= hasRows
		default:
			r.skipField(t)
		}
	}
	if seen != all {
		r.failCorrupt("row group without columns or rows")
	}
	return g
}

// readChunk reads the structure ColumnChunk.
func (r *compactReader) readChunk() Chunk {
	var c Chunk
	var last int32
	begin, meta := r.position, false
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		switch last {
		case 1:
			if len(r.binaryField(t)) > 0 {
				c.refuseChunk("nesting", "chunk in another file")
			}
		case 3:
			if r.expectType(t, thriftStruct) {
				r.readChunkMetadata(&c)
			}
			meta = true
		case 4:
			c.OffsetIndexOffset = r.int64Field(t)
		case 5:
			c.OffsetIndexLength = r.int32Field(t)
		case 8:
			c.refuseChunk("encryption", "encrypted column")
			r.skipField(t)
		default:
			r.skipField(t)
		}
	}
	if !meta && c.Unsupported == nil {
		r.failCorrupt("column chunk without metadata")
	}
	if r.position-begin < minChunkBytes {
		r.failCorrupt("column chunk of too few bytes")
	}
	return c
}

// refuseChunk notes why the chunk cannot be read, unless a reason is noted already.
func (c *Chunk) refuseChunk(what, name string) {
	if c.Unsupported == nil {
		c.Unsupported = &UnsupportedError{What: what, Name: name}
	}
}

// readChunkMetadata reads the structure ColumnMetaData.
func (r *compactReader) readChunkMetadata(c *Chunk) {
	var last int32
	c.nulls, c.PresentRows = -1, -1
	const all = 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<9
	seen := 0
	for t := r.nextField(&last); t != thriftStop; t = r.nextField(&last) {
		if last > 0 && last < 16 {
			seen |= 1 << last
		}
		switch last {
		case 1:
			c.physical = Type(enumByte(r.int32Field(t)))
		case 2:
			for n := r.listField(t, thriftInt32); n > 0 && r.err == nil; n-- {
				c.Encodings |= 1 << min(enumByte(r.readInt32()), unknownEncoding)
			}
		case 4:
			c.Codec = Codec(enumByte(r.int32Field(t)))
		case 5:
			c.NumValues = r.int64Field(t)
		case 6:
			c.Uncompressed = r.int64Field(t)
		case 7:
			c.Compressed = r.int64Field(t)
		case 9:
			c.DataOffset = r.int64Field(t)
		case 11:
			c.DictOffset = r.int64Field(t)
		case 12:
			r.readStatistics(t, c)
		case 16:
			r.readSizeStatistics(t, c)
		default:
			r.skipField(t)
		}
	}
	if seen&all != all {
		r.failCorrupt("column metadata without a required field")
	}
}

// unknownEncoding is the bit of an EncodingSet for encodings that have none.
const unknownEncoding = 31

// readableEncodings are the encodings that a chunk may use.
const readableEncodings EncodingSet = 1<<Plain | 1<<PlainDictionary | 1<<RLE | 1<<BitPacked | 1<<DeltaBinaryPacked |
	1<<DeltaLengthByteArray | 1<<DeltaByteArray | 1<<RLEDictionary | 1<<ByteStreamSplit

// checkMetadata compares what the footer says with itself and with the file, whose pages end at end.
func (f *File) checkMetadata(end int64) error {
	if f.Rows < 0 {
		return corrupt("%d rows", f.Rows)
	}
	if f.Rows == 0 { // as some writers leave it: the row groups know
		for i := range f.RowGroups {
			if f.Rows += max(0, f.RowGroups[i].Rows); f.Rows < 0 {
				return corrupt("row groups have more rows than 64 bits can count")
			}
		}
	}
	var rows int64
	for i := range f.RowGroups {
		g := &f.RowGroups[i]
		if g.Rows < 0 || g.Rows > f.Rows-rows {
			return corrupt("row group %d has %d rows of the file's %d", i, g.Rows, f.Rows)
		}
		rows += g.Rows
		if len(g.Columns) != len(f.Leaves) {
			return corrupt("row group %d has %d columns, the schema has %d", i, len(g.Columns), len(f.Leaves))
		}
		for j := range g.Columns {
			if err := f.checkChunk(&g.Columns[j], &f.Leaves[j], g.Rows, end); err != nil {
				return fmt.Errorf("row group %d: column %q: %w", i, f.Leaves[j].Path, err)
			}
		}
	}
	if rows != f.Rows {
		return corrupt("%d rows in the row groups, %d in the file", rows, f.Rows)
	}
	return nil
}

// checkChunk checks a chunk against its leaf, its row group and the end of the file's pages, and sets where the chunk
// begins.
func (f *File) checkChunk(c *Chunk, l *Leaf, rows, end int64) error {
	if c.Unsupported != nil {
		return nil // encrypted or elsewhere: its numbers may be absent
	}
	if c.physical != l.Physical {
		return corrupt("chunk of type %v, column of type %v", c.physical, l.Physical)
	}
	if c.NumValues < rows || (l.MaxRep == 0 && c.NumValues != rows) {
		return corrupt("%d values in %d rows", c.NumValues, rows)
	}
	c.countPresentRows(l, rows)
	if c.NumValues == 0 {
		// No pages are needed, and writers fill in what they like.
		c.Offset, c.DataOffset = int64(len(magic)), int64(len(magic))
		c.Compressed, c.Uncompressed, c.DictOffset = 0, 0, 0
		return nil
	}
	// Some writers say 0 where they mean that there is no dictionary page, and others put the dictionary's place in
	// the data page's: only an offset between the magic and the data is one.
	c.Offset = c.DataOffset
	if c.DictOffset >= int64(len(magic)) && c.DictOffset < c.DataOffset {
		c.Offset = c.DictOffset
	} else {
		c.DictOffset = 0
	}
	if c.Compressed < 0 || c.Uncompressed < 0 {
		return corrupt("%d bytes packed, %d unpacked", c.Compressed, c.Uncompressed)
	}
	if c.Offset < int64(len(magic)) || c.Compressed > end-c.Offset {
		return corrupt("chunk at %d of %d bytes lies outside the file's %d bytes of pages", c.Offset, c.Compressed, end)
	}
	if f.writer.omitsDictionaryHeader() {
		c.Compressed += min(maxDictionaryHeader, end-c.Offset-c.Compressed)
	}
	if c.DataOffset-c.Offset > c.Compressed {
		return corrupt("data page at %d lies outside the chunk", c.DataOffset)
	}
	if err := c.Codec.Supported(); err != nil {
		c.Unsupported = err
	}
	if odd := c.Encodings &^ readableEncodings; odd != 0 && c.Unsupported == nil {
		for e := Encoding(0); e <= unknownEncoding; e++ {
			if odd.Has(e) {
				c.refuseChunk("encoding", e.String())
			}
		}
	}
	return nil
}

// maxDictionaryHeader is the most bytes that a dictionary page's header takes, as parquet-cpp assumes.
const maxDictionaryHeader = 100
