package cosim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/clamp"
	"github.com/millrace/millrace/fpga/unit/convert"
	"github.com/millrace/millrace/fpga/unit/fillnull"
	"github.com/millrace/millrace/fpga/unit/logn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
	"github.com/millrace/millrace/fpga/unit/positivemodulus"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// intToFloatCases have the neighbours of the halves between float32 at every magnitude, and drawn integers.
func intToFloatCases(draw *rand.Rand, count int) []unitCase {
	var halves []uint64
	for magnitude := 24; magnitude < 63; magnitude++ {
		half := uint64(1) << (magnitude - 24)
		for range max(1, count/400) {
			value := uint64(1)<<magnitude | draw.Uint64N(1<<23)*2*half | half
			halves = append(halves, value, value-1, value+1, -value, -value-1, -value+1)
		}
	}
	draw.Shuffle(len(halves), func(i, k int) { halves[i], halves[k] = halves[k], halves[i] })
	stream := integerStream(draw, count, halves[:min(len(halves), count)]...)
	return []unitCase{{
		name: "int_to_float", setup: rtl.IntToFloat(), stream: stream,
		kernel:    func(_ *testing.T, stream Stream) []uint64 { return floatKernel(stream) },
		reference: eachValue(floatReference),
	}}
}

func floatKernel(stream Stream) []uint64 {
	values := make([]int64, len(stream.Words))
	for i, word := range stream.Words {
		values[i] = int64(word)
	}
	floats := make([]float32, len(values))
	convert.Int64ToFloat32(floats, values)
	results := make([]uint64, len(values))
	for i, value := range floats {
		results[i] = uint64(math.Float32bits(value))
	}
	return results
}

func floatReference(value uint64) uint64 { return uint64(math.Float32bits(float32(int64(value)))) }

// laneStage is a stage of unit lane with its kernel and its reference.
type laneStage struct {
	setup     rtl.Setup
	kernel    func(t *testing.T, stream Stream) []uint64
	reference func(value uint64) uint64
}

const (
	laneFill    = 0x3f800007 // an integer, and a float32
	laneModulus = 1_000_003
)

// laneStages returns the stages behind fill_null by name.
func laneStages(t *testing.T) map[string]laneStage {
	borders := bucketize.Params{Borders: []float32{-100, 0, 0, 0.5, 3, 1e6}}
	bucketSetup, err := rtl.Bucketize(borders)
	require.NoError(t, err)
	hash := sigridhash.Params{Salt: -5, Max: 500_000}
	hashSetup, err := rtl.SigridHash(hash)
	require.NoError(t, err)
	modulusSetup, err := rtl.PositiveModulus(laneModulus)
	require.NoError(t, err)
	float := func(value uint64) float32 { return math.Float32frombits(uint32(value)) }
	return map[string]laneStage{
		"clamp": {rtl.ClampInt64(0, 1<<40), func(t *testing.T, stream Stream) []uint64 {
			return integers(stream, func(dst, _ []int64) { require.NoError(t, clamp.Int64(dst, 0, 1<<40)) })
		}, func(value uint64) uint64 { return uint64(clamp.Reference(int64(value), 0, 1<<40)) }},
		"clamp float32": {rtl.ClampFloat32(0, 99), func(t *testing.T, stream Stream) []uint64 {
			values := floats(stream)
			require.NoError(t, clamp.Float32(values, 0, 99))
			results := make([]uint64, len(values))
			for i, value := range values {
				results[i] = uint64(math.Float32bits(value))
			}
			return results
		}, func(value uint64) uint64 { return uint64(math.Float32bits(clamp.Reference(float(value), 0, 99))) }},
		"int_to_float": {rtl.IntToFloat(), func(_ *testing.T, stream Stream) []uint64 { return floatKernel(stream) },
			floatReference},
		"log": {rtl.Log(1), func(_ *testing.T, stream Stream) []uint64 { return logKernel(stream, 1) },
			func(value uint64) uint64 { return uint64(math.Float32bits(logn.Reference(float(value), 1))) }},
		"bucketize": {bucketSetup, func(t *testing.T, stream Stream) []uint64 {
			table, err := bucketize.New(borders)
			require.NoError(t, err)
			buckets := make([]int64, len(stream.Words))
			require.NoError(t, table.Float32(buckets, floats(stream)))
			return integers(stream, func(dst, _ []int64) { copy(dst, buckets) })
		}, func(value uint64) uint64 {
			bucket, _ := bucketize.Reference(float(value), borders.Borders, borders.Side, borders.NaN)
			return uint64(bucket)
		}},
		"sigrid_hash": {hashSetup, func(t *testing.T, stream Stream) []uint64 {
			hasher, err := sigridhash.New(hash)
			require.NoError(t, err)
			return integers(stream, hasher.Hash)
		}, func(value uint64) uint64 { return uint64(sigridhash.Reference(int64(value), hash.Salt, hash.Max)) }},
		"positive_modulus": {modulusSetup, func(t *testing.T, stream Stream) []uint64 {
			modulus, err := positivemodulus.New(laneModulus)
			require.NoError(t, err)
			return integers(stream, modulus.Mod)
		}, func(value uint64) uint64 { return uint64(positivemodulus.Reference(int64(value), laneModulus)) }},
	}
}

