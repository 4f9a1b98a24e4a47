package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// A writer of Parquet for tests: it can write what other libraries will not (BIT_PACKED levels, runs cut anywhere,
// rows that go on over pages), and what nobody should.

// thriftWriter writes the compact protocol.
type thriftWriter struct {
	b    []byte
	last []int32
}

func (w *thriftWriter) begin() { w.last = append(w.last, 0) }

func (w *thriftWriter) end() {
	w.b = append(w.b, 0)
	w.last = w.last[:len(w.last)-1]
}

func (w *thriftWriter) field(id int32, t byte) {
	last := &w.last[len(w.last)-1]
	if d := id - *last; d > 0 && d < 16 {
		w.b = append(w.b, byte(d)<<4|t)
	} else {
		w.b = append(w.b, t)
		w.zigzag(int64(id))
	}
	*last = id
}

func (w *thriftWriter) zigzag(v int64) { w.b = binary.AppendUvarint(w.b, uint64(v<<1)^uint64(v>>63)) }

func (w *thriftWriter) i32(id, v int32) { w.field(id, tI32); w.zigzag(int64(v)) }

func (w *thriftWriter) i64(id int32, v int64) { w.field(id, tI64); w.zigzag(v) }

func (w *thriftWriter) bool(id int32, v bool) {
	if v {
		w.field(id, tTrue)
	} else {
		w.field(id, tFalse)
	}
}

func (w *thriftWriter) str(id int32, v string) {
	w.field(id, tBinary)
	w.rawString(v)
}

func (w *thriftWriter) rawString(v string) {
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *thriftWriter) list(id int32, elem byte, n int) {
	w.field(id, tList)
	if n < 15 {
		w.b = append(w.b, byte(n)<<4|elem)
		return
	}
	w.b = append(w.b, 0xf0|elem)
	w.b = binary.AppendUvarint(w.b, uint64(n))
}

// header writes a page header.
func (h *PageHeader) marshal() []byte {
	var w thriftWriter
	w.begin()
	w.i32(1, int32(h.Type))
	w.i32(2, h.Uncompressed)
	w.i32(3, h.Compressed)
	if h.HasCRC {
		w.i32(4, int32(h.CRC))
	}
	switch h.Type {
	case DataPage:
		w.field(5, tStruct)
		w.begin()
		w.i32(1, h.NumValues)
		w.i32(2, int32(h.Encoding))
		w.i32(3, int32(h.DefEncoding))
		w.i32(4, int32(h.RepEncoding))
		w.end()
	case DictionaryPage:
		w.field(7, tStruct)
		w.begin()
		w.i32(1, h.NumValues)
		w.i32(2, int32(h.Encoding))
		w.end()
	case DataPageV2:
		w.field(8, tStruct)
		w.begin()
		w.i32(1, h.NumValues)
		w.i32(2, h.NumNulls)
		w.i32(3, h.NumRows)
		w.i32(4, int32(h.Encoding))
		w.i32(5, h.DefBytes)
		w.i32(6, h.RepBytes)
		if !h.IsCompressed {
			w.bool(7, false)
		}
		w.end()
	}
	w.end()
	return w.b
}

// shape is how a leaf hangs in the schema.
type shape uint8

const (
	shapeRequired shape = iota
	shapeOptional
	shapeInGroup            // optional group { optional leaf }: levels up to 2
	shapeList               // optional list of optional elements
	shapeListRequired       // required list of required elements
	shapeListOfRequired     // optional list of required elements
	shapeListInGroup        // optional group { optional list of optional elements }: levels up to 4
	shapeRepeated           // repeated leaf
	shapeTwoLevel           // optional group (LIST) { repeated leaf }
	shapes              = 9 // how many a file is made of

	// Of one leaf of a map only, so for pages and chunks.
	shapeInMap         shape = 9  // optional map to optional lists of optional elements
	shapeInMapRequired shape = 10 // required map to required lists of required elements
	pageShapes               = 11
)

