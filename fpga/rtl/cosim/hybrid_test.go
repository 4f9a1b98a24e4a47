package cosim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// section is what one run of unit hybrid_decoder decodes.
type section struct {
	name  string
	bytes []byte
	width uint
	limit uint32
	count uint32 // values
}

// appendRepeated writes a run of n times a value.
func appendRepeated(b []byte, width uint, n, value uint32) []byte {
	b = binary.AppendUvarint(b, uint64(n)<<1)
	return append(b, binary.LittleEndian.AppendUint32(nil, value)[:(width+7)/8]...)
}

// appendPacked writes a packed run of groups of eight values of random bits.
func appendPacked(b []byte, draw *rand.Rand, width uint, groups int) []byte {
	b = binary.AppendUvarint(b, uint64(groups)<<1|1)
	for range groups * int(width) {
		b = append(b, byte(draw.Uint32()))
	}
	return b
}

// drawSection draws runs of both kinds that hold at least count values.
func drawSection(draw *rand.Rand, width uint, count int) []byte {
	var b []byte
	for values := 0; values < count; {
		switch draw.IntN(8) {
		case 0:
			b = appendRepeated(b, width, 0, draw.Uint32())
		case 1:
			b = appendPacked(b, draw, width, 0)
		case 2, 3, 4:
			n := 1 + draw.IntN([]int{3, 20, 300}[draw.IntN(3)])
			b = appendRepeated(b, width, uint32(n), draw.Uint32()&uint32(1<<width-1))
			values += n
		default:
			groups := 1 + draw.IntN(min([]int{1, 4, 70}[draw.IntN(3)], 1+count/16))
			b = appendPacked(b, draw, width, groups)
			values += 8 * groups
		}
	}
	return b
}

// greatest returns the greatest value of a width.
func greatest(width uint) uint32 { return uint32(1<<width - 1) }

// hardSections are at the edges of the encoding: good ones, and ones that are damaged.
func hardSections(draw *rand.Rand) []section {
	packed := func(width uint, groups int) []byte { return appendPacked(nil, draw, width, groups) }
	sections := []section{
		{name: "no values, no bytes"},
		{name: "no values, bytes", bytes: packed(3, 40), width: 3, limit: 7},
		{name: "values, no bytes", width: 3, limit: 7, count: 1},
		{name: "width 0, no bytes", count: 5},
		{name: "width 0, packed", bytes: packed(0, 3), count: 21},
		{name: "width 0, a run", bytes: appendRepeated(nil, 0, 77, 0), count: 77},
		{name: "width 0, groups without end", bytes: []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, count: 100},
		{name: "longest run", bytes: append([]byte{0xfe, 0xff, 0xff, 0xff, 0x0f}, 1), width: 1, limit: 1, count: 1000},
		{name: "header of 2^32", bytes: []byte{0x80, 0x80, 0x80, 0x80, 0x10, 1}, width: 1, limit: 1, count: 1},
		{name: "header of five continued bytes", bytes: []byte{0x82, 0x80, 0x80, 0x80, 0x80, 1}, width: 1, limit: 1,
			count: 1},
		{name: "long header of a short run", bytes: []byte{0x90, 0x80, 0x80, 0x80, 0x00, 1}, width: 1, limit: 1, count: 8},
		{name: "value with bits above its width", bytes: appendRepeated(nil, 3, 8, 8), width: 3, limit: 7, count: 8},
		{name: "empty run with bits above the width", bytes: append(appendRepeated(nil, 3, 0, 255),
			appendRepeated(nil, 3, 8, 7)...), width: 3, limit: 7, count: 8},
		{name: "run at the limit", bytes: appendRepeated(nil, 2, 9, 2), width: 2, limit: 2, count: 9},
		{name: "run above the limit", bytes: appendRepeated(nil, 2, 9, 3), width: 2, limit: 2, count: 9},
		{name: "packed above the limit", bytes: []byte{3, 0, 0x30}, width: 2, limit: 2, count: 8},
		{name: "packed above the limit, not needed", bytes: []byte{3, 0, 0x30}, width: 2, limit: 2, count: 6},
		{name: "above the limit, then good", bytes: append([]byte{3, 3, 0}, appendRepeated(nil, 2, 100, 1)...), width: 2,
			limit: 2, count: 100},
	}
	for _, width := range []uint{1, 7, 8, 9, 12, 17, 31, 32} {
		run := appendRepeated(nil, width, 5, greatest(width))
		sections = append(sections,
			section{name: "run that ends inside its value", bytes: run[:len(run)-1], width: width, limit: greatest(width),
				count: 5},
			section{name: "more values than runs", bytes: run, width: width, limit: greatest(width), count: 6},
			section{name: "fewer values than the run", bytes: run, width: width, limit: greatest(width), count: 4})
		whole := packed(width, 3)
		for cut := range int(width) + 1 {
			held := (len(whole) - 1 - cut) * 8 / int(width)
			for _, count := range []int{held, held + 1} {
				sections = append(sections, section{name: fmt.Sprintf("cut by %d bytes", cut),
					bytes: whole[:len(whole)-cut], width: width, limit: greatest(width), count: uint32(min(count, 25))})
			}
		}
	}
	for length := range 5 { // headers that the section's end cuts
		sections = append(sections, section{name: "header cut", bytes: []byte{0x80, 0x80, 0x80, 0x80, 0x80}[:length],
			width: 4, limit: 15, count: 3})
	}
	return sections
}

