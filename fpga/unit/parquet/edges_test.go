package parquet

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each of these found no other test failing when the line it is about was broken.

func TestOptionalBooleansEndEarly(t *testing.T) {
	ct := ColumnType{Physical: Boolean, MaxDef: 1}
	page := []byte{2, 0, 0, 0, 40, 1, 0xff, 0xff} // 20 levels of 1, and 16 booleans
	h := PageHeader{Type: DataPage, NumValues: 20, DefEncoding: RLE, RepEncoding: RLE, Uncompressed: 8, Compressed: 8}
	var d Decoder
	var b Block
	for n, want := range map[int]error{16: nil, 17: ErrCorrupt} {
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		require.ErrorIs(t, d.Skip(n), want)
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		b.Reset(KindInt64)
		_, err := d.Next(&b, n)
		require.ErrorIs(t, err, want)
	}
}

// TestEmptyListGoesOnOverBatches puts an empty list last into a batch of levels, and a level that continues it first
// into the next.
func TestEmptyListGoesOnOverBatches(t *testing.T) {
	ct := ColumnType{Physical: Int32, MaxDef: 2, RepDef: 2, MaxRep: 1, List: true}
	c := &built{shape: shapeListOfRequired, physical: Int32}
	var levels []levelled
	for range levelBatchSize - 1 {
		levels = append(levels, levelled{0, 2, int64(1)})
	}
	levels = append(levels, levelled{0, 1, nil}, levelled{1, 2, int64(1)})
	p := c.dataPage(rand.New(rand.NewSource(1)), levels, nil, 0)
	_, err := decodePage(&ct, &p.h, p.payload, nil)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "goes on")

	// The same over pages: the row before is empty.
	p = c.dataPage(rand.New(rand.NewSource(1)), []levelled{{1, 2, int64(1)}}, nil, 0)
	var d Decoder
	b := Block{Rows: 1, Lengths: []int32{0}, RowValid: []byte{1}}
	require.NoError(t, d.Reset(&ct, &p.h, p.payload, nil))
	require.ErrorIs(t, d.Continue(&b), ErrCorrupt)
}

func TestFailedContinueLeavesTheBlock(t *testing.T) {
	ct := ColumnType{Physical: Int32, MaxDef: 1, RepDef: 1, MaxRep: 1, List: true}
	c := &built{shape: shapeListRequired, physical: Int32}
	p := c.dataPage(rand.New(rand.NewSource(1)), []levelled{{1, 1, int64(1)}, {1, 1, int64(2)}}, nil, 0)
	var d Decoder
	b := Block{Rows: 1, Lengths: []int32{1}, I64: []int64{9}}
	require.NoError(t, d.Reset(&ct, &p.h, p.payload[:len(p.payload)-1], nil))
	require.ErrorIs(t, d.Continue(&b), ErrCorrupt)
	require.Equal(t, []int32{1}, b.Lengths)
	require.Equal(t, []int64{9}, b.I64)
}

func TestSnappyThatPromisesMoreThanItsHeader(t *testing.T) {
	payload := append(binary.AppendUvarint(nil, 1<<30), 0, 'x')
	h := PageHeader{Type: DataPage, Uncompressed: 10, Compressed: int32(len(payload))}
	ct := ColumnType{Physical: Int64, Codec: Snappy}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Unpack(make([]byte, 10), &h, payload, &ct)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, ErrCorrupt)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestFooterAndPagesDisagreeOnLists(t *testing.T) {
	c := &built{shape: shapeList, physical: Int64, pageRows: 10}
	r := rand.New(rand.NewSource(1))
	c.randomRows(r, 50, 0.1, false)
	pages := c.pages(r)
	values, rows := int64(len(c.shred(r))), int64(len(c.rows))
	_, err := readEither(t, c.fileOf(pages, values, rows))
	require.NoError(t, err)
	for _, lie := range [][2]int64{{-1, 0}, {1, 0}, {0, -1}, {0, 1}, {-1, -1}, {1, 1}} {
		_, err := readEither(t, c.fileOf(pages, values+lie[0], rows+lie[1]))
		require.ErrorIs(t, err, ErrCorrupt, lie)
	}
}