// schema writes the shape's schema elements and tells how many there are.
func (s shape) schema(w *thriftWriter, name string, leaf func(name string, repetition int32)) int {
	group := func(name string, repetition, children int32, list bool) {
		w.begin()
		w.i32(3, repetition)
		w.str(4, name)
		w.i32(5, children)
		if list {
			w.i32(6, 3)
		}
		w.end()
	}
	list := func(outer, inner int32) {
		group(name, outer, 1, true)
		group("list", repeated, 1, false)
		leaf("element", inner)
	}
	switch s {
	case shapeRequired:
		leaf(name, required)
	case shapeOptional:
		leaf(name, optional)
	case shapeInGroup:
		group("g", optional, 1, false)
		leaf(name, optional)
		return 2
	case shapeList:
		list(optional, optional)
		return 3
	case shapeListRequired:
		list(required, required)
		return 3
	case shapeListOfRequired:
		list(optional, required)
		return 3
	case shapeListInGroup:
		group("g", optional, 1, false)
		list(optional, optional)
		return 4
	case shapeRepeated:
		leaf(name, repeated)
	case shapeTwoLevel:
		group(name, optional, 1, true)
		leaf("array", repeated)
		return 2
	}
	return 1
}

// built is a column to be written and what it must read as.
type built struct {
	shape    shape
	physical Type
	length   int32 // of fixed-length byte arrays
	unsigned bool
	codec    Codec
	v2       bool
	encoding Encoding // of the values
	msb      bool     // BIT_PACKED levels (v1)
	crc      bool
	split    bool // rows go on over pages (v1 lists)
	pageRows int  // 0: one page
	bare     bool // pages of nulls in a DELTA encoding leave out even its header
	rows     []any
	// plainRuns writes runs as common writers do: of one value from 8 on, else packed.
	plainRuns bool
}

func (c *built) String() string {
	return fmt.Sprintf("shape %d %v/%d unsigned %t %v v2 %t %v msb %t crc %t split %t pages of %d, %d rows", c.shape, c.physical, c.length, c.unsigned,
		c.codec, c.v2, c.encoding, c.msb, c.crc, c.split, c.pageRows, len(c.rows))
}

func (s shape) levels() (maxDef, repDef uint8) {
	switch s {
	case shapeRequired:
		return 0, 0
	case shapeOptional:
		return 1, 0
	case shapeInGroup:
		return 2, 0
	case shapeList:
		return 3, 2
	case shapeListRequired, shapeRepeated:
		return 1, 1
	case shapeListOfRequired, shapeTwoLevel:
		return 2, 2
	case shapeListInGroup:
		return 4, 3
	case shapeInMap:
		return 5, 4
	case shapeInMapRequired:
		return 2, 2
	}
	return 0, 0
}

// entryDef is the definition level of a map's entry; 0 outside of maps.
func (s shape) entryDef() uint8 {
	switch s {
	case shapeInMap:
		return 2
	case shapeInMapRequired:
		return 1
	}
	return 0
}

// columnType is the type of a leaf of the shape.
func (s shape) columnType() (ct ColumnType) {
	ct.MaxDef, ct.RepDef = s.levels()
	ct.EntryDef = s.entryDef()
	if ct.List = ct.RepDef > 0; ct.List {
		ct.MaxRep = 1
	}
	if ct.EntryDef > 0 {
		ct.MaxRep = 2
	}
	return ct
}

// levelled is one pair of levels and its value, nil if there is none.
type levelled struct {
	rep, def byte
	v        any
}

// shred turns rows into levels, as the Dremel paper says. Where more than one level means null, r picks.
func (c *built) shred(r *rand.Rand) []levelled {
	if c.shape.entryDef() > 0 {
		return c.shredMaps(r)
	}
	maxDef, repDef := c.shape.levels()
	var out []levelled
	for _, row := range c.rows {
		list, isList := row.([]any)
		switch {
		case repDef == 0 && row != nil:
			out = append(out, levelled{0, maxDef, row})
		case repDef == 0:
			out = append(out, levelled{0, byte(r.Intn(int(maxDef))), nil})
		case !isList:
			out = append(out, levelled{0, byte(r.Intn(int(repDef) - 1)), nil})
		case len(list) == 0:
			out = append(out, levelled{0, repDef - 1, nil})
		}
		for i, v := range list {
			l := levelled{byte(min(i, 1)), maxDef, v}
			if v == nil {
				l.def = maxDef - 1
			}
			out = append(out, l)
		}
	}
	return out
}