// laneChains are columns and the stages behind fill_null that their values go through: none, each one, the chains of
// RM1 and RM5, and all of them.
func laneChains() []laneChain {
	int64s, float32s := format.ColumnType{Physical: format.Int64}, format.ColumnType{Physical: format.Float}
	int32s := format.ColumnType{Physical: format.Int32}
	return []laneChain{
		{int64s, nil}, {int32s, []string{"clamp"}}, {float32s, []string{"clamp float32"}},
		{int64s, []string{"int_to_float"}}, {float32s, []string{"log"}}, {float32s, []string{"bucketize"}},
		{int64s, []string{"sigrid_hash"}}, {int64s, []string{"positive_modulus"}},
		{format.ColumnType{Physical: format.Int32, Unsigned: true}, []string{"sigrid_hash"}},
		{int32s, []string{"clamp", "int_to_float", "log"}}, {int32s, []string{"int_to_float", "bucketize", "sigrid_hash"}},
		{float32s, []string{"clamp float32", "log"}}, {float32s, []string{"bucketize", "sigrid_hash"}},
		{int64s, []string{"clamp", "int_to_float", "log", "bucketize", "sigrid_hash", "positive_modulus"}},
	}
}

// laneChain is a column, and the stages behind fill_null.
type laneChain struct {
	columnType format.ColumnType
	stages     []string
}

// laneSection is a section of unit lane: a page's values, and which rows are null.
type laneSection struct {
	bytes   []byte
	count   int    // values
	present []bool // nil: no row is null, and there is no fill_null
}

// packIndices returns a section of the hybrid with one packed run.
func packIndices(indices []uint32, width int) []byte {
	b := binary.AppendUvarint(nil, uint64((len(indices)+7)/8)<<1|1)
	begin := len(b)
	b = append(b, make([]byte, (len(indices)+7)/8*width)...)
	for i, index := range indices {
		for bit := range width {
			at := i*width + bit
			b[begin+at/8] |= byte(index>>bit&1) << (at % 8)
		}
	}
	return b
}

// drawPresent draws which of the rows of count values are null.
func drawPresent(draw *rand.Rand, count int) []bool {
	present := []bool{}
	for count > 0 || draw.IntN(3) > 0 {
		there := count > 0 && draw.IntN(4) > 0
		present = append(present, there)
		if there {
			count--
		}
	}
	return present
}

// laneRun is a setup of the lane, with what computes its sections beside it.
type laneRun struct {
	chain      laneChain
	dictionary *gatherDictionary // nil for PLAIN pages
	fills      bool
	stages     map[string]laneStage
}

// setup returns the registers for a section.
func (r *laneRun) setup(t *testing.T, s laneSection) rtl.Setup {
	todo := rtl.LaneSection{Rows: uint32(s.count), Present: s.present}
	var err error
	if r.dictionary == nil {
		todo.Values, err = rtl.PlainDecoder(r.chain.columnType, uint32(s.count))
	} else {
		todo.Dictionary = &r.dictionary.setup
		todo.Values, err = rtl.HybridDecoder(uint(r.width()), math.MaxUint32, uint32(s.count))
	}
	require.NoError(t, err)
	if r.fills {
		todo.Rows, todo.Chain = uint32(len(s.present)), append(todo.Chain, rtl.FillNull(laneFill))
	}
	for _, name := range r.chain.stages {
		todo.Chain = append(todo.Chain, r.stages[name].setup)
	}
	setup, err := rtl.Lane(todo)
	require.NoError(t, err)
	return setup
}

// width returns the bits of the dictionary's indices.
func (r *laneRun) width() int { return max(1, bits.Len(uint(r.dictionary.decoded.Len()-1))) }

