package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/computescore"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	scoresop "github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// randomMapGraph makes the columns and the steps of a graph of features of maps, some beside a column. There are no
// columns if none of the maps fits.
func randomMapGraph(rng *rand.Rand, p *program.Program, cols []testColumn, maps []mapColumn, f *format.File,
	risky bool) ([]program.Column, program.Graph) {
	m := &graphMaker{rng: rng, p: p, risky: risky}
	var columns []program.Column
	var shapes []testColumn // by value
	if len(cols) > 0 && rng.IntN(2) == 0 {
		if c := cols[rng.IntN(len(cols))]; !c.list || !p.Output.Fixed {
			columns = append(columns, program.Column{Name: c.name, Kind: c.kind(), List: c.list, Part: program.GraphNext})
			shapes = append(shapes, c)
		}
	}
	for i := range maps {
		if maps[i].list && p.Output.Fixed || i > 0 && rng.IntN(2) == 0 {
			continue
		}
		leaves := maps[i].graphLeaves(rng, f)
		for range leaves[1].Picks {
			shape := maps[i].value
			shape.list = maps[i].list
			shapes = append(shapes, shape)
		}
		columns = append(columns, leaves...)
	}
	if len(columns) == 0 {
		return nil, m.graph
	}
	columns[0].Part = program.GraphFirst
	for _, v := range program.GraphValues(columns) {
		m.addValue(v.Type)
	}
	for i := range shapes {
		switch of := m.types[i]; {
		case of.Scored && rng.IntN(2) == 0:
			m.addStep(program.Step{Inputs: []uint32{uint32(i)}, Combine: scoresop.Op{}},
				program.ValueType{Kind: program.Float32, List: true})
		case !of.Scored && (of.Kind != program.Int64 || rng.IntN(2) == 0):
			if ops := randomChain(rng, &shapes[i], program.Int64, rng.IntN(3) == 0, risky); len(ops) > 0 {
				m.addStep(program.Step{Inputs: []uint32{uint32(i)}, Ops: ops},
					program.ValueType{Kind: program.Int64, List: shapes[i].list})
			}
		}
	}
	for range 1 + rng.IntN(3) {
		m.addCombination()
	}
	for i, used := range m.used {
		if !used || rng.IntN(4) == 0 && m.types[i].Kind == program.Int64 {
			m.addSink(i)
		}
	}
	return columns, m.graph
}

// graphLeaves makes the columns of some features of the map.
func (m *mapColumn) graphLeaves(rng *rand.Rand, f *format.File) []program.Column {
	in, _ := f.Map(m.name)
	leaf := func(leaf int, part program.Part, kind program.Kind, list bool) program.Column {
		return program.Column{Name: f.Leaves[leaf].Path, Kind: kind, List: list, Part: program.GraphNext, MapLeaf: part}
	}
	values := leaf(in.Values, program.MapValues, m.value.kind(), m.list)
	scored := false
	for range 1 + rng.IntN(4) {
		pick := m.pick(mapKeys[rng.IntN(len(mapKeys))])
		if rng.IntN(6) == 0 {
			pick = m.pick(4) // which no row has
		}
		ids := m.value.kind() == program.Int64 || m.value.text
		pick.Scored = m.scored && ids && rng.IntN(2) == 0
		scored = scored || pick.Scored
		values.Picks = append(values.Picks, pick)
	}
	leaves := []program.Column{leaf(in.Keys, program.MapKeys, m.keyKind(), false), values}
	if scored {
		leaves = append(leaves, leaf(in.Scores, program.MapScores, m.score.kind(), true))
	}
	return leaves
}

