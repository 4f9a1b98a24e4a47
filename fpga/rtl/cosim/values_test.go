package cosim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// wideLanes is the number of values in a result of units plain_decoder and dictionary_gather.
const wideLanes = 4

// fixedTypes are the columns of unit plain_decoder.
func fixedTypes() []format.ColumnType {
	return []format.ColumnType{{Physical: format.Int32}, {Physical: format.Int32, Unsigned: true},
		{Physical: format.Int64}, {Physical: format.Float}, {Physical: format.Double}}
}

// valuePage returns a page of n values, none of which is null.
func valuePage(encoding format.Encoding, values []byte, n int) (format.PageHeader, []byte) {
	return format.PageHeader{Type: format.DataPageV2, Encoding: encoding, NumValues: int32(n), NumRows: int32(n),
		Compressed: int32(len(values)), Uncompressed: int32(len(values))}, values
}

// dictionaryPage returns a dictionary page of n values.
func dictionaryPage(values []byte, n int) (format.PageHeader, []byte) {
	return format.PageHeader{Type: format.DictionaryPage, Encoding: format.Plain, NumValues: int32(n),
		Compressed: int32(len(values)), Uncompressed: int32(len(values))}, values
}

// bitsOf returns the bits of values that a decoder made.
func bitsOf(b *decoder.Block) []uint64 {
	bits := make([]uint64, 0, b.Values())
	for _, v := range b.I64 {
		bits = append(bits, uint64(v))
	}
	for _, v := range b.F32 {
		bits = append(bits, uint64(math.Float32bits(v)))
	}
	for _, v := range b.F64 {
		bits = append(bits, math.Float64bits(v))
	}
	return bits
}

// pageKernel returns the bits of the values that the drive's decoder reads from a page, or that the page is damaged.
func pageKernel(ct format.ColumnType, h format.PageHeader, page []byte, dictionary *decoder.Dictionary) []uint64 {
	var d decoder.Decoder
	var b decoder.Block
	b.Reset(ct.Kind())
	if err := d.Reset(&ct, &h, page, dictionary); err != nil {
		return []uint64{sectionIsDamaged}
	}
	if h.NumRows == 0 {
		return []uint64{}
	}
	if _, err := d.Next(&b, int(h.NumRows)); err != nil || d.Rows() > 0 {
		return []uint64{sectionIsDamaged}
	}
	return bitsOf(&b)
}

// pageReference returns the same from the decoder that works value by value.
func pageReference(chunk *reference.Chunk, h format.PageHeader, page []byte) []uint64 {
	if err := chunk.AddPage(&h, page); err != nil {
		return []uint64{sectionIsDamaged}
	}
	bits := make([]uint64, 0, len(chunk.Rows))
	for _, row := range chunk.Rows {
		switch v := row.(type) {
		case int64:
			bits = append(bits, uint64(v))
		case float32:
			bits = append(bits, uint64(math.Float32bits(v)))
		case float64:
			bits = append(bits, math.Float64bits(v))
		}
	}
	return bits
}

// plainBytes are n values of a column: the hard ones in a drawn order, and drawn ones.
func plainBytes(draw *rand.Rand, ct format.ColumnType, n int) []byte {
	hard := append(hardIntegers(), hardFloats()...)
	var b []byte
	for range n {
		value := draw.Uint64()
		if draw.IntN(2) == 0 {
			value = hard[draw.IntN(len(hard))]
		}
		b = append(b, binary.LittleEndian.AppendUint64(nil, value)[:ct.ValueSize()]...)
	}
	return b
}

// plainSection is a section of PLAIN values.
type plainSection struct {
	name  string
	bytes []byte
	count int
}

// plainSections are sections of a column with few values and with count: as they should be, with bytes behind the
// values, cut by every number of bytes up to a beat, and empty.
func plainSections(draw *rand.Rand, ct format.ColumnType, count int) []plainSection {
	var sections []plainSection
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, count / 8, count} {
		b := plainBytes(draw, ct, n)
		behind := append(slices.Clone(b), plainBytes(draw, ct, 1+draw.IntN(100))...)
		sections = append(sections, plainSection{"whole", b, n}, plainSection{"with bytes behind", behind, n},
			plainSection{"with a byte behind", behind[:len(b)+1], n},
			plainSection{"without bytes", nil, n})
	}
	for cut := 1; cut <= 32; cut++ {
		for _, n := range []int{33, 34, 35, 36} {
			b := plainBytes(draw, ct, n)
			sections = append(sections, plainSection{fmt.Sprintf("cut by %d bytes", cut), b[:len(b)-cut], n})
		}
	}
	return sections
}