// shredMaps is shred for lists in a map.
func (c *built) shredMaps(r *rand.Rand) []levelled {
	maxDef, repDef := c.shape.levels()
	entry := c.shape.entryDef()
	var out []levelled
	for _, row := range c.rows {
		lists, _ := row.([]any)
		switch {
		case row == nil:
			out = append(out, levelled{0, byte(r.Intn(int(entry) - 1)), nil})
		case len(lists) == 0:
			out = append(out, levelled{0, entry - 1, nil})
		}
		for i, l := range lists {
			list, _ := l.([]any)
			first := byte(min(i, 1))
			switch {
			case l == nil:
				out = append(out, levelled{first, entry + byte(r.Intn(int(repDef-entry)-1)), nil})
			case len(list) == 0:
				out = append(out, levelled{first, repDef - 1, nil})
			}
			for j, v := range list {
				x := levelled{first, maxDef, v}
				if j > 0 {
					x.rep = 2
				}
				if v == nil {
					x.def = maxDef - 1
				}
				out = append(out, x)
			}
		}
	}
	return out
}

// hybrid writes values in runs of random kinds and lengths.
func (c *built) hybrid(r *rand.Rand, values []uint32, width int) []byte {
	var b []byte
	if c.plainRuns {
		return plainRuns(values, width)
	}
	for len(values) > 0 {
		same := 1
		for same < len(values) && values[same] == values[0] {
			same++
		}
		if same >= 8 && r.Intn(8) > 0 || r.Intn(3) == 0 {
			n := 1 + r.Intn(same)
			b = binary.AppendUvarint(b, uint64(n)<<1)
			for i := range (width + 7) / 8 {
				b = append(b, byte(values[0]>>(8*i)))
			}
			values = values[n:]
			continue
		}
		groups := 1 + r.Intn(min(70, (len(values)+7)/8))
		b = binary.AppendUvarint(b, uint64(groups)<<1|1)
		b = append(b, packBits(values[:min(len(values), 8*groups)], width, 8*groups)...)
		values = values[min(len(values), 8*groups):]
		if r.Intn(20) == 0 {
			b = append(b, 0) // a run of nothing
			b = append(b, make([]byte, (width+7)/8)...)
		}
	}
	return b
}

// plainRuns writes a run of one value where at least 8 are the same, and packed runs of up to 504 between, as parquet-mr
// and parquet-cpp do.
func plainRuns(values []uint32, width int) []byte {
	var b []byte
	same := func(v []uint32) int {
		n := 1
		for n < len(v) && v[n] == v[0] {
			n++
		}
		return n
	}
	for len(values) > 0 {
		if n := same(values); n >= 8 {
			b = binary.AppendUvarint(b, uint64(n)<<1)
			for i := range (width + 7) / 8 {
				b = append(b, byte(values[0]>>(8*i)))
			}
			values = values[n:]
			continue
		}
		n := 8
		for n < len(values) && n < 504 && same(values[n:]) < 8 {
			n += 8
		}
		b = binary.AppendUvarint(b, uint64(n/8)<<1|1)
		b = append(b, packBits(values[:min(n, len(values))], width, n)...)
		values = values[min(n, len(values)):]
	}
	return b
}

func packBits(values []uint32, width, n int) []byte {
	b := make([]byte, (n*width+7)/8)
	for i, v := range values {
		for k := range width {
			if v>>k&1 != 0 {
				b[(i*width+k)/8] |= 1 << ((i*width + k) % 8)
			}
		}
	}
	return b
}

func packBitsMSB(values []uint32, width int) []byte {
	b := make([]byte, (len(values)*width+7)/8)
	for i, v := range values {
		for k := range width {
			if v>>(width-1-k)&1 != 0 {
				b[(i*width+k)/8] |= 0x80 >> ((i*width + k) % 8)
			}
		}
	}
	return b
}

