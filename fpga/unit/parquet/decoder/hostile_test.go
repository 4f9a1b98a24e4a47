package decoder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/internal/parquettest"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// harms is how many times a page or a file is harmed: n, or a hundred times that with MILLRACE_SWEEP set.
func harms(n int) int {
	if os.Getenv("MILLRACE_SWEEP") != "" {
		return 100 * n
	}
	if underRace {
		return n / 4
	}
	return n
}

// readEither reads the only column of a file that may be anything with kernel and reference, and returns the rows and
// the first error. The two need not agree on what is wrong; where neither finds anything they must agree on the values.
func readEither(t testing.TB, b []byte) ([]any, error) {
	r := bytes.NewReader(b)
	f, err := format.ReadFooter(r, int64(len(b)))
	if err != nil {
		return nil, err
	}
	if len(f.RowGroups) != 1 || len(f.Leaves) != 1 || f.Rows > 1<<20 {
		return nil, errors.New("another file")
	}
	rows, _, err := readKernel(t, r, f, 0, 0)
	ref, refErr := reference.ReadColumn(r, f, 0, 0)
	require.Equal(t, refErr == nil, err == nil, "kernel %v, reference %v", err, refErr)
	if err != nil {
		return nil, err
	}
	require.Len(t, rows, int(f.Rows))
	requireSameRows(t, ref.Rows, rows, "kernel against reference")
	return rows, nil
}

func TestFlippedBitsNeverPanicAndKeepTheShape(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	failed, kept := 0, 0
	for _, c := range parquettest.Samples() {
		file := c.File(r)
		for range harms(20) {
			b := bytes.Clone(file)
			for range 1 + r.Intn(3) {
				b[r.Intn(len(b))] ^= 1 << r.Intn(8)
			}
			if _, err := readEither(t, b); err != nil {
				failed++
			} else {
				kept++
			}
		}
	}
	require.Positive(t, failed)
	require.Positive(t, kept)
}

// TestHarmedPagesAreJudgedAlike flips bits of unpacked pages, where no checksum and no codec stands before the decoder:
// kernel and reference must agree on which are still pages, and on their rows.
func TestHarmedPagesAreJudgedAlike(t *testing.T) {
	r := rand.New(rand.NewSource(6))
	failed, kept := 0, 0
	for _, c := range append(parquettest.Samples(), parquettest.NestedSamples()...) {
		c.Codec, c.SplitRows = format.Uncompressed, false
		ct := c.ColumnType()
		for _, p := range c.Pages(r) {
			if !p.Header.HoldsRows() || len(p.Payload) == 0 {
				continue
			}
			for range harms(12) {
				body := bytes.Clone(p.Payload)
				for range 1 + r.Intn(3) {
					// Mostly near the beginning, where the levels and the run headers are.
					body[min(r.Intn(len(body)), r.Intn(len(body)))] ^= 1 << r.Intn(8)
				}
				if requireAgreement(t, &ct, &p.Header, body, 100) {
					failed++
				} else {
					kept++
				}
			}
		}
	}
	require.Positive(t, failed)
	require.Positive(t, kept)
	t.Logf("%d failed, %d kept", failed, kept)
}

func TestFlipUnderChecksumIsAnError(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, c := range parquettest.Samples() {
		c.CRC = true
		pages := c.Pages(r)
		for p := range pages {
			for range 6 {
				if len(pages[p].Payload) == 0 {
					continue
				}
				harmed := append([]parquettest.Page{}, pages...)
				harmed[p].Payload = bytes.Clone(pages[p].Payload)
				harmed[p].Payload[r.Intn(len(harmed[p].Payload))] ^= 1 << r.Intn(8)
				_, err := readEither(t, c.FileOf(harmed, int64(len(c.Levels(r))), int64(len(c.Rows))))
				require.ErrorIs(t, err, format.ErrCRC, "%v", c)
				var place *format.PageError
				require.ErrorAs(t, err, &place)
				require.Equal(t, p, place.Page)
			}
		}
	}
}