func TestChunkThatBeginsInsideARow(t *testing.T) {
	c := &built{shape: shapeListRequired, physical: Int32}
	p := c.dataPage(rand.New(rand.NewSource(1)), []levelled{{1, 1, int64(1)}, {0, 1, int64(2)}}, nil, 0)
	file := c.fileOf([]page{p}, 2, 1)
	f, err := ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	var chunk ChunkReader
	require.NoError(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 0))
	_, err = chunk.Skip(1)
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 0))
	_, err = chunk.Next(&Block{}, 1)
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestOpenDictionaryChecksItsOffsets(t *testing.T) {
	ct := ColumnType{Physical: ByteArray}
	good := func() []byte {
		b := alignedBytes(dictionaryHeader + 3*4 + 4)
		copy(b, dictionaryMagic)
		b[4] = byte(ByteArray)
		binary.LittleEndian.PutUint32(b[8:], 2)
		binary.LittleEndian.PutUint64(b[16:], 16)
		for i, o := range []uint32{0, 3, 4} {
			binary.LittleEndian.PutUint32(b[dictionaryHeader+4*i:], o)
		}
		return b
	}
	_, err := OpenDictionary(good(), &ct)
	require.NoError(t, err)
	for _, offsets := range [][]uint32{{1, 3, 4}, {0, 3, 3}, {0, 3, 5}, {0, 5, 4}, {4, 4, 4}} {
		b := good()
		for i, o := range offsets {
			binary.LittleEndian.PutUint32(b[dictionaryHeader+4*i:], o)
		}
		_, err := OpenDictionary(b, &ct)
		require.ErrorIs(t, err, ErrCorrupt, offsets)
	}
}

func TestPageHeaderChecks(t *testing.T) {
	v2 := PageHeader{Type: DataPageV2, Uncompressed: 100, Compressed: 50, NumValues: 10, NumRows: 10, NumNulls: 2, DefBytes: 20, RepBytes: 30}
	_, _, err := ParsePageHeader(v2.marshal())
	require.NoError(t, err)
	for name, lie := range map[string]func(h *PageHeader){
		"levels longer than the page":      func(h *PageHeader) { h.DefBytes++ },
		"levels longer than unpacked":      func(h *PageHeader) { h.Uncompressed = 49 },
		"levels whose sum passes 31 bits":  func(h *PageHeader) { h.DefBytes, h.RepBytes = 1<<31-1, 1<<31-1 },
		"negative levels":                  func(h *PageHeader) { h.RepBytes = -1 },
		"more nulls than values":           func(h *PageHeader) { h.NumNulls = 11 },
		"more rows than values":            func(h *PageHeader) { h.NumRows = 11 },
		"negative values":                  func(h *PageHeader) { h.NumValues = -1 },
		"negative size":                    func(h *PageHeader) { h.Compressed = -1 },
		"negative unpacked size":           func(h *PageHeader) { h.Uncompressed = -1 },
		"negative rows":                    func(h *PageHeader) { h.NumRows = -1 },
		"negative nulls":                   func(h *PageHeader) { h.NumNulls = -1 },
		"negative lengths that sum to one": func(h *PageHeader) { h.DefBytes, h.RepBytes = -29, 30 },
	} {
		h := v2
		lie(&h)
		_, _, err := ParsePageHeader(h.marshal())
		require.ErrorIs(t, err, ErrCorrupt, name)
		_, err = Unpack(make([]byte, 100), &h, make([]byte, 100), &ColumnType{Physical: Int64, Codec: LZ4Raw})
		require.Error(t, err, name)
	}
	// A header without a required field, with the body of another type, or with two bodies.
	h := v2.marshal()
	require.ErrorIs(t, parseHeader([]byte{0}), ErrCorrupt)
	h[1] = 0 // DATA_PAGE
	require.ErrorIs(t, parseHeader(h), ErrCorrupt)
	var w thriftWriter
	w.begin()
	for id := int32(1); id <= 3; id++ {
		w.i32(id, 0)
	}
	for _, id := range []int32{5, 7} {
		w.field(id, tStruct)
		w.b = append(w.b, 0)
	}
	w.end()
	require.ErrorIs(t, parseHeader(w.b), ErrCorrupt)
	// Endless statistics are cut off.
	long := append([]byte{0x15, 0}, 0x88, 0xff, 0xff, 0xff, 0xff, 0x0f)
	require.ErrorIs(t, parseHeader(long), ErrMoreInput)
	require.ErrorIs(t, parseHeader(append(long, make([]byte, MaxPageHeader)...)), ErrCorrupt)
}

func parseHeader(b []byte) error {
	_, _, err := ParsePageHeader(b)
	return err
}

func TestOffsetIndexChecks(t *testing.T) {
	ch := Chunk{Offset: 4, Compressed: 100}
	good := []PageLocation{{4, 50, 0}, {54, 50, 7}}
	require.NoError(t, checkLocations(good, &ch, 10))
	for name, bad := range map[string][]PageLocation{
		"before the chunk":      {{3, 50, 0}},
		"after the chunk":       {{54, 51, 0}},
		"overlapping":           {{4, 50, 0}, {53, 50, 7}},
		"negative size":         {{4, -1, 0}},
		"first row not 0":       {{4, 50, 1}},
		"rows run backwards":    {{4, 10, 0}, {14, 10, 7}, {24, 10, 6}},
		"rows beyond the group": {{4, 50, 0}, {54, 50, 11}},
		"offset at the end":     {{1<<63 - 1, 50, 0}},
	} {
		require.ErrorIs(t, checkLocations(bad, &ch, 10), ErrCorrupt, name)
	}
	f := &File{Size: 1000}
	for _, place := range [][2]int64{{-1, 10}, {10, -1}, {995, 10}, {1<<63 - 1, 10}} {
		_, err := readOffsetIndex(bytes.NewReader(make([]byte, 1000)), f, &Chunk{OffsetIndexOffset: place[0], OffsetIndexLength: int32(place[1])}, 10)
		require.ErrorIs(t, err, ErrCorrupt, place)
	}
}