// TestMapsInGraphsAreReference checks that the engine makes the same mini-batches of graphs of features of maps as the
// reference, for any file, steps and rows, and for any windows and slices of the host.
func TestMapsInGraphsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rows := rapid.IntRange(1, 200).Draw(t, "rows")
		l := drawLayout(t, 250)
		batch := rapid.IntRange(1, 150).Draw(t, "batch")
		rng := rand.New(rand.NewPCG(seed, 9))
		cols := randomColumns(rng, rapid.IntRange(0, 2).Draw(t, "columns"), rows)
		maps := randomMaps(rng, rapid.IntRange(1, 3).Draw(t, "maps"), rows)
		risky := rapid.IntRange(0, 5).Draw(t, "risky") == 0
		data := writeMaps(t, cols, maps, l)
		f := readFooter(t, data)
		p := &program.Program{Source: program.Parquet}
		p.Output.IDs, p.Output.Fixed = program.IDs(rng.IntN(2)), rng.IntN(4) == 0
		columns, graph := randomMapGraph(rng, p, cols, maps, f, risky)
		if len(columns) == 0 { // every map has lists, which do not fit a program of fixed lengths
			p.Output.Fixed = false
			columns, graph = randomMapGraph(rng, p, cols, maps, f, risky)
		}
		p.Columns, p.Graphs = columns, []program.Graph{graph}
		require.NoError(t, p.Validate(), p)
		q, err := operator.Unmarshal(wire.Marshal(p))
		require.NoError(t, err)
		require.Equal(t, p.String(), q.String())
		block := rapid.SampledFrom([]int{1, 7, 64, 0}).Draw(t, "block")
		compareMiniBatches(t, p, f, data, compared{seed: seed, rows: rows, batch: batch, block: block}, rng)
	})
}

// TestFeaturesOfMapsInSteps checks a mini-batch that is written down, of the reference and of the engine: DPP's rows,
// of which two features meet in a step.
func TestFeaturesOfMapsInSteps(t *testing.T) {
	entry := func(key int64, ids []any, scores ...any) mapEntry {
		return mapEntry{key: key, value: ids, scores: scores}
	}
	m := mapColumn{name: "m", key: format.Int64, list: true, scored: true, optional: true,
		value: testColumn{physical: format.Int64}, score: testColumn{physical: format.Float, optional: true},
		rows: [][]mapEntry{
			{entry(4, []any{int64(50), int64(60)}, float32(.5), float32(1.5)), entry(9, []any{int64(60)}, float32(2))},
			{entry(9, []any{int64(70)}, float32(3))},
			{entry(4, []any{int64(80), int64(81)}, float32(4), nil), entry(9, []any{int64(81)}, float32(5))},
			nil,
		}, null: []bool{false, false, false, true}}
	data := writeMaps(t, nil, []mapColumn{m}, layout{groupRows: 4, batchRows: 2, pageBytes: 64, version: 2})
	f := readFooter(t, data)
	in, _ := f.Map("m")
	p := &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: f.Leaves[in.Keys].Path, Kind: program.Int64, Part: program.GraphFirst, MapLeaf: program.MapKeys},
			{Name: f.Leaves[in.Values].Path, Kind: program.Int64, List: true, Part: program.GraphNext,
				MapLeaf: program.MapValues, Picks: []program.Pick{{Key: 4}, {Key: 4, Scored: true}, {Key: 9}}},
			{Name: f.Leaves[in.Scores].Path, Kind: program.Float32, List: true, Part: program.GraphNext,
				MapLeaf: program.MapScores},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0, 2}, Combine: idlisttransform.Op{}},
				{Inputs: []uint32{1}, Combine: scoresop.Op{}},
				{Inputs: []uint32{2, 1, 4}, Combine: computescore.Op{Function: computescore.Max}},
			},
			Sinks: []program.GraphSink{
				{Value: 3, Sink: program.Sink{To: program.ToSparse}},
				{Value: 1, Sink: program.Sink{To: program.ToSparse, Index: 1}, Scored: true},
				{Value: 5, Sink: program.Sink{To: program.ToDense}},
			},
		}},
		Output: program.Output{Keys: 2, Dense: 1, Weights: true},
	}
	want := &reference.Tensors{Rows: 4, Lengths: []int32{1, 0, 1, 0, 2, 0, 0, 0}, Values: []int64{60, 81, 50, 60},
		Weights: []float32{1, 1, .5, 1.5}, Dense: []float32{1.5, 0, 0, 0}}
	requireMiniBatch(t, p, f, data, want)
	require.True(t, slices.Contains(p.Units(), program.UnitRef{Unit: program.UnitMap, Version: 1}))
}
