package decoder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/encoding"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
)

// flat writes the only page of a required or optional column.
func flat(t testing.TB, c *parquettest.Column) (format.ColumnType, format.PageHeader, []byte) {
	maxDef, repDef := c.Shape.LevelBounds()
	ct := format.ColumnType{Physical: c.Physical, TypeLength: c.Length, MaxDef: maxDef, RepDef: repDef,
		List: repDef > 0, MaxRep: min(repDef, 1)}
	c.PageRows = len(c.Rows)
	pages := c.Pages(rand.New(rand.NewSource(1)))
	require.Len(t, pages, 1)
	return ct, pages[0].Header, pages[0].Payload
}

func TestDecoderMisuse(t *testing.T) {
	c := &parquettest.Column{Physical: format.Int64, Rows: []any{int64(1), int64(2)}}
	ct, h, page := flat(t, c)
	var d Decoder
	var b Block
	require.NoError(t, d.Reset(&ct, &h, page, nil))
	require.Error(t, d.Skip(3))
	require.Error(t, d.Skip(-1))
	b.Reset(format.KindFloat32)
	_, err := d.Next(&b, 1)
	require.ErrorContains(t, err, "block of float32")
	b.Reset(format.KindInt64)
	n, err := d.Next(&b, 0)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = d.Next(&b, 100)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []int64{1, 2}, b.I64)
	n, err = d.Next(&b, 100)
	require.NoError(t, err)
	require.Zero(t, n)

	var fresh Decoder
	fresh.err = errNoPage
	require.Error(t, d.Reset(&ct, &format.PageHeader{Type: format.IndexPage}, nil, nil))
	_, err = d.Next(&b, 1)
	require.Error(t, err, "after a failed Reset nothing is decoded")
	require.Error(t, d.Reset(&format.ColumnType{Physical: format.Int96}, &h, page, nil))
	h.Encoding = format.RLEDictionary
	require.ErrorIs(t, d.Reset(&ct, &h, page, nil), format.ErrCorrupt, "indices without a dictionary")
	h.Encoding = format.DeltaByteArray
	require.ErrorIs(t, d.Reset(&ct, &h, page, nil), format.ErrUnsupported)
	require.ErrorContains(t, d.Reset(&ct, &h, page, nil), "DELTA_BYTE_ARRAY of INT64")
}

func TestDecoderContinues(t *testing.T) {
	ct := format.ColumnType{Physical: format.Int32, MaxDef: 1, RepDef: 1, MaxRep: 1, List: true}
	c := &parquettest.Column{Shape: parquettest.ShapeListRequired, Physical: format.Int32}
	r := rand.New(rand.NewSource(1))
	page := func(levels ...parquettest.Level) (format.PageHeader, []byte) {
		p := c.DataPage(r, levels, nil, 0)
		return p.Header, p.Payload
	}
	var d Decoder
	var b Block
	h, p := page(parquettest.Level{Rep: 0, Def: 1, Value: int64(1)}, parquettest.Level{Rep: 0, Def: 1, Value: int64(2)},
		parquettest.Level{Rep: 1, Def: 1, Value: int64(3)})
	require.NoError(t, d.Reset(&ct, &h, p, nil))
	require.False(t, d.Continues())
	require.Equal(t, 2, d.Rows())
	_, err := d.Next(&b, 2)
	require.NoError(t, err)

	// all of it the row before
	h, p = page(parquettest.Level{Rep: 1, Def: 1, Value: int64(4)}, parquettest.Level{Rep: 1, Def: 1, Value: int64(5)})
	require.NoError(t, d.Reset(&ct, &h, p, nil))
	require.True(t, d.Continues())
	require.Zero(t, d.Rows())
	_, err = d.Next(&b, 1)
	require.ErrorIs(t, err, format.ErrContinues)
	require.NoError(t, d.Continue(&b))
	require.False(t, d.Continues())

	h, p = page(parquettest.Level{Rep: 1, Def: 1, Value: int64(6)}, parquettest.Level{Rep: 0, Def: 1, Value: int64(7)},
		parquettest.Level{Rep: 0, Def: 0, Value: nil})
	require.NoError(t, d.Reset(&ct, &h, p, nil))
	require.True(t, d.Continues())
	require.Equal(t, 2, d.Rows())
	require.NoError(t, d.Continue(&b))
	require.NoError(t, d.Continue(&b), "nothing more to continue")
	_, err = d.Next(&b, 5)
	require.NoError(t, err)
	require.Equal(t, []int32{1, 5, 1, 0}, b.Lengths)
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7}, b.I64)

	require.NoError(t, d.Reset(&ct, &h, p, nil))
	require.NoError(t, d.Skip(0))
	require.False(t, d.Continues())
	b.Reset(format.KindInt64)
	_, err = d.Next(&b, 1)
	require.NoError(t, err)
	require.Equal(t, []int64{7}, b.I64)

	require.NoError(t, d.Reset(&ct, &h, p, nil))
	b.Reset(format.KindInt64)
	require.ErrorIs(t, d.Continue(&b), format.ErrContinues, "the block does not have the row")

	h.Type, h.NumRows = format.DataPageV2, 2 // v2 pages begin with a row
	h.RepBytes, h.DefBytes = 2, 2
	require.ErrorIs(t, d.Reset(&ct, &h, []byte{3, 0b001, 3, 0b011, 1, 0, 0, 0, 2, 0, 0, 0}, nil), format.ErrCorrupt)
}

