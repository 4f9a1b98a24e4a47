package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// samples are small columns of every kind, for tests that harm them.
func samples() []*built {
	r := rand.New(rand.NewSource(7))
	var all []*built
	for s := shape(0); s < shapes; s++ {
		for i, physical := range []Type{Boolean, Int32, Int64, Float, Double, ByteArray, FixedLenByteArray} {
			for _, e := range append((&built{physical: physical}).deltaEncodings(), Plain, RLEDictionary, RLE) {
				if e == RLE && physical != Boolean {
					continue
				}
				c := &built{shape: s, physical: physical, encoding: e, pageRows: 40, v2: (int(s)+i)%2 == 0,
					codec: []Codec{Uncompressed, Snappy, Gzip, Zstd, LZ4Raw, Brotli, LZ4}[(int(s)*3+i)%7]}
				if physical == FixedLenByteArray {
					c.length = 5
				}
				c.split = !c.v2 && i%3 == 0
				c.randomRows(r, 100, 0.2, i%2 == 0)
				all = append(all, c)
			}
		}
	}
	return all
}

// columnType is the type of the column's leaf.
func (c *built) columnType() ColumnType {
	ct := c.shape.columnType()
	ct.Physical, ct.TypeLength, ct.Unsigned, ct.Codec = c.physical, c.length, c.unsigned, c.codec
	return ct
}

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

// readEither reads the only column of a file that may be anything with kernel and reference, and returns the rows and the
// first error. The two need not agree on what is wrong; where neither finds anything they must agree on the values.
func readEither(t testing.TB, b []byte) ([]any, error) {
	r := bytes.NewReader(b)
	f, err := ReadFooter(r, int64(len(b)))
	if err != nil {
		return nil, err
	}
	if len(f.RowGroups) != 1 || len(f.Leaves) != 1 || f.Rows > 1<<20 {
		return nil, errors.New("another file")
	}
	rows, _, err := readKernel(t, r, f, 0, 0)
	ref, refErr := ReadColumnReference(r, f, 0, 0)
	if err != nil {
		return nil, err
	}
	require.Len(t, rows, int(f.Rows))
	if refErr == nil {
		requireSameRows(t, ref.Rows, rows, "kernel against reference")
	}
	return rows, nil
}

func requireTyped(t testing.TB, err error, what string) {
	for _, target := range []error{ErrCorrupt, ErrCRC, ErrUnsupported, ErrTooSmall, ErrLimit} {
		if errors.Is(err, target) {
			return
		}
	}
	require.Failf(t, "an untyped error", "%s: %v", what, err)
}

