package decoder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// Each of these found no other test failing when the line it is about was broken.

func TestOptionalBooleansEndEarly(t *testing.T) {
	ct := format.ColumnType{Physical: format.Boolean, MaxDef: 1}
	page := []byte{2, 0, 0, 0, 40, 1, 0xff, 0xff} // 20 levels of 1, and 16 booleans
	h := format.PageHeader{Type: format.DataPage, NumValues: 20, DefEncoding: format.RLE, RepEncoding: format.RLE,
		Uncompressed: 8, Compressed: 8}
	var d Decoder
	var b Block
	for n, want := range map[int]error{16: nil, 17: format.ErrCorrupt} {
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		require.ErrorIs(t, d.Skip(n), want)
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		b.Reset(format.KindInt64)
		_, err := d.Next(&b, n)
		require.ErrorIs(t, err, want)
	}
}

// TestDeltasOfNoValues reads pages of nulls whose sections of deltas have no blocks, and an invalid size of blocks.
func TestDeltasOfNoValues(t *testing.T) {
	zeros := []byte{0, 0, 0, 0}
	for name, test := range map[string]struct {
		encoding format.Encoding
		physical format.Type
		section  []byte
	}{
		"blocks of 0 values": {format.DeltaBinaryPacked, format.Int64, zeros},
		"no miniblocks":      {format.DeltaBinaryPacked, format.Int32, []byte{0x80, 1, 0, 0, 0}},
		"odd blocks":         {format.DeltaBinaryPacked, format.Int32, []byte{7, 3, 0, 9}},
		"no header":          {format.DeltaBinaryPacked, format.Int64, nil},
		"lengths":            {format.DeltaLengthByteArray, format.ByteArray, zeros},
		"prefixes":           {format.DeltaByteArray, format.ByteArray, append(zeros, zeros...)},
	} {
		t.Run(name, func(t *testing.T) {
			ct := format.ColumnType{Physical: test.physical, MaxDef: 1}
			h := format.PageHeader{Type: format.DataPage, Encoding: test.encoding, DefEncoding: format.RLE,
				RepEncoding: format.RLE, NumValues: 4}
			page := func(level byte, section []byte) []byte {
				b := append([]byte{2, 0, 0, 0, 8, level}, section...)
				h.Uncompressed, h.Compressed = int32(len(b)), int32(len(b))
				return b
			}
			nulls := page(0, test.section)
			rows, err := decodePage(&ct, &h, nulls, nil)
			require.NoError(t, err)
			requireSameRows(t, make([]any, 4), rows, "nulls")
			require.False(t, requireAgreement(t, &ct, &h, nulls, 0))
			values := page(1, test.section)
			_, err = decodePage(&ct, &h, values, nil)
			require.ErrorIs(t, err, format.ErrCorrupt)
			require.True(t, requireAgreement(t, &ct, &h, values, 0))
		})
	}
}

// TestRowEndedByVersion2 reads a page of lists of version 2, which ends its last row, and behind it a page of version 1
// that begins with a row, or inside that row.
func TestRowEndedByVersion2(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, shape := range []parquettest.Shape{parquettest.ShapeList, parquettest.ShapeInMap, parquettest.ShapeLists} {
		c := &parquettest.Column{Shape: shape, Physical: format.Int64}
		c.FillRandom(r, 30, 0.1, false)
		levels := c.Levels(r)
		for at := 1; at < len(levels); at++ {
			for between := range 2 {
				var pages []parquettest.Page
				c.V2 = true
				pages = append(pages, c.DataPage(r, levels[:at], nil, 0))
				if between > 0 {
					pages = append(pages, parquettest.Page{Header: format.PageHeader{Type: format.IndexPage}})
				}
				c.V2 = false
				pages = append(pages, c.DataPage(r, levels[at:], nil, 0))
				ct := c.ColumnType()
				ref := reference.Chunk{Type: ct}
				var chunk []byte
				var refErr error
				for _, p := range pages {
					refErr = errors.Join(refErr, ref.AddPage(&p.Header, p.Payload))
					chunk = slices.Concat(chunk, parquettest.MarshalHeader(&p.Header), p.Payload)
				}
				var kernel chunkReader
				require.NoError(t, kernel.Reset(ct, chunk, int64(len(levels)), int64(len(c.Rows))))
				var b Block
				b.Reset(ct.Kind())
				_, err := kernel.Next(&b, len(c.Rows))
				if levels[at].Rep > 0 {
					require.ErrorIs(t, err, format.ErrCorrupt)
					require.ErrorIs(t, refErr, format.ErrCorrupt)
					continue
				}
				require.NoError(t, err)
				require.NoError(t, refErr)
				requireSameRows(t, ref.Rows, rowsOf(&b, &ct), "kernel against reference")
			}
		}
	}
}