// plainCases decodes sections of every column. A short run, for the records, takes some of them.
func plainCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	for _, ct := range fixedTypes() {
		sections := plainSections(draw, ct, count)
		if short := 1000; count < short {
			draw.Shuffle(len(sections), func(i, k int) { sections[i], sections[k] = sections[k], sections[i] })
			sections = sections[:12]
		}
		for _, s := range sections {
			setup, err := rtl.PlainDecoder(ct, uint32(s.count))
			require.NoError(t, err)
			h, page := valuePage(format.Plain, s.bytes, s.count)
			cases = append(cases, unitCase{
				name: fmt.Sprintf("plain_decoder %s: %d values of %v, unsigned %v", s.name, s.count, ct.Physical,
					ct.Unsigned),
				setup: setup, stream: Stream{Words: rtl.SectionTransfers(s.bytes)},
				kernel:    func(*testing.T, Stream) []uint64 { return pageKernel(ct, h, page, nil) },
				reference: func(Stream) []uint64 { return pageReference(&reference.Chunk{Type: ct}, h, page) },
				read:      plainSectionOf,
				cycles:    plainCycles(ct, s),
			})
		}
	}
	return cases
}

// plainCycles returns the cycles of a section: one for each transfer of values, and one for the end of a section that
// is damaged or has none.
func plainCycles(ct format.ColumnType, s plainSection) int {
	held := len(s.bytes) / ct.ValueSize()
	if held < s.count {
		return held/wideLanes + 1
	}
	return max(1, (s.count+wideLanes-1)/wideLanes)
}

// wideSection returns the values of one section in the results of units plain_decoder and dictionary_gather, or that it
// is damaged. The error says how the results contradict themselves.
func wideSection(results []uint64) ([]uint64, error) {
	const words = 5
	values, damaged := []uint64{}, false
	for at := 0; at < len(results); at += words {
		result := results[at : at+words]
		if count := result[words-1] & 7; count > wideLanes {
			return nil, fmt.Errorf("result %d has %d values", at/words, count)
		}
		some, last, soFar := rtl.WideValues(result)
		for lane := len(some); lane < wideLanes; lane++ {
			if result[lane] != 0 {
				return nil, fmt.Errorf("result %d: lane %d behind the values is not 0", at/words, lane)
			}
		}
		switch {
		case last != (at+words == len(results)):
			return nil, fmt.Errorf("result %d of %d: last is %v", at/words, len(results)/words, last)
		case damaged && !soFar:
			return nil, fmt.Errorf("result %d: the section is no longer damaged", at/words)
		}
		values, damaged = append(values, some...), soFar
	}
	if damaged {
		return []uint64{sectionIsDamaged}, nil
	}
	return values, nil
}

// plainSectionOf is wideSection for unit plain_decoder, of which the result that tells of damage holds no values.
func plainSectionOf(results []uint64) ([]uint64, error) {
	if some, _, damaged := rtl.WideValues(results[max(0, len(results)-5):]); damaged && len(some) > 0 {
		return nil, fmt.Errorf("the section is damaged, and its last result has %d values", len(some))
	}
	return wideSection(results)
}

// TestPlainSectionsFollowOneAnother streams sections of one setup through unit plain_decoder without a reset: some hold
// bytes behind their values, some end before them, some are empty.
func TestPlainSectionsFollowOneAnother(t *testing.T) {
	unit, simulator := start(t, "plain_decoder")
	draw := rand.New(rand.NewPCG(4, 7))
	for _, ct := range fixedTypes() {
		const count = 50
		setup, err := rtl.PlainDecoder(ct, count)
		require.NoError(t, err)
		require.NoError(t, simulator.Configure(setup))
		var stream Stream
		var want [][]uint64
		for n := range 200 {
			b := plainBytes(draw, ct, count)
			switch n % 4 {
			case 1:
				b = append(b, make([]byte, draw.IntN(500))...)
			case 2:
				b = b[:draw.IntN(len(b))]
			case 3:
				b = b[:draw.IntN(3)]
			}
			h, page := valuePage(format.Plain, b, count)
			want = append(want, pageKernel(ct, h, page, nil))
			stream.Words = append(stream.Words, rtl.SectionTransfers(b)...)
		}
		requireSections(t, unit, simulator, stream, want)
	}
}

// requireSections compares the sections of a unit's results, without waits and with them.
func requireSections(t *testing.T, unit rtl.Unit, simulator *Simulator, stream Stream, want [][]uint64) {
	t.Helper()
	for _, seeds := range [][2]uint32{{0, 0}, {1, 0}, {0, 2}, {3, 4}} {
		stream.InputSeed, stream.OutputSeed = seeds[0], seeds[1]
		results, _, err := simulator.Run(stream)
		require.NoError(t, err)
		sections := splitSections(unit, results)
		require.Len(t, sections, len(want))
		for n, section := range sections {
			said, err := wideSection(section)
			require.NoError(t, err, "section %d, seeds %v", n, seeds)
			require.Equal(t, want[n], said, "section %d, seeds %v", n, seeds)
		}
	}
}