// plainValue appends a value in PLAIN.
func (c *built) plainValue(b []byte, v any) []byte {
	switch c.physical {
	case Int32:
		return binary.LittleEndian.AppendUint32(b, uint32(v.(int64)))
	case Int64:
		return binary.LittleEndian.AppendUint64(b, uint64(v.(int64)))
	case Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v.(float32)))
	case Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.(float64)))
	case ByteArray:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v.([]byte))))
	}
	return append(b, v.([]byte)...)
}

func (c *built) plain(values []any) []byte {
	var b []byte
	if c.physical == Boolean {
		var bits []uint32
		for _, v := range values {
			bits = append(bits, uint32(v.(int64)))
		}
		return packBits(bits, 1, len(bits))
	}
	for _, v := range values {
		b = c.plainValue(b, v)
	}
	return b
}

// The compressors are made once: making one costs more than a test's pages. Tests of this package do not run in parallel.
var gzipWriter = sync.OnceValue(func() *gzip.Writer { return gzip.NewWriter(nil) })

var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	return w
})

// pack compresses.
func pack(b []byte, c Codec) []byte {
	switch c {
	case Snappy:
		return snappy.Encode(nil, b)
	case Gzip:
		var out bytes.Buffer
		for _, part := range [][]byte{b[:len(b)/2], b[len(b)/2:]} { // two members
			w := gzipWriter()
			w.Reset(&out)
			_, _ = w.Write(part)
			_ = w.Close()
		}
		return out.Bytes()
	case Zstd:
		return zstdEncoder().EncodeAll(b, nil)
	case LZ4Raw:
		out := make([]byte, lz4.CompressBlockBound(len(b))+16)
		var z lz4.Compressor
		n, err := z.CompressBlock(b, out)
		if err != nil || n == 0 {
			return lz4Literals(b)
		}
		return out[:n]
	case LZ4:
		return packLZ4(b)
	case Brotli:
		return packBrotli(b)
	}
	return b
}

// lz4Literals is the LZ4 block of bytes that do not compress.
func lz4Literals(b []byte) []byte {
	if len(b) < 15 {
		return append([]byte{byte(len(b)) << 4}, b...)
	}
	out := []byte{0xf0}
	n := len(b) - 15
	for ; n >= 255; n -= 255 {
		out = append(out, 255)
	}
	return append(append(out, byte(n)), b...)
}

// page is a header and the bytes after it.
type page struct {
	h       PageHeader
	payload []byte
}

// finish sets the header's sizes and checksum.
func (c *built) finish(h PageHeader, levels, body []byte) page {
	p := page{h: h}
	h.Uncompressed = int32(len(levels) + len(body))
	if h.Type == DataPageV2 {
		h.IsCompressed = c.codec != Uncompressed
		p.payload = append(append([]byte{}, levels...), pack(body, c.codec)...)
	} else {
		p.payload = pack(append(append([]byte{}, levels...), body...), c.codec)
	}
	h.Compressed = int32(len(p.payload))
	if c.crc {
		h.HasCRC, h.CRC = true, crc32.ChecksumIEEE(p.payload)
	}
	p.h = h
	return p
}

// pages writes the column's pages.
func (c *built) pages(r *rand.Rand) []page {
	all := c.shred(r)
	var pages []page
	dict := map[string]uint32{}
	var entries []any
	if c.encoding.dictionary() {
		for _, l := range all {
			if l.v == nil {
				continue
			}
			key := fmt.Sprintf("%x", c.plainKey(l.v))
			if _, ok := dict[key]; !ok {
				dict[key] = uint32(len(entries))
				entries = append(entries, l.v)
			}
		}
		h := PageHeader{Type: DictionaryPage, NumValues: int32(len(entries)), Encoding: Plain}
		if c.encoding == PlainDictionary {
			h.Encoding = PlainDictionary
		}
		pages = append(pages, c.finish(h, nil, c.plain(entries)))
	}
	for len(all) > 0 || len(pages) == 0 {
		n := c.cut(r, all)
		pages = append(pages, c.dataPage(r, all[:n], dict, len(entries)))
		all = all[n:]
		if len(all) == 0 {
			break
		}
	}
	return pages
}