// TestPagesThatHoldNothing reads a chunk with pages that hold no row: their bytes are not parsed.
func TestPagesThatHoldNothing(t *testing.T) {
	c := &parquettest.Column{Shape: parquettest.ShapeOptional, Physical: format.Int64, PageRows: 10}
	r := rand.New(rand.NewSource(1))
	c.FillRandom(r, 30, 0.1, false)
	rows := c.Pages(r)
	header := func(kind format.PageType) format.PageHeader {
		return format.PageHeader{Type: kind, DefEncoding: format.RLE, RepEncoding: format.RLE, Encoding: format.RLE,
			Uncompressed: 9, Compressed: 3, HasCRC: true, CRC: 1, IsCompressed: true}
	}
	for _, kind := range []format.PageType{format.DataPage, format.DataPageV2, format.IndexPage, 9} {
		empty := parquettest.Page{Header: header(kind), Payload: []byte{1, 2, 3}}
		for at := range len(rows) + 1 {
			pages := slices.Insert(slices.Clone(rows), at, empty)
			got, err := readEither(t, c.FileOf(pages, 30, 30))
			require.NoError(t, err, kind)
			requireSameRows(t, c.Rows, got, kind.String())
		}
	}
}

// TestEmptyListGoesOnOverBatches puts an empty list last into a batch of levels, and a level that continues it first
// into the next.
func TestEmptyListGoesOnOverBatches(t *testing.T) {
	ct := format.ColumnType{Physical: format.Int32, MaxDef: 2, RepDef: 2, MaxRep: 1, List: true}
	c := &parquettest.Column{Shape: parquettest.ShapeListOfRequired, Physical: format.Int32}
	var levels []parquettest.Level
	for range levelBatchSize - 1 {
		levels = append(levels, parquettest.Level{Rep: 0, Def: 2, Value: int64(1)})
	}
	levels = append(levels, parquettest.Level{Rep: 0, Def: 1, Value: nil},
		parquettest.Level{Rep: 1, Def: 2, Value: int64(1)})
	p := c.DataPage(rand.New(rand.NewSource(1)), levels, nil, 0)
	_, err := decodePage(&ct, &p.Header, p.Payload, nil)
	require.ErrorIs(t, err, format.ErrCorrupt)
	require.ErrorContains(t, err, "goes on")

	// The same over pages: the row before is empty.
	p = c.DataPage(rand.New(rand.NewSource(1)), []parquettest.Level{{Rep: 1, Def: 2, Value: int64(1)}}, nil, 0)
	var d Decoder
	b := Block{Rows: 1, Lengths: []int32{0}, RowValid: []byte{1}}
	require.NoError(t, d.Reset(&ct, &p.Header, p.Payload, nil))
	require.ErrorIs(t, d.Continue(&b), format.ErrCorrupt)
}

func TestFailedContinueLeavesTheBlock(t *testing.T) {
	ct := format.ColumnType{Physical: format.Int32, MaxDef: 1, RepDef: 1, MaxRep: 1, List: true}
	c := &parquettest.Column{Shape: parquettest.ShapeListRequired, Physical: format.Int32}
	p := c.DataPage(rand.New(rand.NewSource(1)), []parquettest.Level{{Rep: 1, Def: 1, Value: int64(1)},
		{Rep: 1, Def: 1, Value: int64(2)}}, nil, 0)
	var d Decoder
	b := Block{Rows: 1, Lengths: []int32{1}, I64: []int64{9}}
	require.NoError(t, d.Reset(&ct, &p.Header, p.Payload[:len(p.Payload)-1], nil))
	require.ErrorIs(t, d.Continue(&b), format.ErrCorrupt)
	require.Equal(t, []int32{1}, b.Lengths)
	require.Equal(t, []int64{9}, b.I64)
}

