package parquettest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
	"math/rand"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/thrift"
)

// header writes a page header.
func MarshalHeader(h *format.PageHeader) []byte {
	var w thrift.Writer
	w.Begin()
	w.Int32(1, int32(h.Type))
	w.Int32(2, h.Uncompressed)
	w.Int32(3, h.Compressed)
	if h.HasCRC {
		w.Int32(4, int32(h.CRC))
	}
	switch h.Type {
	case format.DataPage:
		w.Field(5, thrift.TypeStruct)
		w.Begin()
		w.Int32(1, h.NumValues)
		w.Int32(2, int32(h.Encoding))
		w.Int32(3, int32(h.DefEncoding))
		w.Int32(4, int32(h.RepEncoding))
		w.End()
	case format.DictionaryPage:
		w.Field(7, thrift.TypeStruct)
		w.Begin()
		w.Int32(1, h.NumValues)
		w.Int32(2, int32(h.Encoding))
		w.End()
	case format.DataPageV2:
		w.Field(8, thrift.TypeStruct)
		w.Begin()
		w.Int32(1, h.NumValues)
		w.Int32(2, h.NumNulls)
		w.Int32(3, h.NumRows)
		w.Int32(4, int32(h.Encoding))
		w.Int32(5, h.DefBytes)
		w.Int32(6, h.RepBytes)
		if !h.IsCompressed {
			w.Bool(7, false)
		}
		w.End()
	}
	w.End()
	return w.Bytes
}

// shape is how a leaf hangs in the schema.
type Shape uint8

const (
	shapeRequired Shape = iota
	ShapeOptional
	ShapeInGroup            // optional group { optional leaf }: levels up to 2
	ShapeList               // optional list of optional elements
	ShapeListRequired       // required list of required elements
	ShapeListOfRequired     // optional list of required elements
	ShapeListInGroup        // optional group { optional list of optional elements }: levels up to 4
	shapeRepeated           // repeated leaf
	shapeTwoLevel           // optional group (LIST) { repeated leaf }
	Shapes              = 9 // how many a file is made of

	// Of one leaf of a map only, so for pages and chunks.
	ShapeInMap         Shape = 9  // optional map to optional lists of optional elements
	ShapeInMapRequired Shape = 10 // required map to required lists of required elements
	PageShapes               = 11
)

// schema writes the shape's schema elements and tells how many there are.
func (s Shape) schema(w *thrift.Writer, name string, leaf func(name string, repetition int32)) int {
	group := func(name string, repetition, children int32, list bool) {
		w.Begin()
		w.Int32(3, repetition)
		w.String(4, name)
		w.Int32(5, children)
		if list {
			w.Int32(6, 3)
		}
		w.End()
	}
	list := func(outer, inner int32) {
		group(name, outer, 1, true)
		group("list", repetitionRepeated, 1, false)
		leaf("element", inner)
	}
	switch s {
	case shapeRequired:
		leaf(name, repetitionRequired)
	case ShapeOptional:
		leaf(name, repetitionOptional)
	case ShapeInGroup:
		group("g", repetitionOptional, 1, false)
		leaf(name, repetitionOptional)
		return 2
	case ShapeList:
		list(repetitionOptional, repetitionOptional)
		return 3
	case ShapeListRequired:
		list(repetitionRequired, repetitionRequired)
		return 3
	case ShapeListOfRequired:
		list(repetitionOptional, repetitionRequired)
		return 3
	case ShapeListInGroup:
		group("g", repetitionOptional, 1, false)
		list(repetitionOptional, repetitionOptional)
		return 4
	case shapeRepeated:
		leaf(name, repetitionRepeated)
	case shapeTwoLevel:
		group(name, repetitionOptional, 1, true)
		leaf("array", repetitionRepeated)
		return 2
	}
	return 1
}