// TestHeaderLiesAreErrors changes one number of a header that must not change.
func TestHeaderLiesAreErrors(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	lies := map[string]func(h *format.PageHeader, by int32){
		"compressed":   func(h *format.PageHeader, by int32) { h.Compressed += by },
		"uncompressed": func(h *format.PageHeader, by int32) { h.Uncompressed += by },
		"values":       func(h *format.PageHeader, by int32) { h.NumValues += by },
		"rows": func(h *format.PageHeader, by int32) {
			if h.Type == format.DataPageV2 {
				h.NumRows += by
			} else {
				h.NumValues += by
			}
		},
	}
	for _, c := range parquettest.Samples() {
		for what, lie := range lies {
			for _, by := range []int32{-1, 1, 1<<31 - 1, -1 << 31} {
				if underRace && by != 1 {
					continue
				}
				pages := c.Pages(r)
				last := &pages[len(pages)-1]
				lie(&last.Header, by)
				_, err := readEither(t, c.FileOf(pages, int64(len(c.Levels(r))), int64(len(c.Rows))))
				require.Error(t, err, "%v: %s by %d", c, what, by)
				parquettest.RequireTyped(t, err, what)
			}
		}
	}
}

func TestTruncationIsAnError(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for i, c := range parquettest.Samples() {
		file := c.File(r)
		for n := range file {
			_, err := format.ReadFooter(bytes.NewReader(file[:n]), int64(n))
			require.ErrorIs(t, err, format.ErrCorrupt)
		}
		if i%5 != 0 {
			continue
		}
		// The file is promised longer than it is.
		_, err := format.ReadFooter(bytes.NewReader(file[:len(file)-1]), int64(len(file)))
		require.ErrorIs(t, err, format.ErrCorrupt)
		for _, p := range c.Pages(r) {
			truncatePage(t, c, p)
		}
	}
}

// truncatePage cuts a page's header, its payload, and the unpacked page, everywhere.
func truncatePage(t *testing.T, c *parquettest.Column, p parquettest.Page) {
	h := parquettest.MarshalHeader(&p.Header)
	for n := range h {
		_, _, err := format.ParsePageHeader(h[:n])
		require.ErrorIs(t, err, format.ErrMoreInput)
	}
	maxDef, repDef := c.Shape.LevelBounds()
	ct := format.ColumnType{Physical: c.Physical, TypeLength: c.Length, Codec: c.Codec, MaxDef: maxDef, RepDef: repDef,
		List: repDef > 0, MaxRep: min(repDef, 1)}
	dst := make([]byte, p.Header.Uncompressed)
	for n := range p.Payload {
		_, err := Unpack(dst, &p.Header, p.Payload[:n], &ct)
		require.ErrorIs(t, err, format.ErrMoreInput)
		short := p.Header
		short.Compressed, short.HasCRC = int32(n), false
		_, err = Unpack(dst, &short, p.Payload[:n], &ct)
		require.Error(t, err)
		parquettest.RequireTyped(t, err, "unpack")
	}
	if p.Header.Packed(&format.ColumnType{Codec: c.Codec}) && p.Header.Uncompressed > 0 {
		_, err := Unpack(dst[:len(dst)-1], &p.Header, p.Payload, &ct)
		var size *format.SizeError
		require.ErrorAs(t, err, &size)
		require.Equal(t, int64(p.Header.Uncompressed), size.Need)
	}
}