// TestFailedNextLeavesTheBlock fails in the middle of a page and looks at what was there before.
func TestFailedNextLeavesTheBlock(t *testing.T) {
	for _, c := range parquettest.Samples() {
		if c.Encoding.IsDictionary() || c.Physical == format.Boolean {
			continue
		}
		c.Codec, c.SplitRows, c.V2 = format.Uncompressed, false, false
		ct, h, page := flat(t, c)
		var b Block
		b.Reset(ct.Kind())
		var d Decoder
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		_, err := d.Next(&b, 10)
		require.NoError(t, err)
		want := rowsOf(&b, &ct)
		if err := d.Reset(&ct, &h, page[:len(page)-1], nil); err != nil {
			continue
		}
		if err = d.Skip(10); err == nil { // a miniblock of deltas is there whole or not at all
			_, err = d.Next(&b, d.Rows())
		}
		require.ErrorIs(t, err, format.ErrCorrupt, c)
		requireSameRows(t, want, rowsOf(&b, &ct), c.String())
		require.Empty(t, broken(&b, &ct))
	}
}

func TestBlockBounds(t *testing.T) {
	c := &parquettest.Column{Physical: format.ByteArray, Rows: []any{[]byte("abc"), []byte("de"), []byte("f")}}
	for _, tc := range []struct {
		values, data int
		want         error
	}{{3, 6, nil}, {2, 6, format.ErrLimit}, {3, 5, format.ErrLimit}, {4, 7, nil}, {0, 0, nil}} {
		t.Run(fmt.Sprintf("%d values %d bytes", tc.values, tc.data), func(t *testing.T) {
			for _, e := range []format.Encoding{format.Plain, format.RLEDictionary} {
				c.Encoding = e
				b := Block{MaxValues: tc.values, MaxData: tc.data}
				b.Reset(format.KindBytes)
				var chunk chunkReader
				file := c.File(rand.New(rand.NewSource(1)))
				f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
				require.NoError(t, err)
				require.NoError(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 0))
				_, err = chunk.Next(&b, 3)
				require.ErrorIs(t, err, tc.want)
				if tc.want == nil {
					require.Equal(t, "abcdef", string(b.Data))
				}
			}
		})
	}
}

