package decoder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
	"github.com/millrace/millrace/internal/foreignparquettest"
)

// FuzzFile reads a whole file of any bytes: footer, offset indexes and every column, by decoder and reference.
func FuzzFile(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for _, c := range parquettest.Samples()[:20] {
		f.Add(c.File(r))
	}
	f.Add(foreignparquettest.Twin())
	for _, file := range foreignparquettest.Files() {
		f.Add(file.Bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := format.ReadFooter(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			parquettest.RequireTyped(t, err, "footer")
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
				_, _ = format.ReadOffsetIndex(bytes.NewReader(b), file, g, l)
				rows, _, err := readKernel(t, bytes.NewReader(b), file, g, l)
				ref, refErr := reference.ReadColumn(bytes.NewReader(b), file, g, l)
				require.Equal(t, refErr == nil, err == nil, "kernel %v, reference %v", err, refErr)
				if err != nil {
					parquettest.RequireTyped(t, err, "kernel")
					continue
				}
				require.Len(t, rows, int(file.RowGroups[g].Rows))
				requireSameRows(t, ref.Rows, rows, "kernel against reference")
			}
		}
	})
}

// FuzzPage decodes an unpacked page of any bytes under a type and a header made from the first ones. Kernel and
// reference must agree on whether it is a page and on its rows.
func FuzzPage(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for i, c := range append(parquettest.Samples(), parquettest.NestedSamples()...) {
		c.Codec, c.SplitRows, c.PageRows = format.Uncompressed, false, 100
		for _, p := range c.Pages(r) {
			if p.Header.HoldsRows() {
				f.Add(byte(c.Shape), byte(c.Physical), byte(p.Header.Encoding), c.V2, uint16(p.Header.NumValues),
					uint16(p.Header.NumRows),
					uint16(p.Header.RepBytes), uint16(p.Header.DefBytes), byte(i), p.Payload)
			}
		}
	}
	f.Fuzz(func(t *testing.T, s, physical, encoding byte, v2 bool, values, rows, rep, def uint16, mix byte,
		body []byte) {
		ct := (parquettest.Shape(s) % parquettest.PageShapes).ColumnType()
		ct.Physical, ct.Unsigned, ct.RowsUncounted = format.Type(physical%8), mix&1 != 0, mix&4 != 0
		switch ct.Physical {
		case format.FixedLenByteArray:
			ct.TypeLength = 1 + int32(mix>>4)
		case format.Int96:
			ct.TypeLength = 12
		}
		if ct.Validate() != nil || len(body) > 1<<16 {
			return
		}
		h := format.PageHeader{Type: format.DataPage, Encoding: format.Encoding(encoding % 10), DefEncoding: format.RLE,
			RepEncoding: format.RLE, NumValues: int32(values % 4096),
			Uncompressed: int32(len(body)), Compressed: int32(len(body))}
		if mix&2 != 0 {
			h.DefEncoding, h.RepEncoding = format.BitPacked, format.BitPacked
		}
		if v2 {
			h.Type, h.NumRows, h.RepBytes, h.DefBytes = format.DataPageV2, int32(rows), int32(rep), int32(def)
			if h.CheckSizes() != nil {
				return
			}
		}
		requireAgreement(t, &ct, &h, body, int(mix))
	})
}

// requireAgreement decodes an unpacked page by kernel and reference, which must agree on whether it is one and on its
// rows.
func requireAgreement(t testing.TB, ct *format.ColumnType, h *format.PageHeader, body []byte,
	entries int) (failed bool) {
	dict, values := fuzzDictionary(ct, entries)
	var d Decoder
	if d.Reset(ct, h, body, dict) == nil && d.Continues() {
		return false // the reference has no row to continue
	}
	got, err := decodePage(ct, h, body, dict)
	ref := reference.Chunk{Type: *ct, Dictionary: values}
	if errors.Is(err, format.ErrLimit) {
		return true // byte arrays that begin alike make much of few bytes
	}
	refErr := ref.AddPage(h, body)
	if (err == nil) != (refErr == nil) {
		t.Fatalf("kernel: %v; reference: %v", err, refErr)
	}
	if err != nil {
		parquettest.RequireTyped(t, err, "page")
		return true
	}
	requireSameRows(t, ref.Rows, got, "kernel against reference")
	return false
}

