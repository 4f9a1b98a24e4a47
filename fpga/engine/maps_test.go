package engine_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// TestMapsAreReference checks that the engine makes the same mini-batches of maps as the reference, for any file,
// features and rows, and for any windows and slices of the host.
func TestMapsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 200).Draw(t, "rows")
		l := drawLayout(t, 250)
		batch := rapid.IntRange(1, 150).Draw(t, "batch")
		rng := rand.New(rand.NewPCG(seed, 3))
		cols := randomColumns(rng, rapid.IntRange(0, 3).Draw(t, "columns"), rows)
		maps := randomMaps(rng, rapid.IntRange(1, 3).Draw(t, "maps"), rows)
		risky := rapid.IntRange(0, 5).Draw(t, "risky") == 0
		data := writeMaps(t, cols, maps, l)
		f := readFooter(t, data)
		p := randomProgram(rng, cols, risky, l.groupRows >= rows)
		addMaps(rng, p, maps, f, risky)
		if len(p.Columns) == 0 {
			t.Skip("no column fits a program of fixed lengths")
		}
		require.NoError(t, p.Validate(), p)
		block := rapid.SampledFrom([]int{1, 7, 64, 0}).Draw(t, "block")
		compareMiniBatches(t, p, f, data, compared{seed: seed, rows: rows, batch: batch, block: block}, rng)
	})
}

// TestMapPagesCutAnywhere checks the engine against the reference with rows of maps that continue over pages, which
// are cut at different places in each leaf, also when windows grow a byte at a time.
func TestMapPagesCutAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 40).Draw(t, "rows")
		groupRows := rapid.IntRange(1, 50).Draw(t, "groupRows")
		mean := rapid.IntRange(1, 30).Draw(t, "mean entries a page")
		batch := rapid.IntRange(1, 30).Draw(t, "batch")
		habit := rapid.IntRange(0, 3).Draw(t, "host")
		rng := rand.New(rand.NewPCG(seed, 4))
		maps := randomMaps(rng, rapid.IntRange(1, 2).Draw(t, "maps"), rows)
		for i := range maps {
			maps[i].plainPages([]string{"", "snappy"}[rng.IntN(2)])
		}
		data, f := assembleMapFile(rng, maps, groupRows, mean)
		p := &program.Program{Source: program.Parquet, Output: program.Output{IDs: program.IDs(rng.IntN(2))}}
		addMaps(rng, p, maps, f, false)
		require.NoError(t, p.Validate())
		ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
		require.NoError(t, err)
		h := newHost(engine.New(engine.Options{BlockRows: rapid.SampledFrom([]int{1, 5, 0}).Draw(t, "block")}), p, f,
			data, seed)
		h.wholeChunks, h.smallestWindows, h.growByByte = habit == 0, habit == 1, habit == 2
		for first := 0; first < rows; first += batch {
			n := min(batch, rows-first)
			want, err := ref.MiniBatch(int64(first), n)
			require.NoError(t, err)
			got, err := h.miniBatch(int64(first), n)
			require.NoError(t, err, p)
			requireSame(t, want, got)
		}
	})
}