func TestColumnTypeValidate(t *testing.T) {
	good := ColumnType{Physical: Int64, List: true, MaxDef: 3, MaxRep: 1, RepDef: 2}
	require.NoError(t, good.Validate())
	for name, c := range map[string]struct {
		lie  func(ct *ColumnType)
		want error
	}{
		"INT96":              {func(ct *ColumnType) { ct.Physical = Int96 }, ErrUnsupported},
		"type 200":           {func(ct *ColumnType) { ct.Physical = 200 }, ErrUnsupported},
		"LZO":                {func(ct *ColumnType) { ct.Codec = LZO }, ErrUnsupported},
		"codec 200":          {func(ct *ColumnType) { ct.Codec = 200 }, ErrUnsupported},
		"three repetitions":  {func(ct *ColumnType) { ct.MaxRep = 3 }, ErrUnsupported},
		"no entries":         {func(ct *ColumnType) { ct.MaxRep = 2 }, ErrCorrupt},
		"entries of a list":  {func(ct *ColumnType) { ct.EntryDef = 1 }, ErrCorrupt},
		"entries inside":     {func(ct *ColumnType) { ct.MaxRep, ct.EntryDef = 2, 2 }, ErrCorrupt},
		"no repetition":      {func(ct *ColumnType) { ct.MaxRep = 0 }, ErrCorrupt},
		"not a list":         {func(ct *ColumnType) { ct.List = false }, ErrCorrupt},
		"list at level 0":    {func(ct *ColumnType) { ct.RepDef = 0 }, ErrCorrupt},
		"list above its max": {func(ct *ColumnType) { ct.RepDef = 4 }, ErrCorrupt},
		"level 64":           {func(ct *ColumnType) { ct.MaxDef = 64 }, ErrCorrupt},
		"length 0":           {func(ct *ColumnType) { ct.Physical = FixedLenByteArray }, ErrCorrupt},
		"negative length":    {func(ct *ColumnType) { ct.Physical, ct.TypeLength = FixedLenByteArray, -4 }, ErrCorrupt},
		"length too great":   {func(ct *ColumnType) { ct.Physical, ct.TypeLength = FixedLenByteArray, maxTypeLength+1 }, ErrCorrupt},
	} {
		ct := good
		c.lie(&ct)
		require.ErrorIs(t, ct.Validate(), c.want, name)
		require.ErrorIs(t, new(Decoder).Reset(&ct, &PageHeader{}, nil, nil), c.want, name)
	}
}

func TestNamesPrint(t *testing.T) {
	require.Equal(t, "RLE_DICTIONARY", RLEDictionary.String())
	require.Equal(t, "BROTLI", Brotli.String())
	require.Equal(t, "FIXED_LEN_BYTE_ARRAY", FixedLenByteArray.String())
	require.Equal(t, "DATA_PAGE_V2", DataPageV2.String())
	require.Equal(t, "float32", KindFloat32.String())
	require.Equal(t, "codec 9", Codec(9).String())
	require.Equal(t, "unknown encoding", Encoding(unknown).String())
	require.Equal(t, "codec LZO is not supported", LZO.Supported().Error())
	require.Equal(t, `row group 1: column "a": page 2 at byte 3 of the file: x: damaged or truncated: compare with the writer's copy`,
		(&PageError{RowGroup: 1, Column: "a", Page: 2, Offset: 3, Err: corrupt("x")}).Error())
}

// A dictionary of INT64 that is unsigned may hold what looks negative, and small: it keeps its bits.
func TestDictionaryOfUnsigned64(t *testing.T) {
	c := &built{physical: Int64}
	want := []any{int64(-5), int64(7), int64(-1 << 31)}
	page := c.plain(want)
	ct := ColumnType{Physical: Int64, Unsigned: true, BitWidth: 64}
	h := PageHeader{Type: DictionaryPage, NumValues: 3, Encoding: Plain, Uncompressed: int32(len(page)), Compressed: int32(len(page))}
	mem := alignedBytes(int(DictionarySize(&h, &ct)))
	used, err := DecodeDictionary(mem, &h, page, &ct)
	require.NoError(t, err)
	d, err := OpenDictionary(mem[:used], &ct)
	require.NoError(t, err)
	require.Equal(t, want, lookAll(t, &d, &ct))
}