// fuzzDictionary makes a dictionary of a few values for a type, both ways.
func fuzzDictionary(ct *format.ColumnType, n int) (*Dictionary, []any) {
	c := parquettest.Column{Physical: ct.Physical, Length: ct.TypeLength, Unsigned: ct.Unsigned}
	r := rand.New(rand.NewSource(int64(n)))
	rows := []any{}
	for range n {
		rows = append(rows, c.RandomValue(r, false))
	}
	page := c.Plain(rows)
	h := format.PageHeader{Type: format.DictionaryPage, NumValues: int32(n), Encoding: format.Plain,
		Uncompressed: int32(len(page)), Compressed: int32(len(page))}
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
	for _, c := range parquettest.Samples() {
		c.Codec = format.Uncompressed
		for _, p := range c.Pages(r) {
			if p.Header.Type == format.DictionaryPage {
				f.Add(byte(c.Physical), uint16(p.Header.NumValues), p.Payload, []byte(dictionaryMagic))
			}
		}
	}
	open := alignedBytes(64)
	copy(open, dictionaryMagic)
	open[4] = byte(format.ByteArray)
	binary.LittleEndian.PutUint32(open[8:], 1)
	binary.LittleEndian.PutUint64(open[16:], 11)
	binary.LittleEndian.PutUint32(open[36:], 3)
	f.Add(byte(format.ByteArray), uint16(1), []byte{1, 0, 0, 0, 'a'}, open)
	f.Fuzz(func(t *testing.T, physical byte, n uint16, page, decoded []byte) {
		ct := format.ColumnType{Physical: format.Type(physical % 8)}
		switch ct.Physical {
		case format.FixedLenByteArray:
			ct.TypeLength = 1 + int32(physical>>3)
		case format.Int96:
			ct.TypeLength = 12
		}
		if ct.Validate() != nil || len(page) > 1<<16 {
			return
		}
		h := format.PageHeader{Type: format.DictionaryPage, NumValues: int32(n), Uncompressed: int32(len(page)),
			Compressed: int32(len(page))}
		mem := alignedBytes(int(DictionarySize(&h, &ct)))
		used, err := DecodeDictionary(mem, &h, page, &ct)
		ref := reference.Chunk{Type: ct}
		refErr := ref.AddPage(&h, page)
		require.Equal(t, refErr == nil, err == nil, "kernel %v, reference %v", err, refErr)
		if err == nil {
			d, err := OpenDictionary(mem[:used], &ct)
			require.NoError(t, err)
			requireSameRows(t, ref.Dictionary, lookAll(t, &d, &ct), "dictionary")
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
func lookAll(t testing.TB, d *Dictionary, ct *format.ColumnType) []any {
	indices := make([]uint32, d.Len())
	for i := range indices {
		indices[i] = uint32(i)
	}
	body := append([]byte{20}, parquettest.PlainRuns(indices, 20)...)
	h := format.PageHeader{Type: format.DataPage, Encoding: format.RLEDictionary, NumValues: int32(len(indices)),
		Uncompressed: int32(len(body)), Compressed: int32(len(body))}
	flat := *ct
	flat.MaxDef, flat.MaxRep, flat.RepDef, flat.List = 0, 0, 0, false
	rows, err := decodePage(&flat, &h, body, d)
	require.NoError(t, err)
	return rows
}

// FuzzUnpack decompresses any bytes into any size: never past the destination, and never less than promised.
func FuzzUnpack(f *testing.F) {
	text := bytes.Repeat([]byte("mini-batch "), 40)
	for _, c := range []format.Codec{format.Snappy, format.Gzip, format.Zstd, format.LZ4Raw, format.LZ4,
		format.Brotli} {
		f.Add(byte(c), uint16(len(text)), parquettest.Compress(text, c))
	}
	for _, frames := range hadoopFrames(text) {
		f.Add(byte(format.LZ4), uint16(len(text)), frames.bytes)
	}
	f.Fuzz(func(t *testing.T, codec byte, promised uint16, payload []byte) {
		ct := format.ColumnType{Physical: format.Int64, Codec: format.Codec(codec % 8)}
		h := format.PageHeader{Type: format.DataPage, Uncompressed: int32(promised), Compressed: int32(len(payload))}
		const guard = 32
		dst := bytes.Repeat([]byte{0xa5}, int(promised)+guard)
		out, err := Unpack(dst[:promised], &h, payload, &ct)
		require.Equal(t, bytes.Repeat([]byte{0xa5}, guard), dst[promised:])
		ref, refErr := reference.Unpack(payload, int(promised), ct.Codec)
		require.Equal(t, refErr == nil, err == nil, "kernel %v, reference %v", err, refErr)
		if err != nil {
			parquettest.RequireTyped(t, err, "unpack")
			return
		}
		require.Len(t, out, int(promised))
		require.True(t, bytes.Equal(ref, out))
	})
}

// FuzzReadRuns compares the values of a section with those of the reference, which takes longer headers of runs, and
// knows no limit.
func FuzzReadRuns(f *testing.F) {
	f.Add([]byte{3, 0x88, 0xc6, 0xfa, 20, 5}, uint8(3), uint32(7), uint16(18))
	f.Add([]byte{0x80, 0x80, 0x80, 0x80, 0x10, 1}, uint8(1), uint32(1), uint16(1))
	f.Add([]byte{4, 3, 0, 0, 0, 3}, uint8(32), uint32(1<<32-1), uint16(9))
	f.Fuzz(func(t *testing.T, section []byte, width uint8, limit uint32, n uint16) {
		bits := uint(width % 33)
		limit = min(limit, uint32(1<<bits-1))
		values := make([]uint32, n%4096)
		err := ReadRuns(values, section, bits, limit)
		want, refErr := reference.ReadRuns(section, int(bits), len(values))
		if err == nil {
			require.NoError(t, refErr)
			require.True(t, slices.Equal(want, values))
			return
		}
		above := slices.ContainsFunc(want, func(v uint32) bool { return v > limit })
		require.True(t, refErr != nil || above || hasLongHeader(section), "%v", err)
	})
}

// hasLongHeader reports whether a section may hold the header of a run in more than five bytes.
func hasLongHeader(section []byte) bool {
	continued := 0
	for _, c := range section {
		if continued++; c < 0x80 {
			continued = 0
		}
		if continued == 5 {
			return true
		}
	}
	return false
}