// dppTable makes a file and a program in DPP's shape: a map of numbers, a map of lists and a map of scored lists.
// The program reads some of their features as dense columns and keys.
func dppTable(t testing.TB, rows int, codec, encoding string) ([]byte, *program.Program) {
	rng := rand.New(rand.NewPCG(1, 3))
	leaf := func(physical format.Type) testColumn {
		return testColumn{physical: physical, codec: codec, encoding: encoding}
	}
	list := func(mean int) []any {
		l := make([]any, rng.IntN(2*mean))
		for i := range l {
			l[i] = rng.Int64N(1<<16) * 32771
		}
		return l
	}
	maps := []mapColumn{
		{name: "float_features", key: format.Int32, value: leaf(format.Float), optional: true},
		{name: "id_list_features", key: format.Int32, value: leaf(format.Int64), list: true, optional: true},
		{name: "id_score_list_features", key: format.Int32, value: leaf(format.Int64), score: leaf(format.Float),
			list: true, scored: true, optional: true},
	}
	for i, stored := range []int{60, 30, 10} {
		m := &maps[i]
		m.null = make([]bool, rows)
		for range rows {
			var row []mapEntry
			for key := range stored {
				if rng.IntN(100) >= 45 {
					continue
				}
				e := mapEntry{key: int64(1000 + 7*key)}
				if !m.list {
					e.value = rng.Float32() * 1000
				} else {
					ids := list(20)
					e.value = ids
					for range ids {
						e.scores = append(e.scores, rng.Float32())
					}
				}
				row = append(row, e)
			}
			m.rows = append(m.rows, row)
		}
	}
	data := writeMaps(t, nil, maps, layout{groupRows: rows, batchRows: 1000, pageBytes: 1 << 20, version: 1})
	f := readFooter(t, data)
	p := &program.Program{Source: program.Parquet, Output: program.Output{Weights: true}}
	hash := sigridhash.Op{Max: 500_000}
	borders := &bucketize.Op{Borders32: logSpaced(1, 1000, 1024)}
	for _, i := range []int{1, 2, 0} {
		in, _ := f.Map(maps[i].name)
		column := func(leaf int, kind program.Kind, part program.Part, list bool) program.Column {
			return program.Column{Name: f.Leaves[leaf].Path, Kind: kind, Part: part, List: list}
		}
		values := column(in.Values, maps[i].value.kind(), program.MapValues, maps[i].list)
		for k := range []int{30, 12, 4}[i] {
			pick := program.Pick{Key: int64(1000 + 14*k), Scored: maps[i].scored}
			s := program.Sink{To: program.ToSparse, Index: p.Output.Keys,
				Ops: []program.Op{firstx.Op{N: 30}, hash}}
			if i == 0 {
				s = program.Sink{To: program.ToDense, Index: p.Output.Dense,
					Ops: []program.Op{fillnull.Op{}, log.Op{Add: 1}}}
				if k < 5 {
					s = program.Sink{To: program.ToSparse, Index: p.Output.Keys, Ops: []program.Op{borders, hash}}
				}
			}
			if s.To == program.ToSparse {
				p.Output.Keys++
			} else {
				p.Output.Dense++
			}
			values.Sinks, values.Picks = append(values.Sinks, s), append(values.Picks, pick)
		}
		p.Columns = append(p.Columns, column(in.Keys, program.Int64, program.MapKeys, false), values)
		if maps[i].scored {
			p.Columns = append(p.Columns, column(in.Scores, maps[i].score.kind(), program.MapScores, true))
		}
	}
	require.NoError(t, p.Validate())
	return data, p
}

func TestMapsAllocateNothing(t *testing.T) {
	const rows, batch = 300, 75
	data, p := dppTable(t, rows, "snappy", "dictionary")
	h := newSliceRunner(t, engine.New(engine.Options{}), data, p, batch)
	for range 2 * rows / batch {
		h.nextBatch()
	}
	require.Zero(t, testing.AllocsPerRun(20, func() {
		for range rows / batch {
			h.nextBatch()
		}
	}))
}