func TestFlippedBitsNeverPanicAndKeepTheShape(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	failed, kept := 0, 0
	for _, c := range samples() {
		file := c.file(r)
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
	for _, c := range append(samples(), nestedSamples()...) {
		c.codec, c.split = Uncompressed, false
		ct := c.columnType()
		for _, p := range c.pages(r) {
			if !p.h.data() || len(p.payload) == 0 {
				continue
			}
			for range harms(12) {
				body := bytes.Clone(p.payload)
				for range 1 + r.Intn(3) {
					// Mostly near the beginning, where the levels and the run headers are.
					body[min(r.Intn(len(body)), r.Intn(len(body)))] ^= 1 << r.Intn(8)
				}
				if requireAgreement(t, &ct, &p.h, body, 100) {
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
	for _, c := range samples() {
		c.crc = true
		pages := c.pages(r)
		for p := range pages {
			for range 6 {
				if len(pages[p].payload) == 0 {
					continue
				}
				harmed := append([]page{}, pages...)
				harmed[p].payload = bytes.Clone(pages[p].payload)
				harmed[p].payload[r.Intn(len(harmed[p].payload))] ^= 1 << r.Intn(8)
				_, err := readEither(t, c.fileOf(harmed, int64(len(c.shred(r))), int64(len(c.rows))))
				require.ErrorIs(t, err, ErrCRC, "%v", c)
				var place *PageError
				require.ErrorAs(t, err, &place)
				require.Equal(t, p, place.Page)
			}
		}
	}
}

// TestHeaderLiesAreErrors changes one number of a header that must not change.
func TestHeaderLiesAreErrors(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	lies := map[string]func(h *PageHeader, by int32){
		"compressed":   func(h *PageHeader, by int32) { h.Compressed += by },
		"uncompressed": func(h *PageHeader, by int32) { h.Uncompressed += by },
		"values":       func(h *PageHeader, by int32) { h.NumValues += by },
		"rows": func(h *PageHeader, by int32) {
			if h.Type == DataPageV2 {
				h.NumRows += by
			} else {
				h.NumValues += by
			}
		},
	}
	for _, c := range samples() {
		for what, lie := range lies {
			for _, by := range []int32{-1, 1, 1<<31 - 1, -1 << 31} {
				if underRace && by != 1 {
					continue
				}
				pages := c.pages(r)
				last := &pages[len(pages)-1]
				lie(&last.h, by)
				_, err := readEither(t, c.fileOf(pages, int64(len(c.shred(r))), int64(len(c.rows))))
				require.Error(t, err, "%v: %s by %d", c, what, by)
				requireTyped(t, err, what)
			}
		}
	}
}

func TestTruncationIsAnError(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for i, c := range samples() {
		file := c.file(r)
		for n := range file {
			_, err := ReadFooter(bytes.NewReader(file[:n]), int64(n))
			require.ErrorIs(t, err, ErrCorrupt)
		}
		if i%5 != 0 {
			continue
		}
		// The file is promised longer than it is.
		_, err := ReadFooter(bytes.NewReader(file[:len(file)-1]), int64(len(file)))
		require.ErrorIs(t, err, ErrCorrupt)
		for _, p := range c.pages(r) {
			truncatePage(t, c, p)
		}
	}
}

// truncatePage cuts a page's header, its payload, and the unpacked page, everywhere.
func truncatePage(t *testing.T, c *built, p page) {
	h := p.h.marshal()
	for n := range h {
		_, _, err := ParsePageHeader(h[:n])
		require.ErrorIs(t, err, ErrMoreInput)
	}
	maxDef, repDef := c.shape.levels()
	ct := ColumnType{Physical: c.physical, TypeLength: c.length, Codec: c.codec, MaxDef: maxDef, RepDef: repDef, List: repDef > 0, MaxRep: min(repDef, 1)}
	dst := make([]byte, p.h.Uncompressed)
	for n := range p.payload {
		_, err := Unpack(dst, &p.h, p.payload[:n], &ct)
		require.ErrorIs(t, err, ErrMoreInput)
		short := p.h
		short.Compressed, short.HasCRC = int32(n), false
		_, err = Unpack(dst, &short, p.payload[:n], &ct)
		require.Error(t, err)
		requireTyped(t, err, "unpack")
	}
	if p.h.Packed(&ColumnType{Codec: c.codec}) && p.h.Uncompressed > 0 {
		_, err := Unpack(dst[:len(dst)-1], &p.h, p.payload, &ct)
		var size *SizeError
		require.ErrorAs(t, err, &size)
		require.Equal(t, int64(p.h.Uncompressed), size.Need)
	}
}

// TestUnpackedPageCutAnywhere cuts an unpacked page of a codec-less column: an error, or the very same rows where only
// padding was lost.
func TestUnpackedPageCutAnywhere(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for _, c := range samples() {
		c.codec, c.split = Uncompressed, false
		for _, p := range c.pages(r) {
			if !p.h.data() || c.encoding.dictionary() {
				continue
			}
			maxDef, repDef := c.shape.levels()
			ct := ColumnType{Physical: c.physical, TypeLength: c.length, MaxDef: maxDef, RepDef: repDef, List: repDef > 0, MaxRep: min(repDef, 1)}
			whole, err := decodePage(&ct, &p.h, p.payload, nil)
			require.NoError(t, err)
			for n := r.Intn(4); n < len(p.payload); n += 4 {
				rows, err := decodePage(&ct, &p.h, p.payload[:n], nil)
				if err == nil {
					requireSameRows(t, whole, rows, fmt.Sprintf("%v cut at %d of %d", c, n, len(p.payload)))
					continue
				}
				requireTyped(t, err, c.String())
			}
		}
	}
}

func decodePage(ct *ColumnType, h *PageHeader, page []byte, dict *Dictionary) ([]any, error) {
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
	page := append(append(deltaPacked(r, prefixes, true), deltaPacked(r, lengths, true)...), first...)
	ct := ColumnType{Physical: ByteArray}
	h := PageHeader{Type: DataPage, Encoding: DeltaByteArray, NumValues: int32(len(lengths)), Uncompressed: int32(len(page)), Compressed: int32(len(page))}
	var d Decoder
	var b Block
	for _, skip := range []bool{false, true} {
		require.NoError(t, d.Reset(&ct, &h, page, nil))
		var err error
		rows := 0
		for ; err == nil && d.Rows() > 0; rows++ {
			b.Reset(KindBytes)
			if skip {
				err = d.Skip(1)
			} else {
				_, err = d.Next(&b, 1)
			}
		}
		require.ErrorIs(t, err, ErrLimit)
		require.Equal(t, maxDeltaBytes>>20+1, rows)
	}
}

func TestBombsAreBounded(t *testing.T) {
	// A v1 page of a few bytes that promises 2^31-1 nulls, or values of one dictionary entry, and keeps the promise.
	ct := ColumnType{Physical: Int64, MaxDef: 1}
	nulls := []byte{6, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0}
	h := PageHeader{Type: DataPage, NumValues: 1<<31 - 1, Encoding: Plain, DefEncoding: RLE, RepEncoding: RLE,
		Uncompressed: int32(len(nulls)), Compressed: int32(len(nulls))}
	var d Decoder
	var b Block
	require.NoError(t, d.Reset(&ct, &h, nulls, nil))
	require.Equal(t, 1<<31-1, d.Rows())
	_, err := d.Next(&b, d.Rows())
	require.ErrorIs(t, err, ErrLimit)
	require.Empty(t, b.I64)
	require.Less(t, cap(b.I64), 1<<10)
	n, err := d.Next(&b, 100) // within the bounds it goes on
	require.NoError(t, err)
	require.Equal(t, 100, n)
	require.NoError(t, d.Skip(1<<31-1-100))
	require.Zero(t, d.Rows())

	// A list of one row that long: the limit ends it.
	list := ColumnType{Physical: Int64, MaxDef: 2, RepDef: 2, MaxRep: 1, List: true}
	one := []byte{8, 0, 0, 0, 2, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 1, 6, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 2, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f}
	h.Encoding = RLEDictionary
	h.Uncompressed, h.Compressed = int32(len(one)), int32(len(one))
	dict := Dictionary{n: 1, kind: KindInt64, i64: []int64{9}}
	require.NoError(t, d.Reset(&list, &h, one, &dict))
	require.Equal(t, 1, d.Rows())
	b.Reset(KindInt64)
	b.MaxValues = 5000
	_, err = d.Next(&b, 1)
	require.ErrorIs(t, err, ErrLimit)
	require.Empty(t, b.I64)
	require.Empty(t, b.Lengths)
	_, err = d.Next(&b, 1)
	require.ErrorIs(t, err, ErrLimit, "the decoder must be reset")
}

func TestDecompressionIsBounded(t *testing.T) {
	zeros := make([]byte, 1<<20)
	for _, codec := range []Codec{Snappy, Gzip, Brotli, LZ4, Zstd, LZ4Raw} {
		t.Run(codec.String(), func(t *testing.T) {
			payload := pack(zeros, codec)
			ct := ColumnType{Physical: Int64, Codec: codec}
			for _, promised := range []int{0, 1, 1000, len(zeros) - 1, len(zeros) + 1} {
				dst := make([]byte, promised, promised+64)
				h := PageHeader{Type: DataPage, Uncompressed: int32(promised), Compressed: int32(len(payload))}
				_, err := Unpack(dst, &h, payload, &ct)
				require.ErrorIs(t, err, ErrCorrupt, promised)
				require.Equal(t, make([]byte, 64), dst[promised:promised+64], "bytes after the destination")
			}
			h := PageHeader{Type: DataPage, Uncompressed: int32(len(zeros)), Compressed: int32(len(payload))}
			dst := bytes.Repeat([]byte{1}, len(zeros)+9)
			out, err := Unpack(dst, &h, payload, &ct)
			require.NoError(t, err)
			require.Equal(t, zeros, out)
			require.Same(t, &dst[0], &out[0])
			h.HasCRC, h.CRC = true, crc32.ChecksumIEEE(payload)+1
			_, err = Unpack(dst, &h, payload, &ct)
			require.ErrorIs(t, err, ErrCRC)
		})
	}
}
