package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/foreignparquet"
)

// FuzzFooter reads a whole file of any bytes: footer, offset indexes and every column, by kernel and reference.
func FuzzFooter(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for _, c := range samples()[:20] {
		f.Add(c.file(r))
	}
	f.Add(foreignparquet.Twin())
	for _, file := range foreignparquet.Files() {
		f.Add(file.Bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := ReadFooter(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			requireTyped(t, err, "footer")
			return
		}
		for g := range file.RowGroups {
			require.Len(t, file.RowGroups[g].Columns, len(file.Leaves))
			for l := range file.Leaves {
				ch := &file.RowGroups[g].Columns[l]
				if file.Leaves[l].Unsupported != nil || ch.Unsupported != nil || ch.NumValues > 1<<14 {
					continue
				}
				require.GreaterOrEqual(t, ch.Offset, int64(4))
				require.LessOrEqual(t, ch.Offset+ch.Compressed, int64(len(b)))
				_, _ = ReadOffsetIndex(bytes.NewReader(b), file, g, l)
				rows, _, err := readKernel(t, bytes.NewReader(b), file, g, l)
				if err != nil {
					requireTyped(t, err, "kernel")
					continue
				}
				require.Len(t, rows, int(file.RowGroups[g].Rows))
				if ref, err := ReadColumnReference(bytes.NewReader(b), file, g, l); err == nil {
					requireSameRows(t, ref.Rows, rows, "kernel against reference")
				}
			}
		}
	})
}