func (c *built) plainKey(v any) []byte {
	if c.physical == Boolean {
		return []byte{byte(v.(int64))}
	}
	return c.plainValue(nil, v)
}

// cut says how many levels go into the next page: whole rows, unless the column is split.
func (c *built) cut(r *rand.Rand, all []levelled) int {
	if c.pageRows == 0 {
		return len(all)
	}
	if c.split {
		return min(len(all), 1+r.Intn(2*c.pageRows))
	}
	rows := 0
	for i, l := range all {
		if l.rep == 0 {
			if rows == c.pageRows {
				return i
			}
			rows++
		}
	}
	return len(all)
}

func (c *built) dataPage(r *rand.Rand, levels []levelled, dict map[string]uint32, entries int) page {
	var reps, defs, indices []uint32
	var values []any
	maxDef, repDef := c.shape.levels()
	h := PageHeader{Type: DataPage, NumValues: int32(len(levels)), Encoding: c.encoding, DefEncoding: RLE, RepEncoding: RLE}
	for _, l := range levels {
		reps, defs = append(reps, uint32(l.rep)), append(defs, uint32(l.def))
		if l.rep == 0 {
			h.NumRows++
		}
		if l.v == nil {
			h.NumNulls++
			continue
		}
		values = append(values, l.v)
		if c.encoding.dictionary() {
			indices = append(indices, dict[fmt.Sprintf("%x", c.plainKey(l.v))])
		}
	}
	body := c.body(r, values, indices, entries)
	repWidth, defWidth := 0, bitsFor(maxDef)
	if repDef > 0 {
		repWidth = bitsFor(c.shape.columnType().MaxRep)
	}
	if c.v2 {
		h.Type, h.DefEncoding, h.RepEncoding = DataPageV2, 0, 0
		var rep, def []byte
		if repWidth > 0 {
			rep = c.hybrid(r, reps, repWidth)
		}
		if defWidth > 0 {
			def = c.hybrid(r, defs, defWidth)
		}
		h.RepBytes, h.DefBytes = int32(len(rep)), int32(len(def))
		return c.finish(h, append(rep, def...), body)
	}
	h.NumNulls, h.NumRows = 0, 0
	var section []byte
	add := func(levels []uint32, width int, e *Encoding) {
		switch {
		case width == 0:
		case c.msb:
			*e = BitPacked
			section = append(section, packBitsMSB(levels, width)...)
		default:
			b := c.hybrid(r, levels, width)
			section = binary.LittleEndian.AppendUint32(section, uint32(len(b)))
			section = append(section, b...)
		}
	}
	add(reps, repWidth, &h.RepEncoding)
	add(defs, defWidth, &h.DefEncoding)
	return c.finish(h, section, body)
}