func TestChunkReaderEnds(t *testing.T) {
	c := parquettest.SmallColumn()
	file := c.File(rand.New(rand.NewSource(1)))
	f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	var chunk chunkReader
	require.Error(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 1))
	require.Error(t, chunk.OpenChunk(bytes.NewReader(file), f, -1, 0))
	_, err = chunk.Next(&Block{}, 1)
	require.Error(t, err)
	require.NotErrorIs(t, err, io.EOF)
	require.NoError(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 0))
	n, err := chunk.Skip(29)
	require.NoError(t, err)
	require.Equal(t, int64(29), n)
	n, err = chunk.Skip(5)
	require.NoError(t, err)
	require.Equal(t, int64(1), n)
	_, err = chunk.Skip(5)
	require.ErrorIs(t, err, io.EOF)
	_, err = chunk.Next(&Block{}, 5)
	require.ErrorIs(t, err, io.EOF)

	chunk.MaxPage = 8
	packed := &parquettest.Column{Physical: format.Int64, Codec: format.Snappy, PageRows: 100,
		Rows: []any{int64(1), int64(2)}}
	file = packed.File(rand.New(rand.NewSource(1)))
	f, err = format.ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	require.NoError(t, chunk.OpenChunk(bytes.NewReader(file), f, 0, 0))
	_, err = chunk.Next(&Block{}, 5)
	var size *format.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, format.SizeError{What: "unpacked page", Need: 16, Have: 8}, *size)
	var place *format.PageError
	require.ErrorAs(t, err, &place)
	require.Equal(t, format.PageError{Column: "c", Offset: 4, Err: place.Err}, *place)
}

func TestDictionaryMemory(t *testing.T) {
	c := &parquettest.Column{Physical: format.ByteArray, Encoding: format.RLEDictionary,
		Rows: []any{[]byte("one"), []byte("three"), []byte("")}}
	p := c.Pages(rand.New(rand.NewSource(1)))[0]
	ct := format.ColumnType{Physical: format.ByteArray}
	need := int(DictionarySize(&p.Header, &ct))
	used, err := DecodeDictionary(alignedBytes(need), &p.Header, p.Payload, &ct)
	require.NoError(t, err)
	require.LessOrEqual(t, used, need)
	least := dictionaryHeader + 4*4 + len(p.Payload) - 3*4
	require.Equal(t, least, used)
	_, err = DecodeDictionary(alignedBytes(need)[:least-1], &p.Header, p.Payload, &ct)
	var size *format.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, int64(least), size.Need)
	_, err = DecodeDictionary(alignedBytes(need + 8)[1:], &p.Header, p.Payload, &ct)
	require.ErrorContains(t, err, "aligned")

	mem := alignedBytes(need)
	used, err = DecodeDictionary(mem, &p.Header, p.Payload, &ct)
	require.NoError(t, err)
	_, err = OpenDictionary(mem[:used], &format.ColumnType{Physical: format.Int64})
	require.ErrorIs(t, err, format.ErrCorrupt)
	for at := range used {
		for _, flip := range []byte{1, 0x80} {
			mem[at] ^= flip
			if d, err := OpenDictionary(mem[:used], &ct); err == nil {
				require.Len(t, lookAll(t, &d, &ct), d.Len())
			} else {
				require.ErrorIs(t, err, format.ErrCorrupt)
			}
			mem[at] ^= flip
		}
	}
	for n := range used {
		_, err := OpenDictionary(mem[:n], &ct)
		require.ErrorIs(t, err, format.ErrCorrupt)
	}
	// Memory that changes after it was opened gives an error, not a fault.
	d, err := OpenDictionary(mem[:used], &ct)
	require.NoError(t, err)
	d.offsets[1] = 1 << 30
	body := append([]byte{2}, parquettest.PlainRuns([]uint32{0, 1, 2}, 2)...)
	h := format.PageHeader{Type: format.DataPage, Encoding: format.RLEDictionary, NumValues: 3,
		Uncompressed: int32(len(body)), Compressed: int32(len(body))}
	_, err = decodePage(&ct, &h, body, &d)
	require.ErrorIs(t, err, format.ErrCorrupt)
}