// drawSections draws sections of every width: as they should be, with fewer values, cut, and with a byte that is wrong.
func drawSections(draw *rand.Rand, count int) []section {
	var sections []section
	for width := range uint(33) {
		limit := greatest(width)
		if width > 1 && draw.IntN(3) == 0 {
			limit -= draw.Uint32N(limit / 2)
		}
		good := section{name: "drawn", bytes: drawSection(draw, width, count), width: width, limit: greatest(width),
			count: uint32(count)}
		limited := good
		limited.name, limited.limit = "limited", limit
		behind := good
		behind.name, behind.count = "with values behind", uint32(draw.IntN(count+1))
		cut := good
		cut.name, cut.bytes = "cut", good.bytes[:draw.IntN(len(good.bytes))]
		wrong := good
		wrong.name, wrong.bytes = "wrong byte", append([]byte(nil), good.bytes...)
		wrong.bytes[draw.IntN(len(wrong.bytes))] ^= byte(1 + draw.IntN(255))
		sections = append(sections, good, limited, behind, cut, wrong)
	}
	return sections
}

// hybridCases decodes the hard sections and drawn ones of count values. A short run, for the records, takes some of
// them.
func hybridCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	hard, drawn := hardSections(draw), drawSections(draw, count)
	if short := 1000; count < short {
		draw.Shuffle(len(hard), func(i, k int) { hard[i], hard[k] = hard[k], hard[i] })
		draw.Shuffle(len(drawn), func(i, k int) { drawn[i], drawn[k] = drawn[k], drawn[i] })
		hard, drawn = hard[:20], drawn[:30]
	}
	sections := append(hard, drawn...)
	var cases []unitCase
	for _, s := range sections {
		setup, err := rtl.HybridDecoder(s.width, s.limit, s.count)
		require.NoError(t, err)
		cases = append(cases, unitCase{
			name:  fmt.Sprintf("hybrid_decoder %s: %d values of %d bits, limit %d", s.name, s.count, s.width, s.limit),
			setup: setup, stream: Stream{Words: rtl.SectionTransfers(s.bytes)},
			kernel: func(*testing.T, Stream) []uint64 {
				values := make([]uint32, s.count)
				return judged(values, decoder.ReadRuns(values, s.bytes, s.width, s.limit))
			},
			reference: func(Stream) []uint64 {
				values, err := reference.ReadRuns(s.bytes, int(s.width), int(s.count))
				for _, value := range values {
					if err == nil && value > s.limit {
						err = fmt.Errorf("value %d", value)
					}
				}
				return judged(values, err)
			},
			read:   sectionOf,
			cycles: hybridCycles(s),
		})
	}
	return cases
}

// sectionIsDamaged is what kernel, reference and unit agree on for a section that is damaged.
const sectionIsDamaged = math.MaxUint64