// TestUnpackedPageCutAnywhere cuts an unpacked page of a codec-less column: an error, or the very same rows where only
// padding was lost.
func TestUnpackedPageCutAnywhere(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for _, c := range parquettest.Samples() {
		c.Codec, c.SplitRows = format.Uncompressed, false
		for _, p := range c.Pages(r) {
			if !p.Header.HoldsRows() || c.Encoding.IsDictionary() {
				continue
			}
			maxDef, repDef := c.Shape.LevelBounds()
			ct := format.ColumnType{Physical: c.Physical, TypeLength: c.Length, MaxDef: maxDef, RepDef: repDef,
				List: repDef > 0, MaxRep: min(repDef, 1)}
			whole, err := decodePage(&ct, &p.Header, p.Payload, nil)
			require.NoError(t, err)
			for n := r.Intn(4); n < len(p.Payload); n += 4 {
				rows, err := decodePage(&ct, &p.Header, p.Payload[:n], nil)
				if err == nil {
					requireSameRows(t, whole, rows, fmt.Sprintf("%v cut at %d of %d", c, n, len(p.Payload)))
					continue
				}
				parquettest.RequireTyped(t, err, c.String())
			}
		}
	}
}

func decodePage(ct *format.ColumnType, h *format.PageHeader, page []byte, dict *Dictionary) ([]any, error) {
	var d Decoder
	if err := d.Reset(ct, h, page, dict); err != nil {
		return nil, err
	}
	b := Block{MaxData: 1 << 21, Lend: len(page)%2 == 0}
	b.Reset(ct.Kind())
	if d.Continues() {
		if err := d.Skip(0); err != nil {
			return nil, err
		}
	}
	n, err := d.Next(&b, d.Rows())
	if err != nil {
		return nil, err
	}
	if n != b.Rows || d.Rows() != 0 {
		return nil, fmt.Errorf("%d rows, %d in the block, %d left", n, b.Rows, d.Rows())
	}
	return rowsOf(&b, ct), nil
}

// TestSharedBytesAreBounded reads a page of a few kilobytes whose values each begin with the megabyte before them.
func TestSharedBytesAreBounded(t *testing.T) {
	first := bytes.Repeat([]byte("x"), 1<<20)
	prefixes, lengths := []int64{0}, []int64{int64(len(first))}
	for range 200 {
		prefixes, lengths = append(prefixes, int64(len(first))), append(lengths, 0)
	}
	r := rand.New(rand.NewSource(1))
	page := append(append(parquettest.DeltaPacked(r, prefixes, true), parquettest.DeltaPacked(r, lengths, true)...),
		first...)
	ct := format.ColumnType{Physical: format.ByteArray}
	h := format.PageHeader{Type: format.DataPage, Encoding: format.DeltaByteArray, NumValues: int32(len(lengths)),
		Uncompressed: int32(len(page)), Compressed: int32(len(page))}
	var d Decoder
	var b Block
	for _, skip := range []bool{false, true} {
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		var err error
		rows := 0
		for ; err == nil && d.Rows() > 0; rows++ {
			b.Reset(format.KindBytes)
			if skip {
				err = d.Skip(1)
			} else {
				_, err = d.Next(&b, 1)
			}
		}
		require.ErrorIs(t, err, format.ErrLimit)
		require.Equal(t, maxDeltaBytes>>20+1, rows)
	}
}

func TestBombsAreBounded(t *testing.T) {
	// A v1 page of a few bytes that promises 2^31-1 nulls, or values of one dictionary entry, and keeps the promise.
	ct := format.ColumnType{Physical: format.Int64, MaxDef: 1}
	nulls := []byte{6, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0}
	h := format.PageHeader{Type: format.DataPage, NumValues: 1<<31 - 1, Encoding: format.Plain, DefEncoding: format.RLE,
		RepEncoding:  format.RLE,
		Uncompressed: int32(len(nulls)), Compressed: int32(len(nulls))}
	var d Decoder
	var b Block
	require.NoError(t, d.Reset(&ct, &h, nulls, nil))
	require.Equal(t, 1<<31-1, d.Rows())
	_, err := d.Next(&b, d.Rows())
	require.ErrorIs(t, err, format.ErrLimit)
	require.Empty(t, b.I64)
	require.Less(t, cap(b.I64), 1<<10)
	n, err := d.Next(&b, 100) // within the bounds it goes on
	require.NoError(t, err)
	require.Equal(t, 100, n)
	require.NoError(t, d.Skip(1<<31-1-100))
	require.Zero(t, d.Rows())

	// A list of one row that long: the limit ends it.
	list := format.ColumnType{Physical: format.Int64, MaxDef: 2, RepDef: 2, MaxRep: 1, List: true}
	one := []byte{8, 0, 0, 0, 2, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 1, 6, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 2, 0,
		0xfe, 0xff, 0xff, 0xff, 0x0f}
	h.Encoding = format.RLEDictionary
	h.Uncompressed, h.Compressed = int32(len(one)), int32(len(one))
	dict := Dictionary{count: 1, kind: format.KindInt64, int64s: []int64{9}}
	require.NoError(t, d.Reset(&list, &h, one, &dict))
	require.Equal(t, 1, d.Rows())
	b.Reset(format.KindInt64)
	b.MaxValues = 5000
	_, err = d.Next(&b, 1)
	require.ErrorIs(t, err, format.ErrLimit)
	require.Empty(t, b.I64)
	require.Empty(t, b.Lengths)
	_, err = d.Next(&b, 1)
	require.ErrorIs(t, err, format.ErrLimit, "the decoder must be reset")
}