func (c *built) body(r *rand.Rand, values []any, indices []uint32, entries int) []byte {
	switch {
	case c.encoding.dictionary():
		width := 0
		for 1<<width < entries {
			width++
		}
		width = min(32, width+r.Intn(3)*r.Intn(10)) // wider than needed now and then
		return append([]byte{byte(width)}, c.hybrid(r, indices, width)...)
	case c.encoding == RLE:
		var bits []uint32
		for _, v := range values {
			bits = append(bits, uint32(v.(int64)))
		}
		b := c.hybrid(r, bits, 1)
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	if c.encoding >= DeltaBinaryPacked && c.encoding <= DeltaByteArray || c.encoding == ByteStreamSplit {
		return c.deltaBody(r, values)
	}
	return c.plain(values)
}

// file writes a file of one row group and one column.
func (c *built) file(r *rand.Rand) []byte {
	return c.fileOf(c.pages(r), int64(len(c.shred(r))), int64(len(c.rows)))
}

// fileOf writes a file around pages.
func (c *built) fileOf(pages []page, values, rows int64) []byte {
	b := []byte(magic)
	var dictAt, dataAt, uncompressed int64
	for _, p := range pages {
		if p.h.Type == DictionaryPage {
			dictAt = int64(len(b))
		} else if dataAt == 0 {
			dataAt = int64(len(b))
		}
		h := p.h.marshal()
		b = append(append(b, h...), p.payload...)
		uncompressed += int64(len(h)) + int64(p.h.Uncompressed)
	}
	return c.footer(b, dictAt, dataAt, uncompressed, values, rows)
}

func (c *built) footer(b []byte, dictAt, dataAt, uncompressed, values, rows int64) []byte {
	var w thriftWriter
	w.begin()
	w.i32(1, 1)
	var schema thriftWriter
	n := c.shape.schema(&schema, "c", func(name string, repetition int32) {
		schema.begin()
		schema.i32(1, int32(c.physical))
		if c.length > 0 {
			schema.i32(2, c.length)
		}
		schema.i32(3, repetition)
		schema.str(4, name)
		if c.unsigned {
			schema.i32(6, 13) // UINT_32
		}
		schema.end()
	})
	w.list(2, tStruct, n+1)
	w.begin()
	w.str(4, "root")
	w.i32(5, 1)
	w.end()
	w.b = append(w.b, schema.b...)
	w.i64(3, rows)
	w.list(4, tStruct, 1)
	w.begin()
	w.list(1, tStruct, 1)
	w.begin()
	w.i64(2, 0)
	w.field(3, tStruct)
	w.begin()
	w.i32(1, int32(c.physical))
	w.list(2, tI32, 2)
	w.zigzag(int64(c.encoding))
	w.zigzag(int64(RLE))
	w.list(3, tBinary, 1)
	w.rawString("c")
	w.i32(4, int32(c.codec))
	w.i64(5, values)
	w.i64(6, uncompressed)
	w.i64(7, int64(len(b)-len(magic)))
	w.i64(9, dataAt)
	if dictAt > 0 {
		w.i64(11, dictAt)
	}
	w.end()
	w.end()
	w.i64(2, uncompressed)
	w.i64(3, rows)
	w.end()
	w.str(6, "millrace test")
	w.end()
	b = append(b, w.b...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.b)))
	return append(b, magic...)
}

// randomValue draws from a small or a large set, so that dictionaries and runs both happen.
func (c *built) randomValue(r *rand.Rand, few bool) any {
	x := r.Uint64()
	if few {
		x = uint64(r.Intn(5)) * 0x0123456789abcdef
	}
	switch c.physical {
	case Boolean:
		return int64(x & 1)
	case Int32:
		if c.unsigned {
			return int64(uint32(x))
		}
		return int64(int32(x))
	case Int64:
		return int64(x)
	case Float:
		return math.Float32frombits(uint32(x))
	case Double:
		return math.Float64frombits(x)
	case FixedLenByteArray:
		b := make([]byte, c.length)
		rand.New(rand.NewSource(int64(x))).Read(b)
		return b
	}
	b := make([]byte, x%23)
	rand.New(rand.NewSource(int64(x))).Read(b)
	return b
}

// randomRows fills the column with n rows.
func (c *built) randomRows(r *rand.Rand, n int, nulls float64, few bool) {
	maxDef, repDef := c.shape.levels()
	streak := 0
	var last any
	value := func(nullable bool) any {
		if streak--; streak > 0 {
			return last
		}
		if r.Intn(30) == 0 {
			streak = r.Intn(60)
		}
		if last = c.randomValue(r, few); nullable && r.Float64() < nulls {
			last = nil
		}
		return last
	}
	for range n {
		if repDef == 0 {
			c.rows = append(c.rows, value(maxDef > 0))
			continue
		}
		list := func() any {
			if repDef > 1 && c.shape != shapeInMapRequired && r.Float64() < nulls/2 {
				return nil
			}
			l := []any{}
			for range r.Intn(1 + r.Intn(12)) {
				l = append(l, value(maxDef > repDef))
			}
			return l
		}
		if entry := c.shape.entryDef(); entry > 0 {
			var lists any
			if entry == 1 || r.Float64() >= nulls/2 {
				all := []any{}
				for range r.Intn(1 + r.Intn(9)) {
					all = append(all, list())
				}
				lists = all
			}
			c.rows = append(c.rows, lists)
			continue
		}
		c.rows = append(c.rows, list())
	}
}