// built is a column to be written and what it must read as.
type Column struct {
	Shape           Shape
	Physical        format.Type
	Length          int32 // of fixed-length byte arrays
	Unsigned        bool
	Codec           format.Codec
	V2              bool
	Encoding        format.Encoding // of the values
	MSBLevels       bool            // BIT_PACKED levels (v1)
	CRC             bool
	SplitRows       bool // rows go on over pages (v1 lists)
	PageRows        int  // 0: one page
	OmitEmptyDeltas bool // pages of nulls in a DELTA encoding leave out even its header
	Rows            []any
	// plainRuns writes runs as common writers do: of one value from 8 on, else packed.
	PlainRuns bool
}

func (c *Column) String() string {
	return fmt.Sprintf("shape %d %v/%d unsigned %t %v v2 %t %v msb %t crc %t split %t pages of %d, %d rows", c.Shape, c.Physical, c.Length, c.Unsigned,
		c.Codec, c.V2, c.Encoding, c.MSBLevels, c.CRC, c.SplitRows, c.PageRows, len(c.Rows))
}

func (s Shape) LevelBounds() (maxDef, repDef uint8) {
	switch s {
	case shapeRequired:
		return 0, 0
	case ShapeOptional:
		return 1, 0
	case ShapeInGroup:
		return 2, 0
	case ShapeList:
		return 3, 2
	case ShapeListRequired, shapeRepeated:
		return 1, 1
	case ShapeListOfRequired, shapeTwoLevel:
		return 2, 2
	case ShapeListInGroup:
		return 4, 3
	case ShapeInMap:
		return 5, 4
	case ShapeInMapRequired:
		return 2, 2
	}
	return 0, 0
}

// entryDef is the definition level of a map's entry; 0 outside of maps.
func (s Shape) entryDef() uint8 {
	switch s {
	case ShapeInMap:
		return 2
	case ShapeInMapRequired:
		return 1
	}
	return 0
}

// columnType is the type of a leaf of the shape.
func (s Shape) ColumnType() (ct format.ColumnType) {
	ct.MaxDef, ct.RepDef = s.LevelBounds()
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
type Level struct {
	Rep, Def byte
	Value    any
}

// shred turns rows into levels, as the Dremel paper says. Where more than one level means null, r picks.
func (c *Column) Levels(r *rand.Rand) []Level {
	if c.Shape.entryDef() > 0 {
		return c.shredMaps(r)
	}
	maxDef, repDef := c.Shape.LevelBounds()
	var out []Level
	for _, row := range c.Rows {
		list, isList := row.([]any)
		switch {
		case repDef == 0 && row != nil:
			out = append(out, Level{0, maxDef, row})
		case repDef == 0:
			out = append(out, Level{0, byte(r.Intn(int(maxDef))), nil})
		case !isList:
			out = append(out, Level{0, byte(r.Intn(int(repDef) - 1)), nil})
		case len(list) == 0:
			out = append(out, Level{0, repDef - 1, nil})
		}
		for i, v := range list {
			l := Level{byte(min(i, 1)), maxDef, v}
			if v == nil {
				l.Def = maxDef - 1
			}
			out = append(out, l)
		}
	}
	return out
}

// shredMaps is shred for lists in a map.
func (c *Column) shredMaps(r *rand.Rand) []Level {
	maxDef, repDef := c.Shape.LevelBounds()
	entry := c.Shape.entryDef()
	var out []Level
	for _, row := range c.Rows {
		lists, _ := row.([]any)
		switch {
		case row == nil:
			out = append(out, Level{0, byte(r.Intn(int(entry) - 1)), nil})
		case len(lists) == 0:
			out = append(out, Level{0, entry - 1, nil})
		}
		for i, l := range lists {
			list, _ := l.([]any)
			first := byte(min(i, 1))
			switch {
			case l == nil:
				out = append(out, Level{first, entry + byte(r.Intn(int(repDef-entry)-1)), nil})
			case len(list) == 0:
				out = append(out, Level{first, repDef - 1, nil})
			}
			for j, v := range list {
				x := Level{first, maxDef, v}
				if j > 0 {
					x.Rep = 2
				}
				if v == nil {
					x.Def = maxDef - 1
				}
				out = append(out, x)
			}
		}
	}
	return out
}

// hybrid writes values in runs of random kinds and lengths.
func (c *Column) hybrid(r *rand.Rand, values []uint32, width int) []byte {
	var b []byte
	if c.PlainRuns {
		return PlainRuns(values, width)
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
func PlainRuns(values []uint32, width int) []byte {
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
func (c *Column) plainValue(b []byte, v any) []byte {
	switch c.Physical {
	case format.Int32:
		return binary.LittleEndian.AppendUint32(b, uint32(v.(int64)))
	case format.Int64:
		return binary.LittleEndian.AppendUint64(b, uint64(v.(int64)))
	case format.Float:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v.(float32)))
	case format.Double:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.(float64)))
	case format.ByteArray:
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v.([]byte))))
	}
	return append(b, v.([]byte)...)
}

