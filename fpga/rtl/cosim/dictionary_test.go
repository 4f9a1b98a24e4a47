package cosim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
)

// gatherDictionary is a dictionary of a column: its page, and what decoder and unit make of it.
type gatherDictionary struct {
	columnType format.ColumnType
	header     format.PageHeader
	page       []byte
	decoded    decoder.Dictionary
	setup      rtl.Setup
}

// drawDictionary draws a dictionary of n values. The unit gets what the drive's decoder reads of the page's bytes, as
// values of a page.
func drawDictionary(t *testing.T, draw *rand.Rand, ct format.ColumnType, n int) *gatherDictionary {
	t.Helper()
	d := &gatherDictionary{columnType: ct}
	d.header, d.page = dictionaryPage(plainBytes(draw, ct, n), n)
	memory := make([]byte, (decoder.DictionarySize(&d.header, &ct)+7)/8*8) // Go aligns so much memory to 8 bytes
	used, err := decoder.DecodeDictionary(memory, &d.header, d.page, &ct)
	require.NoError(t, err)
	d.decoded, err = decoder.OpenDictionary(memory[:used], &ct)
	require.NoError(t, err)
	h, page := valuePage(format.Plain, d.page, n)
	d.setup, err = rtl.DictionaryGather(pageKernel(ct, h, page, nil))
	require.NoError(t, err)
	return d
}

// indexPage returns a page of indices, each a run of its own.
func indexPage(indices []uint32) (format.PageHeader, []byte) {
	const width = 32
	b := []byte{width}
	for _, index := range indices {
		b = appendRepeated(b, width, 1, index)
	}
	return valuePage(format.RLEDictionary, b, len(indices))
}

func (d *gatherDictionary) kernel(indices []uint32) []uint64 {
	h, page := indexPage(indices)
	return pageKernel(d.columnType, h, page, &d.decoded)
}

func (d *gatherDictionary) reference(indices []uint32) []uint64 {
	chunk := reference.Chunk{Type: d.columnType}
	if err := chunk.AddPage(&d.header, d.page); err != nil {
		return []uint64{sectionIsDamaged}
	}
	h, page := indexPage(indices)
	return pageReference(&chunk, h, page)
}

// drawIndices draws n indices of a dictionary of some size, the first and the last among them.
func drawIndices(draw *rand.Rand, n, size int) []uint32 {
	indices := make([]uint32, n)
	for i := range indices {
		switch draw.IntN(8) {
		case 0:
		case 1:
			indices[i] = uint32(size - 1)
		default:
			indices[i] = draw.Uint32N(uint32(size))
		}
	}
	return indices
}

// gatherCases look up indices in dictionaries of every column and of sizes up to the greatest: in full transfers and in
// parts, with an index that is just behind the dictionary or far from it, and sections that follow one another.
func gatherCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	types := fixedTypes()
	for turn, size := range []int{1, 2, 100, 8193, 16384} {
		if short := 1000; count < short && size > 100 && size < 16384 {
			continue
		}
		d := drawDictionary(t, draw, types[turn%len(types)], size)
		add := func(name string, size func() int, sections ...[]uint32) {
			c := unitCase{
				name: fmt.Sprintf("dictionary_gather %s: %d of %d values of %v", name, len(sections[0]),
					d.decoded.Len(), d.columnType.Physical),
				setup: d.setup, read: eachSection("dictionary_gather", wideSection),
			}
			for _, indices := range sections {
				words := othersBehind(rtl.IndexTransfers(indices, size))
				c.stream.Words = append(c.stream.Words, words...)
				c.cycles += gatherCycles(words)
			}
			c.kernel = func(*testing.T, Stream) []uint64 { return eachOf(sections, d.kernel) }
			c.reference = func(Stream) []uint64 { return eachOf(sections, d.reference) }
			cases = append(cases, c)
		}
		full := func() int { return 8 }
		drawn := func() int { return draw.IntN(9) }
		for _, n := range []int{0, 1, 4, 5, 8, 9, count / 8} {
			good := drawIndices(draw, n, size)
			add("whole", full, good)
			add("in parts", drawn, good)
			cases = append(cases, damagedBefore(draw, cases[len(cases)-1]))
			if n > 0 {
				add("an index too great", full, wrongIndex(draw, good, size))
				add("an index too great, in parts", drawn, wrongIndex(draw, good, size))
			}
		}
		var sections [][]uint32
		for turn := range 2 + count/64 {
			indices := drawIndices(draw, draw.IntN(count/16), size)
			if turn%2 == 1 && len(indices) > 0 {
				indices = wrongIndex(draw, indices, size)
			}
			sections = append(sections, indices)
		}
		add(fmt.Sprintf("%d sections", len(sections)), drawn, sections...)
	}
	return cases
}

// othersBehind writes indices of no dictionary behind those that count.
func othersBehind(words []uint64) []uint64 {
	for transfer := range slices.Chunk(words, 5) {
		for lane := transfer[4] & 15; lane < 8; lane++ {
			transfer[lane/2] |= 0xffffffff << (32 * (lane % 2))
		}
	}
	return words
}