// page returns the page that a section is of.
func (r *laneRun) page(s laneSection) (format.PageHeader, []byte) {
	if r.dictionary == nil {
		return valuePage(format.Plain, s.bytes, s.count)
	}
	return valuePage(format.RLEDictionary, append([]byte{byte(r.width())}, s.bytes...), s.count)
}

func (r *laneRun) kernel(t *testing.T, s laneSection) []uint64 {
	h, page := r.page(s)
	values := []uint64(nil)
	if r.dictionary == nil {
		values = pageKernel(r.chain.columnType, h, page, nil)
	} else {
		values = pageKernel(r.chain.columnType, h, page, &r.dictionary.decoded)
	}
	if slices.Equal(values, []uint64{sectionIsDamaged}) {
		return values
	}
	rows := Stream{Words: values}
	if r.fills {
		rows.Words = integers(Stream{Words: spread(values, s.present)}, func(dst, _ []int64) {
			valid := make([]byte, len(dst))
			for i, there := range s.present {
				if there {
					valid[i] = 1
				}
			}
			fillnull.Int64(dst, valid, laneFill)
		})
	}
	for _, name := range r.chain.stages {
		rows.Words = r.stages[name].kernel(t, rows)
	}
	return rows.Words
}

func (r *laneRun) reference(s laneSection) []uint64 {
	chunk := &reference.Chunk{Type: r.chain.columnType}
	if r.dictionary != nil {
		if err := chunk.AddPage(&r.dictionary.header, r.dictionary.page); err != nil {
			return []uint64{sectionIsDamaged}
		}
	}
	h, page := r.page(s)
	rows := pageReference(chunk, h, page)
	if slices.Equal(rows, []uint64{sectionIsDamaged}) {
		return rows
	}
	if r.fills {
		rows = spread(rows, s.present)
		for i := range rows {
			rows[i] = uint64(fillnull.Reference(int64(rows[i]), s.present[i], laneFill))
		}
	}
	for i := range rows {
		for _, name := range r.chain.stages {
			rows[i] = r.stages[name].reference(rows[i])
		}
	}
	return rows
}

// spread puts values where rows are present.
func spread(values []uint64, present []bool) []uint64 {
	rows := make([]uint64, len(present))
	for i, there := range present {
		if there {
			rows[i], values = values[0], values[1:]
		}
	}
	return rows
}

// draw draws a section of count values.
func (r *laneRun) draw(draw *rand.Rand, count int) laneSection {
	s := laneSection{count: count}
	if r.dictionary == nil {
		s.bytes = plainBytes(draw, r.chain.columnType, count)
	} else {
		s.bytes = packIndices(drawIndices(draw, count, r.dictionary.decoded.Len()), r.width())
	}
	if r.fills {
		s.present = drawPresent(draw, count)
	}
	return s
}

// cycles returns the cycles of a good section: one for each row and one for its end, the latency of the stages and, for
// indices, those of its decoders.
func (r *laneRun) cycles(t *testing.T, s laneSection) int {
	rows := s.count
	names := r.chain.stages
	if r.fills {
		rows, names = len(s.present), append([]string{"fill_null"}, names...)
	}
	latency := 0
	for _, name := range names {
		if name == "clamp float32" {
			name = "clamp"
		}
		unit, err := rtl.Named(name)
		require.NoError(t, err)
		latency += unit.Latency
	}
	cycles := max(rows, 1) + 1
	if rows > 0 {
		cycles += latency
	}
	switch {
	case r.dictionary == nil:
	case s.count == 0:
		cycles += laneNoIndicesLatency
	default:
		cycles += laneIndicesLatency
	}
	return cycles
}

// How much later the first value of a section of indices is there than that of a section of PLAIN values, because of
// hybrid_decoder and dictionary_gather, and how much later the end of a section without values.
const (
	laneIndicesLatency   = 10
	laneNoIndicesLatency = 8
)

// laneRuns returns a run of every chain over PLAIN pages and over a dictionary, with nulls and without.
func laneRuns(t *testing.T, draw *rand.Rand) []*laneRun {
	stages := laneStages(t)
	var runs []*laneRun
	for turn, chain := range laneChains() {
		for _, encoded := range []bool{false, true} {
			for _, fills := range []bool{false, true} {
				r := &laneRun{chain: chain, fills: fills, stages: stages}
				if encoded {
					r.dictionary = drawDictionary(t, draw, chain.columnType, []int{300, 2, 40, 1}[turn%4])
				}
				runs = append(runs, r)
			}
		}
	}
	return runs
}