// TestPagesOfNothing unpacks pages without values to no memory at all. A block of LZ4 without values is one zero; other
// blocks want room.
func TestPagesOfNothing(t *testing.T) {
	for _, codec := range []format.Codec{format.Snappy, format.Gzip, format.Brotli, format.LZ4, format.Zstd,
		format.LZ4Raw} {
		ct := format.ColumnType{Physical: format.Int64, Codec: codec}
		unpack := func(payload []byte) error {
			h := format.PageHeader{Type: format.DataPage, Compressed: int32(len(payload))}
			out, err := Unpack(nil, &h, payload, &ct)
			require.Empty(t, out)
			return err
		}
		require.NoError(t, unpack(nil), codec)
		require.ErrorIs(t, unpack(parquettest.Compress(make([]byte, 64), codec)), format.ErrCorrupt, codec)
		require.ErrorIs(t, unpack(bytes.Repeat([]byte{0x44}, 44)), format.ErrCorrupt, codec)
		if codec == format.LZ4 || codec == format.LZ4Raw {
			require.NoError(t, unpack([]byte{0}))
			require.ErrorIs(t, unpack([]byte{0, 0}), format.ErrCorrupt)
			require.ErrorIs(t, unpack([]byte{0x10}), format.ErrCorrupt)
		}
	}
}