// damagedBefore returns a case of one section, of which hybrid_decoder says from some transfer on that it is damaged.
func damagedBefore(draw *rand.Rand, c unitCase) unitCase {
	const damagedBit = 1 << 5
	c.name += ", damaged before"
	c.stream.Words = slices.Clone(c.stream.Words)
	for from := draw.IntN(len(c.stream.Words) / 5); from < len(c.stream.Words)/5; from++ {
		c.stream.Words[5*from+4] |= damagedBit
	}
	c.kernel = func(*testing.T, Stream) []uint64 { return []uint64{sectionIsDamaged} }
	c.reference = func(Stream) []uint64 { return []uint64{sectionIsDamaged} }
	return c
}

// wrongIndex returns indices of which one is not in a dictionary of some size.
func wrongIndex(draw *rand.Rand, indices []uint32, size int) []uint32 {
	indices = slices.Clone(indices)
	// The second and third are in the dictionary if only their low bits are looked at.
	wrong := []uint32{uint32(size), 1 << 14, 1 << 31, 1<<32 - 1}
	indices[draw.IntN(len(indices))] = wrong[draw.IntN(len(wrong))]
	return indices
}

// eachOf returns what a kernel or reference says of sections, one behind the other.
func eachOf(sections [][]uint32, say func([]uint32) []uint64) []uint64 {
	said := []uint64{}
	for _, section := range sections {
		said = append(said, say(section)...)
	}
	return said
}

// gatherCycles returns the cycles of transfers: two for one of more than 4 indices, else one.
func gatherCycles(words []uint64) int {
	cycles := 0
	for transfer := range slices.Chunk(words, 5) {
		cycles++
		if transfer[4]&15 > wideLanes {
			cycles++
		}
	}
	return cycles
}

// TestGatherOfNothing checks that no index is in a dictionary without values.
func TestGatherOfNothing(t *testing.T) {
	_, simulator := start(t, "dictionary_gather")
	setup, err := rtl.DictionaryGather(nil)
	require.NoError(t, err)
	require.NoError(t, simulator.Configure(setup))
	for _, indices := range [][]uint32{nil, {0}} {
		results, _, err := simulator.Run(Stream{Words: rtl.IndexTransfers(indices, func() int { return 8 })})
		require.NoError(t, err)
		_, last, damaged := rtl.WideValues(results)
		require.True(t, last)
		require.Equal(t, len(indices) > 0, damaged)
	}
}

// TestDictionaryPagesThroughThreeUnits decodes dictionary pages as a drive would: plain_decoder reads the dictionary,
// hybrid_decoder the indices, and dictionary_gather looks them up. What hybrid_decoder makes goes to dictionary_gather
// as it is. The values are those of the drive's decoder, for good pages and for damaged ones.
func TestDictionaryPagesThroughThreeUnits(t *testing.T) {
	_, plain := start(t, "plain_decoder")
	_, hybrid := start(t, "hybrid_decoder")
	_, gather := start(t, "dictionary_gather")
	draw := rand.New(rand.NewPCG(5, 7))
	damagedPages := 0
	for turn := range 60 {
		const width, count = 9, 400
		ct := fixedTypes()[turn%5]
		size := 1<<width - []int{0, 0, 1, 100}[turn%4] // with fewer values, some index is often too great
		d := drawDictionary(t, draw, ct, size)

		setup, err := rtl.PlainDecoder(ct, uint32(size))
		require.NoError(t, err)
		values, err := wideSection(runOnce(t, plain, setup, rtl.SectionTransfers(d.page)))
		require.NoError(t, err)

		section := drawSection(draw, width, count)
		if turn%3 == 2 {
			section = section[:draw.IntN(len(section))]
		}
		setup, err = rtl.HybridDecoder(width, greatest(width), count)
		require.NoError(t, err)
		indices := runOnce(t, hybrid, setup, rtl.SectionTransfers(section))

		setup, err = rtl.DictionaryGather(values)
		require.NoError(t, err)
		said, err := wideSection(runOnce(t, gather, setup, indices))
		require.NoError(t, err)
		h, page := valuePage(format.RLEDictionary, append([]byte{width}, section...), count)
		want := pageKernel(ct, h, page, &d.decoded)
		require.Equal(t, want, said, "page %d", turn)
		if len(want) == 1 {
			damagedPages++
		}
	}
	require.Greater(t, damagedPages, 10)
	require.Less(t, damagedPages, 50)
}

// runOnce writes a setup, streams transfers through a unit and returns the results.
func runOnce(t *testing.T, simulator *Simulator, setup rtl.Setup, words []uint64) []uint64 {
	t.Helper()
	require.NoError(t, simulator.Configure(setup))
	results, _, err := simulator.Run(Stream{Words: words, InputSeed: 1, OutputSeed: 2})
	require.NoError(t, err)
	return results
}