// judged returns the values of a section, or that it is damaged.
func judged(values []uint32, err error) []uint64 {
	if err != nil {
		return []uint64{sectionIsDamaged}
	}
	words := make([]uint64, len(values))
	for i, value := range values {
		words[i] = uint64(value)
	}
	return words
}

// sectionOf returns the values of one section in the results of unit hybrid_decoder, or that it is damaged. The error
// says how the results contradict themselves.
func sectionOf(results []uint64) ([]uint64, error) {
	const words, lanes = 5, 8
	var values []uint32
	damaged := false
	for at := 0; at < len(results); at += words {
		result := results[at : at+words]
		if count := result[words-1] & 15; count > lanes {
			return nil, fmt.Errorf("transfer %d has %d values", at/words, count)
		}
		some, last, soFar := rtl.HybridValues(result)
		for lane := len(some); lane < lanes; lane++ {
			if uint32(result[lane/2]>>(32*(lane%2))) != 0 {
				return nil, fmt.Errorf("transfer %d: lane %d behind the values is not 0", at/words, lane)
			}
		}
		switch {
		case last != (at+words == len(results)):
			return nil, fmt.Errorf("transfer %d of %d: last is %v", at/words, len(results)/words, last)
		case damaged && !soFar:
			return nil, fmt.Errorf("transfer %d: the section is no longer damaged", at/words)
		}
		values, damaged = append(values, some...), soFar
	}
	if damaged {
		return []uint64{sectionIsDamaged}, nil
	}
	return judged(values, nil), nil
}

// hybridCycles returns the cycles that the runs of a section take: one for the header and one for each transfer, or one
// if there is none. The fault that ends a section takes one, too.
func hybridCycles(s section) int {
	cycles, rest := 0, s.bytes
	for needed := int(s.count); needed > 0; {
		cycles++
		header, size := binary.Uvarint(rest)
		if size <= 0 || size > 5 || header > math.MaxUint32 {
			return cycles
		}
		rest = rest[size:]
		n := int(header >> 1)
		if header&1 == 0 {
			value := int(s.width+7) / 8
			if value > len(rest) {
				return cycles + 1
			}
			rest = rest[value:]
			n = min(n, needed)
			cycles += max(1, (n+7)/8)
			needed -= n
			continue
		}
		if n == 0 {
			cycles++
		}
		for ; n > 0 && needed > 0; n-- {
			cycles++
			group := min(needed, 8)
			if (group*int(s.width)+7)/8 > len(rest) {
				return cycles
			}
			rest = rest[min(int(s.width), len(rest)):]
			needed -= group
		}
	}
	return cycles
}

// TestSectionsFollowOneAnother streams sections of one setup through unit hybrid_decoder without a reset: some hold
// bytes behind their values, some are damaged, some are empty.
func TestSectionsFollowOneAnother(t *testing.T) {
	unit, simulator := start(t, "hybrid_decoder")
	draw := rand.New(rand.NewPCG(3, 7))
	const width, count = 5, 200
	setup, err := rtl.HybridDecoder(width, greatest(width), count)
	require.NoError(t, err)
	require.NoError(t, simulator.Configure(setup))
	var stream Stream
	var want [][]uint64
	for n := range 300 {
		b := drawSection(draw, width, count)
		switch n % 4 {
		case 1:
			b = append(b, make([]byte, draw.IntN(500))...)
		case 2:
			b = b[:draw.IntN(len(b))]
		case 3:
			b = b[:draw.IntN(3)]
		}
		values := make([]uint32, count)
		want = append(want, judged(values, decoder.ReadRuns(values, b, width, greatest(width))))
		stream.Words = append(stream.Words, rtl.SectionTransfers(b)...)
	}
	for _, seeds := range [][2]uint32{{0, 0}, {1, 0}, {0, 2}, {3, 4}} {
		stream.InputSeed, stream.OutputSeed = seeds[0], seeds[1]
		results, _, err := simulator.Run(stream)
		require.NoError(t, err)
		sections := splitSections(unit, results)
		require.Len(t, sections, len(want))
		for n, section := range sections {
			said, err := sectionOf(section)
			require.NoError(t, err, "section %d, seeds %v", n, seeds)
			require.Equal(t, want[n], said, "section %d, seeds %v", n, seeds)
		}
	}
}