// Tasks of a map that do not belong together, and lengths that the host has changed, end the slice in BadSlice.
func TestMapSliceRefused(t *testing.T) {
	data, p := dppTable(t, 20, "", "")
	for name, change := range map[string]func(b *sliceRunner){
		"keys alone":            func(b *sliceRunner) { b.slice.Tasks = b.slice.Tasks[:1] },
		"keys and values alone": func(b *sliceRunner) { b.slice.Tasks = b.slice.Tasks[2:4] },
		"values first":          func(b *sliceRunner) { b.slice.Tasks = b.slice.Tasks[1:] },
		"values of another map": func(b *sliceRunner) { b.slice.Tasks[1].Column = 3 },
		"keys twice":            func(b *sliceRunner) { b.slice.Tasks[1] = b.slice.Tasks[0] },
		"other rows":            func(b *sliceRunner) { b.slice.Tasks[1].Row, b.slice.Tasks[1].Count = 1, 9 },
		"fewer rows":            func(b *sliceRunner) { b.slice.Tasks[3].Count-- },
		"values as a list": func(b *sliceRunner) {
			b.slice.Tasks[1].Chunk.MaxRep, b.slice.Tasks[1].Chunk.EntryDef = 1,
				0
		},
		"keys as a scalar": func(b *sliceRunner) {
			b.slice.Tasks[0].Chunk.MaxRep,
				b.slice.Tasks[0].Chunk.ElementDef = 0, 0
		},
		"no entry level":         func(b *sliceRunner) { b.slice.Tasks[1].Chunk.EntryDef = 0 },
		"entries inside":         func(b *sliceRunner) { b.slice.Tasks[1].Chunk.EntryDef = 40 },
		"weights not aligned":    func(b *sliceRunner) { b.slice.Layout.Weights += 4 },
		"weights behind":         func(b *sliceRunner) { b.slice.Layout.Weights = uint64(len(b.mem.Output)) },
		"weights wrap":           func(b *sliceRunner) { b.slice.Layout.Weights = 1<<64 - 64 },
		"lengths beyond written": func(b *sliceRunner) { b.moveRows(1); b.mem.Output[b.slice.Layout.Lengths] = 200 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newSliceRunner(t, engine.New(engine.Options{}), data, p, 10)
			change(b)
			state, r := b.execute()
			require.Equal(t, program.BadSlice, state, r.Message)
		})
	}
}

// moveRows makes the slice's first map go on at a row, as if earlier slices had written the rows before.
func (b *sliceRunner) moveRows(row uint32) {
	b.slice.Tasks = b.slice.Tasks[:2]
	for i := range b.slice.Tasks {
		t := &b.slice.Tasks[i]
		t.Row, t.Count, t.Cursor.Skip = row, t.Count-row, uint64(row)
	}
}

// TestMapLeavesDisagree checks that leaves that do not match each other are bad data, and that the error names the
// leaf at fault.
func TestMapLeavesDisagree(t *testing.T) {
	leaf := func(physical format.Type) testColumn { return testColumn{physical: physical} }
	rows := [][]mapEntry{{{key: 1, value: []any{int64(1), int64(2)}, scores: []any{float32(1), float32(2)}}},
		{{key: 2, value: []any{}}}}
	for name, c := range map[string]struct {
		part   int
		change func(rows [][]mapEntry)
		says   string
	}{
		"more keys than values": {0, func(rows [][]mapEntry) {
			rows[1] = append(rows[1],
				mapEntry{key: 3, value: []any{}})
		}, "m.key_value.value"},
		"fewer keys":            {0, func(rows [][]mapEntry) { rows[0] = nil }, "m.key_value.value"},
		"fewer lists of scores": {2, func(rows [][]mapEntry) { rows[1] = nil }, "another number of entries"},
		"fewer scores": {2, func(rows [][]mapEntry) {
			rows[0] = []mapEntry{{key: 1, value: []any{int64(1)}, scores: []any{float32(1)}}}
		}, "another number of scores"},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapColumn{name: "m", key: format.Int64, value: leaf(format.Int64), score: leaf(format.Float),
				list:   true,
				scored: true, rows: rows, null: make([]bool, 2)}
			other := m
			other.rows = [][]mapEntry{rows[0], rows[1]}
			c.change(other.rows)
			m.parted = map[int]*mapColumn{c.part: &other}
			data, f := assembleMapFile(rand.New(rand.NewPCG(1, 1)), []mapColumn{m}, 10, 100)
			p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 1, Weights: true},
				Columns: []program.Column{
					{Name: f.Leaves[0].Path, Kind: program.Int64, Part: program.MapKeys},
					{Name: f.Leaves[1].Path, Kind: program.Int64, List: true, Part: program.MapValues,
						Sinks: []program.Sink{{To: program.ToSparse}}, Picks: []program.Pick{{Key: 1, Scored: true}}},
					{Name: f.Leaves[2].Path, Kind: program.Float32, List: true, Part: program.MapScores},
				}}
			ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
			require.NoError(t, err)
			_, err = ref.MiniBatch(0, 2)
			require.ErrorIs(t, err, reference.ErrData)
			_, err = newHost(engine.New(engine.Options{}), p, f, data, 1).miniBatch(0, 2)
			var bad *sliceFailure
			require.ErrorAs(t, err, &bad)
			require.Equal(t, program.BadData, bad.state)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestMapRules shows the rules by example: the last entry with a key counts, an entry without a key belongs to no