func TestSnappyThatPromisesMoreThanItsHeader(t *testing.T) {
	payload := append(binary.AppendUvarint(nil, 1<<30), 0, 'x')
	h := format.PageHeader{Type: format.DataPage, Uncompressed: 10, Compressed: int32(len(payload))}
	ct := format.ColumnType{Physical: format.Int64, Codec: format.Snappy}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Unpack(make([]byte, 10), &h, payload, &ct)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, format.ErrCorrupt)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestFooterAndPagesDisagreeOnLists(t *testing.T) {
	c := &parquettest.Column{Shape: parquettest.ShapeList, Physical: format.Int64, PageRows: 10}
	r := rand.New(rand.NewSource(1))
	c.FillRandom(r, 50, 0.1, false)
	pages := c.Pages(r)
	values, rows := int64(len(c.Levels(r))), int64(len(c.Rows))
	_, err := readEither(t, c.FileOf(pages, values, rows))
	require.NoError(t, err)
	for _, lie := range [][2]int64{{-1, 0}, {1, 0}, {0, -1}, {0, 1}, {-1, -1}, {1, 1}} {
		_, err := readEither(t, c.FileOf(pages, values+lie[0], rows+lie[1]))
		require.ErrorIs(t, err, format.ErrCorrupt, lie)
	}
}

func TestChunkThatBeginsInsideARow(t *testing.T) {
	c := &parquettest.Column{Shape: parquettest.ShapeListRequired, Physical: format.Int32}
	p := c.DataPage(rand.New(rand.NewSource(1)), []parquettest.Level{{Rep: 1, Def: 1, Value: int64(1)},
		{Rep: 0, Def: 1, Value: int64(2)}}, nil, 0)
	file := c.FileOf([]parquettest.Page{p}, 2, 1)
	f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	var chunk chunkReader
	require.NoError(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 0))
	_, err = chunk.Skip(1)
	require.ErrorIs(t, err, format.ErrCorrupt)
	require.NoError(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 0))
	_, err = chunk.Next(&Block{}, 1)
	require.ErrorIs(t, err, format.ErrCorrupt)
}

func TestOpenDictionaryChecksItsOffsets(t *testing.T) {
	ct := format.ColumnType{Physical: format.ByteArray}
	good := func() []byte {
		b := alignedBytes(dictionaryHeader + 3*4 + 4)
		copy(b, dictionaryMagic)
		b[4] = byte(format.ByteArray)
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
		require.ErrorIs(t, err, format.ErrCorrupt, offsets)
	}
}

// A dictionary of INT64 that is unsigned may hold what looks negative, and small: it keeps its bits.
func TestDictionaryOfUnsigned64(t *testing.T) {
	c := &parquettest.Column{Physical: format.Int64}
	want := []any{int64(-5), int64(7), int64(-1 << 31)}
	page := c.Plain(want)
	ct := format.ColumnType{Physical: format.Int64, Unsigned: true, BitWidth: 64}
	h := format.PageHeader{Type: format.DictionaryPage, NumValues: 3, Encoding: format.Plain,
		Uncompressed: int32(len(page)), Compressed: int32(len(page))}
	mem := alignedBytes(int(DictionarySize(&h, &ct)))
	used, err := DecodeDictionary(mem, &h, page, &ct)
	require.NoError(t, err)
	d, err := OpenDictionary(mem[:used], &ct)
	require.NoError(t, err)
	require.Equal(t, want, lookAll(t, &d, &ct))
}

func TestUnpackRefusesHeadersThatContradictThemselves(t *testing.T) {
	ct := format.ColumnType{Physical: format.Int64, Codec: format.LZ4Raw}
	for name, lie := range parquettest.HeaderLies() {
		h := parquettest.HonestHeader()
		lie(&h)
		_, err := Unpack(make([]byte, 100), &h, make([]byte, 100), &ct)
		require.Error(t, err, name)
	}
}

func TestDecoderRefusesInvalidColumnTypes(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(ct *format.ColumnType)
		want error
	}{
		"INT96":             {func(ct *format.ColumnType) { ct.Physical = format.Int96 }, format.ErrCorrupt},
		"LZO":               {func(ct *format.ColumnType) { ct.Codec = format.LZO }, format.ErrUnsupported},
		"three repetitions": {func(ct *format.ColumnType) { ct.MaxRep = 3 }, format.ErrUnsupported},
		"no entries":        {func(ct *format.ColumnType) { ct.MaxRep = 2 }, format.ErrCorrupt},
		"not a list":        {func(ct *format.ColumnType) { ct.List = false }, format.ErrCorrupt},
		"level 64":          {func(ct *format.ColumnType) { ct.MaxDef = 64 }, format.ErrCorrupt},
		"negative length": {func(ct *format.ColumnType) { ct.Physical, ct.TypeLength = format.FixedLenByteArray, -4 },
			format.ErrCorrupt},
	} {
		ct := format.ColumnType{Physical: format.Int64, List: true, MaxDef: 3, MaxRep: 1, RepDef: 2}
		c.lie(&ct)
		require.ErrorIs(t, new(Decoder).Reset(&ct, &format.PageHeader{}, nil, nil), c.want, name)
	}
}