// FuzzPageHeader reads any bytes as a page header. What is read must survive being written again.
func FuzzPageHeader(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for _, c := range samples()[:20] {
		for _, p := range c.pages(r) {
			f.Add(p.h.marshal())
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := ParsePageHeader(b)
		if err != nil {
			if !errors.Is(err, ErrMoreInput) {
				requireTyped(t, err, "page header")
			}
			return
		}
		require.LessOrEqual(t, n, len(b))
		for k := range n {
			_, _, err := ParsePageHeader(b[:k])
			require.ErrorIs(t, err, ErrMoreInput)
		}
		if h.Type == IndexPage || h.Type > DataPageV2 || h.Encoding == unknown || h.DefEncoding == unknown || h.RepEncoding == unknown {
			return
		}
		again, _, err := ParsePageHeader(h.marshal())
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}

// FuzzPage decodes an unpacked page of any bytes under a type and a header made from the first ones. Kernel and reference
// must agree on whether it is a page and on its rows.
func FuzzPage(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for i, c := range append(samples(), nestedSamples()...) {
		c.codec, c.split, c.pageRows = Uncompressed, false, 100
		for _, p := range c.pages(r) {
			if p.h.data() {
				f.Add(byte(c.shape), byte(c.physical), byte(p.h.Encoding), c.v2, uint16(p.h.NumValues), uint16(p.h.NumRows),
					uint16(p.h.RepBytes), uint16(p.h.DefBytes), byte(i), p.payload)
			}
		}
	}
	f.Fuzz(func(t *testing.T, s, physical, encoding byte, v2 bool, values, rows, rep, def uint16, mix byte, body []byte) {
		ct := (shape(s) % pageShapes).columnType()
		ct.Physical, ct.Unsigned, ct.RowsUncounted = Type(physical%8), mix&1 != 0, mix&4 != 0
		if ct.Physical == FixedLenByteArray {
			ct.TypeLength = 1 + int32(mix>>4)
		}
		if ct.Validate() != nil || len(body) > 1<<16 {
			return
		}
		h := PageHeader{Type: DataPage, Encoding: Encoding(encoding % 10), DefEncoding: RLE, RepEncoding: RLE, NumValues: int32(values % 4096),
			Uncompressed: int32(len(body)), Compressed: int32(len(body))}
		if mix&2 != 0 {
			h.DefEncoding, h.RepEncoding = BitPacked, BitPacked
		}
		if v2 {
			h.Type, h.NumRows, h.RepBytes, h.DefBytes = DataPageV2, int32(rows), int32(rep), int32(def)
			if h.checkSizes() != nil {
				return
			}
		}
		requireAgreement(t, &ct, &h, body, int(mix))
	})
}

// requireAgreement decodes an unpacked page by kernel and reference, which must agree on whether it is one and on its rows.
func requireAgreement(t testing.TB, ct *ColumnType, h *PageHeader, body []byte, entries int) (failed bool) {
	dict, values := fuzzDictionary(ct, entries)
	var d Decoder
	if d.Reset(ct, h, body, dict) == nil && d.Continues() {
		return false // the reference has no row to continue
	}
	got, err := decodePage(ct, h, body, dict)
	ref := reference{ct: *ct, dict: values, column: Column{Kind: ct.Kind(), List: ct.List}}
	if errors.Is(err, ErrLimit) {
		return true // byte arrays that begin alike make much of few bytes
	}
	refErr := ref.page(h, body)
	if (err == nil) != (refErr == nil) {
		t.Fatalf("kernel: %v; reference: %v", err, refErr)
	}
	if err != nil {
		requireTyped(t, err, "page")
		return true
	}
	requireSameRows(t, ref.column.Rows, got, "kernel against reference")
	return false
}

// fuzzDictionary makes a dictionary of a few values for a type, both ways.
func fuzzDictionary(ct *ColumnType, n int) (*Dictionary, []any) {
	c := built{physical: ct.Physical, length: ct.TypeLength, unsigned: ct.Unsigned}
	r := rand.New(rand.NewSource(int64(n)))
	rows := []any{}
	for range n {
		rows = append(rows, c.randomValue(r, false))
	}
	page := c.plain(rows)
	h := PageHeader{Type: DictionaryPage, NumValues: int32(n), Encoding: Plain, Uncompressed: int32(len(page)), Compressed: int32(len(page))}
	mem := alignedBytes(int(DictionarySize(&h, ct)))
	used, err := DecodeDictionary(mem, &h, page, ct)
	if err != nil {
		panic(err)
	}
	d, err := OpenDictionary(mem[:used], ct)
	if err != nil {
		panic(err)
	}
	return &d, rows
}

// FuzzDictionary decodes any bytes as a dictionary page, and opens any bytes as a decoded dictionary.
func FuzzDictionary(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for _, c := range samples() {
		c.codec = Uncompressed
		for _, p := range c.pages(r) {
			if p.h.Type == DictionaryPage {
				f.Add(byte(c.physical), uint16(p.h.NumValues), p.payload, []byte(dictionaryMagic))
			}
		}
	}
	open := alignedBytes(64)
	copy(open, dictionaryMagic)
	open[4] = byte(ByteArray)
	binary.LittleEndian.PutUint32(open[8:], 1)
	binary.LittleEndian.PutUint64(open[16:], 11)
	binary.LittleEndian.PutUint32(open[36:], 3)
	f.Add(byte(ByteArray), uint16(1), []byte{1, 0, 0, 0, 'a'}, open)
	f.Fuzz(func(t *testing.T, physical byte, n uint16, page, decoded []byte) {
		ct := ColumnType{Physical: Type(physical % 8)}
		if ct.Physical == FixedLenByteArray {
			ct.TypeLength = 1 + int32(physical>>3)
		}
		if ct.Validate() != nil || len(page) > 1<<16 {
			return
		}
		h := PageHeader{Type: DictionaryPage, NumValues: int32(n), Uncompressed: int32(len(page)), Compressed: int32(len(page))}
		mem := alignedBytes(int(DictionarySize(&h, &ct)))
		used, err := DecodeDictionary(mem, &h, page, &ct)
		ref := reference{ct: ct}
		refErr := ref.page(&h, page)
		require.Equal(t, refErr == nil, err == nil, "kernel %v, reference %v", err, refErr)
		if err == nil {
			d, err := OpenDictionary(mem[:used], &ct)
			require.NoError(t, err)
			requireSameRows(t, ref.dict, lookAll(t, &d, &ct), "dictionary")
		}
		// Anything at all as a decoded dictionary: refused, or every entry can be read.
		aligned := alignedBytes(len(decoded))[:len(decoded)]
		copy(aligned, decoded)
		if d, err := OpenDictionary(aligned, &ct); err == nil {
			require.Len(t, lookAll(t, &d, &ct), d.Len())
		}
	})
}

// lookAll reads every entry of a dictionary through the decoder.
func lookAll(t testing.TB, d *Dictionary, ct *ColumnType) []any {
	indices := make([]uint32, d.Len())
	for i := range indices {
		indices[i] = uint32(i)
	}
	body := append([]byte{20}, plainRuns(indices, 20)...)
	h := PageHeader{Type: DataPage, Encoding: RLEDictionary, NumValues: int32(len(indices)), Uncompressed: int32(len(body)), Compressed: int32(len(body))}
	flat := *ct
	flat.MaxDef, flat.MaxRep, flat.RepDef, flat.List = 0, 0, 0, false
	rows, err := decodePage(&flat, &h, body, d)
	require.NoError(t, err)
	return rows
}

// FuzzUnpack decompresses any bytes into any size: never past the destination, and never less than promised.
func FuzzUnpack(f *testing.F) {
	text := bytes.Repeat([]byte("mini-batch "), 40)
	for _, c := range []Codec{Snappy, Gzip, Zstd, LZ4Raw} {
		f.Add(byte(c), uint16(len(text)), pack(text, c))
	}
	f.Fuzz(func(t *testing.T, codec byte, promised uint16, payload []byte) {
		ct := ColumnType{Physical: Int64, Codec: Codec(codec % 8)}
		h := PageHeader{Type: DataPage, Uncompressed: int32(promised), Compressed: int32(len(payload))}
		const guard = 32
		dst := bytes.Repeat([]byte{0xa5}, int(promised)+guard)
		out, err := Unpack(dst[:promised], &h, payload, &ct)
		require.Equal(t, bytes.Repeat([]byte{0xa5}, guard), dst[promised:])
		if err != nil {
			requireTyped(t, err, "unpack")
			return
		}
		require.Len(t, out, int(promised))
		ref, err := referenceUnpack(payload, int(promised), ct.Codec)
		require.NoError(t, err)
		require.True(t, bytes.Equal(ref, out))
	})
}

// FuzzOffsetIndex parses any bytes as an offset index.
func FuzzOffsetIndex(f *testing.F) {
	var w thriftWriter
	w.begin()
	w.list(1, tStruct, 2)
	for i := range int64(2) {
		w.begin()
		w.i64(1, 4+100*i)
		w.i32(2, 100)
		w.i64(3, 10*i)
		w.end()
	}
	w.end()
	f.Add(w.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		locations, err := parseOffsetIndex(b)
		if err != nil {
			requireTyped(t, err, "offset index")
			return
		}
		ch := Chunk{Offset: 4, Compressed: 1000}
		if checkLocations(locations, &ch, 100) == nil {
			for _, p := range locations {
				require.LessOrEqual(t, p.Offset+int64(p.Size), int64(1004))
			}
		}
	})
}