// TestDictionaryOfIntegers holds integers around the ends of 32 bits against what they were, at the size that they
// take.
func TestDictionaryOfIntegers(t *testing.T) {
	for _, c := range []struct {
		ct     format.ColumnType
		values []int64
		size   int
	}{
		{format.ColumnType{Physical: format.Int64}, []int64{0, -1, math.MaxInt32, math.MinInt32}, 4},
		{format.ColumnType{Physical: format.Int64}, []int64{math.MaxInt32 + 1, 1, 2}, 8},
		{format.ColumnType{Physical: format.Int64},
			[]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, math.MinInt32 - 1}, 8},
		{format.ColumnType{Physical: format.Int64}, []int64{math.MinInt64, math.MaxInt64}, 8},
		{format.ColumnType{Physical: format.Int64}, []int64{}, 4},
		{format.ColumnType{Physical: format.Int32}, []int64{math.MaxInt32, math.MinInt32, -1}, 4},
		{format.ColumnType{Physical: format.Int32, BitWidth: 32, Unsigned: true}, []int64{math.MaxUint32, 0, 1 << 31},
			4},
		{format.ColumnType{Physical: format.Boolean}, []int64{1, 0, 1, 1, 0, 1, 0, 0, 1}, 4},
	} {
		for skip := range 9 { // the page may begin anywhere
			page := make([]byte, skip, 200)
			for i, v := range c.values {
				switch {
				case c.ct.Physical == format.Int64:
					page = binary.LittleEndian.AppendUint64(page, uint64(v))
				case c.ct.Physical == format.Int32:
					page = binary.LittleEndian.AppendUint32(page, uint32(v))
				case i%8 == 0:
					page = append(page, byte(v))
				default:
					page[len(page)-1] |= byte(v) << (i % 8)
				}
			}
			page = page[skip:]
			h := format.PageHeader{Type: format.DictionaryPage, NumValues: int32(len(c.values)),
				Uncompressed: int32(len(page)), Compressed: int32(len(page))}
			mem := alignedBytes(int(DictionarySize(&h, &c.ct)))
			used, err := DecodeDictionary(mem, &h, page, &c.ct)
			require.NoError(t, err)
			require.Equal(t, dictionaryHeader+c.size*len(c.values), used)
			d, err := OpenDictionary(mem[:used], &c.ct)
			require.NoError(t, err)
			require.Equal(t, len(c.values), d.Len())
			got := lookAll(t, &d, &c.ct)
			for i, v := range c.values {
				require.EqualValues(t, v, got[i], "value %d of %v", i, c.values)
			}
		}
	}
}