func (c *Column) Plain(values []any) []byte {
	var b []byte
	if c.Physical == format.Boolean {
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
func Compress(b []byte, c format.Codec) []byte {
	switch c {
	case format.Snappy:
		return snappy.Encode(nil, b)
	case format.Gzip:
		var out bytes.Buffer
		for _, part := range [][]byte{b[:len(b)/2], b[len(b)/2:]} { // two members
			w := gzipWriter()
			w.Reset(&out)
			_, _ = w.Write(part)
			_ = w.Close()
		}
		return out.Bytes()
	case format.Zstd:
		return zstdEncoder().EncodeAll(b, nil)
	case format.LZ4Raw:
		out := make([]byte, lz4.CompressBlockBound(len(b))+16)
		var z lz4.Compressor
		n, err := z.CompressBlock(b, out)
		if err != nil || n == 0 {
			return lz4Literals(b)
		}
		return out[:n]
	case format.LZ4:
		return packLZ4(b)
	case format.Brotli:
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
type Page struct {
	Header  format.PageHeader
	Payload []byte
}

// finish sets the header's sizes and checksum.
func (c *Column) finish(h format.PageHeader, levels, body []byte) Page {
	p := Page{Header: h}
	h.Uncompressed = int32(len(levels) + len(body))
	if h.Type == format.DataPageV2 {
		h.IsCompressed = c.Codec != format.Uncompressed
		p.Payload = append(append([]byte{}, levels...), Compress(body, c.Codec)...)
	} else {
		p.Payload = Compress(append(append([]byte{}, levels...), body...), c.Codec)
	}
	h.Compressed = int32(len(p.Payload))
	if c.CRC {
		h.HasCRC, h.CRC = true, crc32.ChecksumIEEE(p.Payload)
	}
	p.Header = h
	return p
}

// pages writes the column's pages.
func (c *Column) Pages(r *rand.Rand) []Page {
	all := c.Levels(r)
	var pages []Page
	dict := map[string]uint32{}
	var entries []any
	if c.Encoding.IsDictionary() {
		for _, l := range all {
			if l.Value == nil {
				continue
			}
			key := fmt.Sprintf("%x", c.plainKey(l.Value))
			if _, ok := dict[key]; !ok {
				dict[key] = uint32(len(entries))
				entries = append(entries, l.Value)
			}
		}
		h := format.PageHeader{Type: format.DictionaryPage, NumValues: int32(len(entries)), Encoding: format.Plain}
		if c.Encoding == format.PlainDictionary {
			h.Encoding = format.PlainDictionary
		}
		pages = append(pages, c.finish(h, nil, c.Plain(entries)))
	}
	for len(all) > 0 || len(pages) == 0 {
		n := c.cut(r, all)
		pages = append(pages, c.DataPage(r, all[:n], dict, len(entries)))
		all = all[n:]
		if len(all) == 0 {
			break
		}
	}
	return pages
}

func (c *Column) plainKey(v any) []byte {
	if c.Physical == format.Boolean {
		return []byte{byte(v.(int64))}
	}
	return c.plainValue(nil, v)
}

// cut says how many levels go into the next page: whole rows, unless the column is split.
func (c *Column) cut(r *rand.Rand, all []Level) int {
	if c.PageRows == 0 {
		return len(all)
	}
	if c.SplitRows {
		return min(len(all), 1+r.Intn(2*c.PageRows))
	}
	rows := 0
	for i, l := range all {
		if l.Rep == 0 {
			if rows == c.PageRows {
				return i
			}
			rows++
		}
	}
	return len(all)
}

func (c *Column) DataPage(r *rand.Rand, levels []Level, dict map[string]uint32, entries int) Page {
	var reps, defs, indices []uint32
	var values []any
	maxDef, repDef := c.Shape.LevelBounds()
	h := format.PageHeader{Type: format.DataPage, NumValues: int32(len(levels)), Encoding: c.Encoding, DefEncoding: format.RLE, RepEncoding: format.RLE}
	for _, l := range levels {
		reps, defs = append(reps, uint32(l.Rep)), append(defs, uint32(l.Def))
		if l.Rep == 0 {
			h.NumRows++
		}
		if l.Value == nil {
			h.NumNulls++
			continue
		}
		values = append(values, l.Value)
		if c.Encoding.IsDictionary() {
			indices = append(indices, dict[fmt.Sprintf("%x", c.plainKey(l.Value))])
		}
	}
	body := c.body(r, values, indices, entries)
	repWidth, defWidth := 0, bits.Len8(maxDef)
	if repDef > 0 {
		repWidth = bits.Len8(c.Shape.ColumnType().MaxRep)
	}
	if c.V2 {
		h.Type, h.DefEncoding, h.RepEncoding = format.DataPageV2, 0, 0
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
	add := func(levels []uint32, width int, e *format.Encoding) {
		switch {
		case width == 0:
		case c.MSBLevels:
			*e = format.BitPacked
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

func (c *Column) body(r *rand.Rand, values []any, indices []uint32, entries int) []byte {
	switch {
	case c.Encoding.IsDictionary():
		width := 0
		for 1<<width < entries {
			width++
		}
		width = min(32, width+r.Intn(3)*r.Intn(10)) // wider than needed now and then
		return append([]byte{byte(width)}, c.hybrid(r, indices, width)...)
	case c.Encoding == format.RLE:
		var bits []uint32
		for _, v := range values {
			bits = append(bits, uint32(v.(int64)))
		}
		b := c.hybrid(r, bits, 1)
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	if c.Encoding >= format.DeltaBinaryPacked && c.Encoding <= format.DeltaByteArray || c.Encoding == format.ByteStreamSplit {
		return c.deltaBody(r, values)
	}
	return c.Plain(values)
}

// file writes a file of one row group and one column.
func (c *Column) File(r *rand.Rand) []byte {
	return c.FileOf(c.Pages(r), int64(len(c.Levels(r))), int64(len(c.Rows)))
}

// fileOf writes a file around pages.
func (c *Column) FileOf(pages []Page, values, rows int64) []byte {
	b := []byte(FileMagic)
	var dictAt, dataAt, uncompressed int64
	for _, p := range pages {
		if p.Header.Type == format.DictionaryPage {
			dictAt = int64(len(b))
		} else if dataAt == 0 {
			dataAt = int64(len(b))
		}
		h := MarshalHeader(&p.Header)
		b = append(append(b, h...), p.Payload...)
		uncompressed += int64(len(h)) + int64(p.Header.Uncompressed)
	}
	return c.Footer(b, dictAt, dataAt, uncompressed, values, rows)
}

func (c *Column) Footer(b []byte, dictAt, dataAt, uncompressed, values, rows int64) []byte {
	var w thrift.Writer
	w.Begin()
	w.Int32(1, 1)
	var schema thrift.Writer
	n := c.Shape.schema(&schema, "c", func(name string, repetition int32) {
		schema.Begin()
		schema.Int32(1, int32(c.Physical))
		if c.Length > 0 {
			schema.Int32(2, c.Length)
		}
		schema.Int32(3, repetition)
		schema.String(4, name)
		if c.Unsigned {
			schema.Int32(6, 13) // UINT_32
		}
		schema.End()
	})
	w.List(2, thrift.TypeStruct, n+1)
	w.Begin()
	w.String(4, "root")
	w.Int32(5, 1)
	w.End()
	w.Bytes = append(w.Bytes, schema.Bytes...)
	w.Int64(3, rows)
	w.List(4, thrift.TypeStruct, 1)
	w.Begin()
	w.List(1, thrift.TypeStruct, 1)
	w.Begin()
	w.Int64(2, 0)
	w.Field(3, thrift.TypeStruct)
	w.Begin()
	w.Int32(1, int32(c.Physical))
	w.List(2, thrift.TypeI32, 2)
	w.Zigzag(int64(c.Encoding))
	w.Zigzag(int64(format.RLE))
	w.List(3, thrift.TypeBinary, 1)
	w.AppendString("c")
	w.Int32(4, int32(c.Codec))
	w.Int64(5, values)
	w.Int64(6, uncompressed)
	w.Int64(7, int64(len(b)-len(FileMagic)))
	w.Int64(9, dataAt)
	if dictAt > 0 {
		w.Int64(11, dictAt)
	}
	w.End()
	w.End()
	w.Int64(2, uncompressed)
	w.Int64(3, rows)
	w.End()
	w.String(6, "millrace test")
	w.End()
	b = append(b, w.Bytes...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.Bytes)))
	return append(b, FileMagic...)
}

// randomValue draws from a small or a large set, so that dictionaries and runs both happen.
func (c *Column) RandomValue(r *rand.Rand, few bool) any {
	x := r.Uint64()
	if few {
		x = uint64(r.Intn(5)) * 0x0123456789abcdef
	}
	switch c.Physical {
	case format.Boolean:
		return int64(x & 1)
	case format.Int32:
		if c.Unsigned {
			return int64(uint32(x))
		}
		return int64(int32(x))
	case format.Int64:
		return int64(x)
	case format.Float:
		return math.Float32frombits(uint32(x))
	case format.Double:
		return math.Float64frombits(x)
	case format.FixedLenByteArray:
		b := make([]byte, c.Length)
		rand.New(rand.NewSource(int64(x))).Read(b)
		return b
	}
	b := make([]byte, x%23)
	rand.New(rand.NewSource(int64(x))).Read(b)
	return b
}

// randomRows fills the column with n rows.
func (c *Column) FillRandom(r *rand.Rand, n int, nulls float64, few bool) {
	maxDef, repDef := c.Shape.LevelBounds()
	streak := 0
	var last any
	value := func(nullable bool) any {
		if streak--; streak > 0 {
			return last
		}
		if r.Intn(30) == 0 {
			streak = r.Intn(60)
		}
		if last = c.RandomValue(r, few); nullable && r.Float64() < nulls {
			last = nil
		}
		return last
	}
	for range n {
		if repDef == 0 {
			c.Rows = append(c.Rows, value(maxDef > 0))
			continue
		}
		list := func() any {
			if repDef > 1 && c.Shape != ShapeInMapRequired && r.Float64() < nulls/2 {
				return nil
			}
			l := []any{}
			for range r.Intn(1 + r.Intn(12)) {
				l = append(l, value(maxDef > repDef))
			}
			return l
		}
		if entry := c.Shape.entryDef(); entry > 0 {
			var lists any
			if entry == 1 || r.Float64() >= nulls/2 {
				all := []any{}
				for range r.Intn(1 + r.Intn(9)) {
					all = append(all, list())
				}
				lists = all
			}
			c.Rows = append(c.Rows, lists)
			continue
		}
		c.Rows = append(c.Rows, list())
	}
}

// fileMagic stands at both ends of a file.
const FileMagic = "PAR1"

// The repetition types of schema elements.
const (
	repetitionRequired = 0
	repetitionOptional = 1
	repetitionRepeated = 2
)