// laneCases take sections of no value up to count through every chain.
func laneCases(t *testing.T, draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	for turn, r := range laneRuns(t, draw) {
		if short := 1000; count < short && turn%3 > 0 {
			continue
		}
		sizes := [][]int{{0, 65}, {3, 64 + count/16}, {4, 0}, {65, 2}}[turn/4%4]
		for _, size := range sizes {
			s := r.draw(draw, size)
			cases = append(cases, unitCase{
				name: fmt.Sprintf("lane %v %v: %d values, dictionary %v, nulls %v", r.chain.columnType.Physical,
					r.chain.stages, size, r.dictionary != nil, r.fills),
				setup: r.setup(t, s), stream: Stream{Words: rtl.SectionTransfers(s.bytes)},
				kernel:    func(t *testing.T, _ Stream) []uint64 { return r.kernel(t, s) },
				reference: func(Stream) []uint64 { return r.reference(s) },
				read:      laneRows, cycles: r.cycles(t, s),
			})
		}
	}
	return cases
}

// laneRows returns the rows of one section in the results of unit lane, or that it is damaged. The error says how the
// results contradict themselves.
func laneRows(results []uint64) ([]uint64, error) {
	const words = 2
	rows, damage := []uint64{}, false
	for at := 0; at < len(results); at += words {
		value, last, damaged := rtl.LaneValue(results[at : at+words])
		switch {
		case last != (at+words == len(results)):
			return nil, fmt.Errorf("result %d of %d: last is %v", at/words, len(results)/words, last)
		case last && value != 0, damaged && !last:
			return nil, fmt.Errorf("result %d: value %#x, last %v, damaged %v", at/words, value, last, damaged)
		case !last:
			rows = append(rows, value)
		}
		damage = damaged
	}
	if damage {
		return []uint64{sectionIsDamaged}, nil
	}
	return rows, nil
}

// TestLaneSectionsFollowOneAnother streams sections of one setup through unit lane without a reset, with waits and
// without: good ones, some that hold bytes behind their values, and some that end before them.
func TestLaneSectionsFollowOneAnother(t *testing.T) {
	unit, simulator := start(t, "lane")
	draw := rand.New(rand.NewPCG(6, 7))
	for turn, r := range laneRuns(t, draw) {
		count := []int{2, 9, 60}[turn%3]
		first := r.draw(draw, count)
		require.NoError(t, simulator.Configure(r.setup(t, first)))
		var stream Stream
		var want [][]uint64
		damaged := 0
		for n := range 24 {
			s := r.draw(draw, count)
			s.present = first.present
			switch n % 4 {
			case 1:
				s.bytes = append(s.bytes, make([]byte, draw.IntN(100))...)
			case 3:
				s.bytes = s.bytes[:draw.IntN(len(s.bytes))]
			}
			rows := r.kernel(t, s)
			if slices.Equal(rows, []uint64{sectionIsDamaged}) {
				damaged++
			}
			want = append(want, rows)
			stream.Words = append(stream.Words, rtl.SectionTransfers(s.bytes)...)
		}
		require.Positive(t, damaged)
		require.Less(t, damaged, 12)
		for _, seeds := range [][2]uint32{{0, 0}, {1, 0}, {0, 2}, {3, 4}} {
			stream.InputSeed, stream.OutputSeed = seeds[0], seeds[1]
			results, _, err := simulator.Run(stream)
			require.NoError(t, err)
			sections := splitSections(unit, results)
			require.Len(t, sections, len(want))
			for n, section := range sections {
				rows, err := laneRows(section)
				require.NoError(t, err, "%v: section %d, seeds %v", r.chain, n, seeds)
				require.Equal(t, want[n], rows, "%v: section %d, seeds %v", r.chain, n, seeds)
			}
		}
	}
}

// TestLaneOfOtherRows checks that a section is damaged if it has more values than rows, or fewer, and none if it has as
// many.
func TestLaneOfOtherRows(t *testing.T) {
	_, simulator := start(t, "lane")
	values, err := rtl.PlainDecoder(format.ColumnType{Physical: format.Int64}, 8)
	require.NoError(t, err)
	for rows := range uint32(13) {
		setup, err := rtl.Lane(rtl.LaneSection{Values: values, Rows: rows})
		require.NoError(t, err)
		require.NoError(t, simulator.Configure(setup))
		results, _, err := simulator.Run(Stream{Words: rtl.SectionTransfers(make([]byte, 64)), OutputSeed: rows})
		require.NoError(t, err)
		_, last, damaged := rtl.LaneValue(results[len(results)-2:])
		require.True(t, last)
		require.Equal(t, rows != 8, damaged, "%d rows", rows)
	}
}