func TestDictionaryIndexOutOfRange(t *testing.T) {
	for _, ct := range []format.ColumnType{{Physical: format.Int64}, {Physical: format.Int32},
		{Physical: format.Int32, BitWidth: 32, Unsigned: true}, {Physical: format.Float}, {Physical: format.Double},
		{Physical: format.ByteArray}} {
		dict, _ := fuzzDictionary(&ct, 3)
		for _, indices := range [][]uint32{{0, 1, 3}, {3, 3, 3, 3, 3, 3, 3, 3, 3}} {
			body := append([]byte{2}, parquettest.PlainRuns(indices, 2)...)
			h := format.PageHeader{Type: format.DataPage, Encoding: format.RLEDictionary,
				NumValues: int32(len(indices)), Uncompressed: int32(len(body)), Compressed: int32(len(body))}
			_, err := decodePage(&ct, &h, body, dict)
			require.ErrorIs(t, err, format.ErrCorrupt)
			require.ErrorContains(t, err, "dictionary index 3")
			body[0] = 33
			_, err = decodePage(&ct, &h, body, dict)
			require.ErrorContains(t, err, "33 bits")
		}
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	if underRace {
		t.Skip("under the race detector sync.Pool forgets decompressors on purpose")
	}
	for _, c := range parquettest.Samples() {
		if c.SplitRows {
			continue
		}
		if c.Codec == format.Brotli {
			continue // the library makes its tables again
		}
		file := c.File(rand.New(rand.NewSource(1)))
		f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		ch := &f.RowGroups[0].Columns[0]
		chunk := file[ch.Offset : ch.Offset+ch.Compressed]
		var reader chunkReader
		var b Block
		read := func() {
			if err := reader.Reset(f.Leaves[0].ColumnType(ch.Codec), chunk, ch.NumValues, f.Rows); err != nil {
				t.Fatal(err)
			}
			for {
				b.Reset(reader.ct.Kind())
				if _, err := reader.Next(&b, 33); errors.Is(err, io.EOF) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
		read()
		allowed := 1. // the pools may be emptied by a collection
		require.LessOrEqual(t, testing.AllocsPerRun(20, read), allowed, c)
	}
}

// TestUnpackBits compares the unrolled readers with the one that reads a value, at every width, offset and length.
func TestUnpackBits(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	src := make([]byte, 200)
	_, _ = r.Read(src)
	for w := uint(0); w <= 32; w++ {
		for range 60 {
			n := r.Intn(40)
			first := r.Intn(9)
			b := src[:(int(w)*(n+first)+7)/8+r.Intn(12)]
			dst, small := make([]uint32, n), make([]byte, n)
			encoding.Unpack32(dst, b, first*int(w), w)
			if w > 0 && w <= 6 {
				unpackLevels(small, b, first*int(w), w)
			}
			ones := 0
			for i, v := range dst {
				var want uint32
				for k := range int(w) {
					bit := (first+i)*int(w) + k
					want |= uint32(b[bit/8]>>(bit%8)&1) << k
				}
				require.Equal(t, want, v, "width %d, value %d of %d from %d", w, i, n, first)
				if w > 0 && w <= 6 {
					require.Equal(t, byte(want), small[i])
				}
				ones += int(want)
			}
			if w == 1 {
				require.Equal(t, ones, countOnesFrom(b, first, n))
				require.Equal(t, ones, countOneBytes(small))
			}
		}
	}
}

func TestUnsignedIntegersZeroExtend(t *testing.T) {
	for _, e := range []format.Encoding{format.Plain, format.RLEDictionary} {
		c := &parquettest.Column{Physical: format.Int32, Unsigned: true, Encoding: e, PageRows: 100}
		for i := range 9 {
			c.Rows = append(c.Rows, int64(0xffffffff)-int64(i))
		}
		file := c.File(rand.New(rand.NewSource(1)))
		f, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		require.Equal(t, "INT(32, unsigned)", f.Leaves[0].Logical)
		require.Equal(t, 32, f.Leaves[0].BitWidth)
		rows, _, err := readKernel(t, bytes.NewReader(file), f, 0, 0)
		require.NoError(t, err)
		requireSameRows(t, c.Rows, rows, "unsigned")
		f.Leaves[0].Unsigned = false
		rows, _, err = readKernel(t, bytes.NewReader(file), f, 0, 0)
		require.NoError(t, err)
		require.Equal(t, int64(-1), rows[0])
	}
}

// TestLentValues: PLAIN values without a null are the page's own bytes, wherever they lie; nulls, other encodings and
// other pages are not, and what a block owned before is its own again.
func TestLentValues(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for _, physical := range []format.Type{format.Int64, format.Float, format.Double} {
		for s := parquettest.Shape(0); s < parquettest.Shapes; s++ {
			c := &parquettest.Column{Shape: s, Physical: physical, Encoding: format.Plain}
			c.FillRandom(r, 3000, 0, false)
			ct, h, page := flat(t, c)
			before := bytes.Clone(page)
			own, lent := new(Block), &Block{Lend: true}
			var d, e Decoder
			require.NoError(t, d.Reset(&ct, &h, page, nil))
			require.NoError(t, e.Reset(&ct, &h, page, nil))
			for d.Rows() > 0 {
				own.Reset(ct.Kind())
				lent.Reset(ct.Kind())
				require.False(t, lent.Lent)
				for range 3 {
					_, err := d.Next(own, 400)
					require.NoError(t, err)
					_, err = e.Next(lent, 400)
					require.NoError(t, err)
				}
				require.Equal(t, own.Values() > 0, lent.Lent, "%v", c)
				requireSameRows(t, rowsOf(own, &ct), rowsOf(lent, &ct), c.String())
			}
			require.Equal(t, before, page)
		}
	}
	// A null in the middle takes the values out of the page.
	c := &parquettest.Column{Shape: parquettest.ShapeOptional, Physical: format.Int64, Encoding: format.Plain}
	for i := range 3000 {
		var v any = int64(i)
		if i == 2000 {
			v = nil
		}
		c.Rows = append(c.Rows, v)
	}
	ct, h, page := flat(t, c)
	var d Decoder
	require.NoError(t, d.Reset(&ct, &h, page, nil))
	b := Block{Lend: true}
	b.Reset(format.KindInt64)
	before := bytes.Clone(page)
	for _, n := range []int{500, 2000, 500} {
		_, err := d.Next(&b, n)
		require.NoError(t, err)
	}
	requireSameRows(t, c.Rows, rowsOf(&b, &ct), "with a null")
	require.Equal(t, before, page, "the page is not written to")
}