// feature, a null or missing value is null or length 0, a null score takes its list with it unless scores are not
// asked for.
func TestMapRules(t *testing.T) {
	type nothing = any
	m := mapColumn{name: "m", key: format.Int64, value: testColumn{physical: format.Int64},
		score: testColumn{physical: format.Double, optional: true}, list: true,
		scored: true, nullable: true, optional: true, null: []bool{false, true, false, false}, rows: [][]mapEntry{
			{{key: 1, value: []any{int64(10)}, scores: []any{1.5}},
				{key: 1, value: []any{int64(20), int64(21)}, scores: []any{2.5, 0.1}}},
			nil,
			{{key: 1, value: nothing(nil)}, {key: 2, value: []any{int64(30), int64(31)},
				scores: []any{1.0, nothing(nil)}}},
			{{key: 2, value: []any{int64(40), int64(41), int64(42)}, scores: []any{4.0, 5.0, 6.0}},
				{key: 1, value: []any{}}},
		}}
	data := writeMaps(t, nil, []mapColumn{m}, layout{groupRows: 10, pageBytes: 1 << 10, version: 1})
	f := readFooter(t, data)
	sink := func(key uint32, ops ...program.Op) program.Sink {
		return program.Sink{To: program.ToSparse, Index: key, Ops: ops}
	}
	p := &program.Program{Source: program.Parquet, Output: program.Output{Keys: 4, Weights: true},
		Columns: []program.Column{
			{Name: f.Leaves[0].Path, Kind: program.Int64, Part: program.MapKeys},
			{Name: f.Leaves[1].Path, Kind: program.Int64, List: true, Part: program.MapValues,
				Sinks: []program.Sink{sink(0), sink(1), sink(2), sink(3, firstx.Op{N: 2})},
				Picks: []program.Pick{{Key: 1, Scored: true}, {Key: 2, Scored: true}, {Key: 2},
					{Key: 2, Scored: true}}},
			{Name: f.Leaves[2].Path, Kind: program.Float64, List: true, Part: program.MapScores},
		}}
	want := &reference.Tensors{
		Rows: 4, Dense: []float32{}, Lengths: []int32{2, 0, 0, 0, 0, 0, 0, 3, 0, 0, 2, 3, 0, 0, 0, 2},
		Values:  []int64{20, 21, 40, 41, 42, 30, 31, 40, 41, 42, 40, 41},
		Weights: []float32{2.5, 0.1, 4, 5, 6, 1, 1, 1, 1, 1, 4, 5},
	}
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	got, err := ref.MiniBatch(0, 4)
	require.NoError(t, err)
	requireSame(t, want, got)
	got, err = newHost(engine.New(engine.Options{}), p, f, data, 1).miniBatch(0, 4)
	require.NoError(t, err)
	requireSame(t, want, got)
}

func BenchmarkDPP(b *testing.B) {
	const rows = 4096
	for _, c := range []struct{ codec, encoding string }{{"", ""}, {"snappy", "dictionary"}} {
		b.Run("codec="+c.codec+",encoding="+c.encoding, func(b *testing.B) {
			data, p := dppTable(b, rows, c.codec, c.encoding)
			benchmarkModel(b, rows, 1024, data, p)
		})
	}
}

// TestMapsWantTheirUnit checks that an image without the unit refuses programs with maps, and that the error names
// the unit.
func TestMapsWantTheirUnit(t *testing.T) {
	data, p := dppTable(t, 10, "", "")
	units := slices.DeleteFunc(engine.Units(), func(u program.UnitRef) bool { return u.Unit == program.UnitMap })
	b := newSliceRunner(t, engine.New(engine.Options{Units: units}), data, p, 10)
	state, r := b.execute()
	require.Equal(t, program.BadProgram, state)
	require.Contains(t, r.Message, "unit map version 1 is not in the image")
}