// hadoopFrames returns bytes in the codec LZ4, written in several ways, and damaged bytes with the error of each.
func hadoopFrames(b []byte) map[string]struct {
	bytes []byte
	err   error
} {
	type test = struct {
		bytes []byte
		err   error
	}
	third, n := len(b)/3, len(b)
	first, second, last := b[:third], b[third:2*third], b[2*third:]
	all := parquettest.HadoopFrames([][]byte{first, second, last})
	be := func(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
	with := func(at, v int) []byte { // with returns a copy of all that has another length at a place.
		out := bytes.Clone(all)
		binary.BigEndian.PutUint32(out[at:], uint32(v))
		return out
	}
	packed := parquettest.Compress(first, format.LZ4Raw)
	return map[string]test{
		"a frame of a block":      {parquettest.HadoopFrames([][]byte{b}), nil},
		"a frame of three blocks": {all, nil},
		"three frames":            {parquettest.HadoopFrames([][]byte{first}, [][]byte{second}, [][]byte{last}), nil},
		"frames of several blocks": {parquettest.HadoopFrames([][]byte{first[:1], first[1:]}, [][]byte{second, last}),
			nil},
		"the end of a stream": {append(bytes.Clone(all), be(0)...), nil},
		"a frame of nothing":  {slices.Concat(be(0), be(1), []byte{0}, all), nil},
		"no frame":            {parquettest.Compress(b, format.LZ4Raw), nil},

		"a block less":              {with(0, n-1), format.ErrCorrupt},
		"a frame that is too long":  {with(0, n+1), format.ErrCorrupt},
		"a frame of 4 GiB":          {with(0, -1), format.ErrCorrupt},
		"a block of 4 GiB":          {with(4, -1), format.ErrCorrupt},
		"a block that is too long":  {with(4, len(packed)+1), format.ErrCorrupt},
		"a block that is too short": {with(4, len(packed)-1), format.ErrCorrupt},
		"blocks of nothing":         {append(be(n), make([]byte, 400)...), format.ErrCorrupt},
		"bytes behind the frames":   {append(bytes.Clone(all), 1), format.ErrCorrupt},
		"an ending twice":           {append(bytes.Clone(all), make([]byte, 7)...), format.ErrCorrupt},
		"cut inside a block":        {all[:len(all)-1], format.ErrCorrupt},
		"cut between blocks":        {all[:8+len(packed)], format.ErrCorrupt},
	}
}

// TestHadoopFrames reads the codec LZ4 as Hadoop writes it: frames of one block or more, bounded by the lengths that
// they promise. Kernel and reference agree.
func TestHadoopFrames(t *testing.T) {
	text := bytes.Repeat([]byte("mini-batch "), 40)
	ct := format.ColumnType{Physical: format.Int64, Codec: format.LZ4}
	for name, test := range hadoopFrames(text) {
		t.Run(name, func(t *testing.T) {
			h := format.PageHeader{Type: format.DataPage, Uncompressed: int32(len(text)),
				Compressed: int32(len(test.bytes))}
			dst := make([]byte, len(text)+64)
			out, err := Unpack(dst[:len(text)], &h, test.bytes, &ct)
			ref, refErr := reference.Unpack(test.bytes, len(text), format.LZ4)
			require.ErrorIs(t, err, test.err)
			require.ErrorIs(t, refErr, test.err)
			require.Equal(t, make([]byte, 64), dst[len(text):])
			if test.err == nil {
				require.Equal(t, text, out)
				require.Equal(t, text, ref)
			}
		})
	}
}

func TestDecompressionIsBounded(t *testing.T) {
	zeros := make([]byte, 1<<20)
	for _, codec := range []format.Codec{format.Snappy, format.Gzip, format.Brotli, format.LZ4, format.Zstd,
		format.LZ4Raw} {
		t.Run(codec.String(), func(t *testing.T) {
			payload := parquettest.Compress(zeros, codec)
			ct := format.ColumnType{Physical: format.Int64, Codec: codec}
			for _, promised := range []int{0, 1, 1000, len(zeros) - 1, len(zeros) + 1} {
				dst := make([]byte, promised, promised+64)
				h := format.PageHeader{Type: format.DataPage, Uncompressed: int32(promised),
					Compressed: int32(len(payload))}
				_, err := Unpack(dst, &h, payload, &ct)
				require.ErrorIs(t, err, format.ErrCorrupt, promised)
				require.Equal(t, make([]byte, 64), dst[promised:promised+64], "bytes after the destination")
			}
			for range 4 { // What was read before a page does not change the result.
				long := append(bytes.Clone(payload), 'x')
				h := format.PageHeader{Type: format.DataPage, Uncompressed: int32(len(zeros)),
					Compressed: int32(len(long))}
				_, err := Unpack(make([]byte, len(zeros)), &h, long, &ct)
				require.ErrorIs(t, err, format.ErrCorrupt)
			}
			h := format.PageHeader{Type: format.DataPage, Uncompressed: int32(len(zeros)),
				Compressed: int32(len(payload))}
			dst := bytes.Repeat([]byte{1}, len(zeros)+9)
			out, err := Unpack(dst, &h, payload, &ct)
			require.NoError(t, err)
			require.Equal(t, zeros, out)
			require.Same(t, &dst[0], &out[0])
			h.HasCRC, h.CRC = true, crc32.ChecksumIEEE(payload)+1
			_, err = Unpack(dst, &h, payload, &ct)
			require.ErrorIs(t, err, format.ErrCRC)
		})
	}
}
