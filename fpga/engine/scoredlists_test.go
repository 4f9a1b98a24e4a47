package engine_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/engine/reference"
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/hashbytes"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// addScores adds a step that makes ids with scores, a chain behind ids that have some, or a step that takes their
// scores. It reports whether it found values for one.
func (m *graphMaker) addScores() bool {
	var plain, scored, numbers []uint32
	for i, of := range m.types {
		switch {
		case of.Scored:
			scored = append(scored, uint32(i))
		case of.Kind == program.Int64:
			plain = append(plain, uint32(i))
		case of.Kind == program.Float32:
			numbers = append(numbers, uint32(i))
		}
	}
	pick := func(of []uint32) uint32 { return of[m.rng.IntN(len(of))] }
	ids := program.ValueType{Kind: program.Int64, List: true, Scored: true}
	if len(scored) > 0 && m.rng.IntN(2) == 0 {
		from := pick(scored)
		if m.rng.IntN(2) == 0 {
			m.addStep(program.Step{Inputs: []uint32{from}, Combine: scores.Op{}},
				program.ValueType{Kind: program.Float32, List: true})
			return true
		}
		ops := []program.Op{firstx.Op{N: m.rng.Int64N(4)}, positivemodulus.Op{M: 99}}
		if m.types[from].Kind == program.Bytes {
			ops = append([]program.Op{hashbytes.Op{}}, ops...)
		}
		m.addStep(program.Step{Inputs: []uint32{from}, Ops: ops}, ids)
		return true
	}
	if len(plain) == 0 {
		return false
	}
	s := program.Step{Inputs: []uint32{pick(plain)}, Combine: enumerate.Op{}}
	if len(numbers) > 0 && m.rng.IntN(2) == 0 {
		score := pick(numbers)
		if m.types[score].List && !m.risky && !m.sameLengths(score, s.Inputs[0]) {
			return false
		}
		s.Inputs, s.Combine = append(s.Inputs, score), withscores.Op{}
	}
	if m.rng.IntN(2) == 0 {
		s.Ops = []program.Op{sigridhash.Op{Salt: 5, Max: 1 << 30}, firstx.Op{N: 1 + m.rng.Int64N(5)}}
	}
	m.addStep(s, ids)
	return true
}

// movesIDs reports whether an operator is refused behind ids with scores.
func movesIDs(op program.Op) bool {
	switch op.(type) {
	case ngram.Op, listslice.Op:
		return true
	}
	return false
}

// scoredProgram makes keys of ids with positions, with given scores and with both cut.
func scoredProgram() *program.Program {
	key := func(value, index uint32, scored bool, ops ...program.Op) program.GraphSink {
		return program.GraphSink{Value: value, Scored: scored, Sink: program.Sink{To: program.ToSparse, Index: index,
			Ops: ops}}
	}
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "ids", Kind: program.Int64, List: true, Part: program.GraphFirst},
			{Name: "scores", Kind: program.Float32, List: true, Part: program.GraphNext},
			{Name: "score", Kind: program.Float32, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0}, Combine: enumerate.Op{}},
				{Inputs: []uint32{0, 1}, Combine: withscores.Op{}, Ops: []program.Op{firstx.Op{N: 2}}},
				{Inputs: []uint32{0, 2}, Combine: withscores.Op{}},
				{Inputs: []uint32{4}, Ops: []program.Op{positivemodulus.Op{M: 10}}},
				{Inputs: []uint32{4, 6}, Combine: idlisttransform.Op{}},
			},
			Sinks: []program.GraphSink{
				key(3, 0, true), key(3, 1, true, firstx.Op{N: 1}), key(3, 2, true), key(4, 3, true),
				key(5, 4, true), key(4, 5, false), key(7, 6, false),
			},
		}},
		Output: program.Output{Keys: 7, Weights: true},
	}
}

// TestIDsWithScores checks mini-batches that are written down, of the reference and of the engine.
func TestIDsWithScores(t *testing.T) {
	p := scoredProgram()
	cols := []testColumn{
		{name: "ids", physical: format.Int64, list: true, optional: true, elements: true,
			rows: []any{[]any{int64(17), int64(18), int64(19)}, nil, []any{int64(5), nil}, []any{}, []any{int64(4)}}},
		{name: "score", physical: format.Float, optional: true,
			rows: []any{float32(3), float32(4), float32(5), float32(6), nil}},
		{name: "scores", physical: format.Float, list: true, optional: true, elements: true,
			rows: []any{[]any{float32(.5), float32(1), float32(2)}, []any{float32(7)}, nil, []any{}, []any{nil}}},
	}
	require.NoError(t, p.Validate())
	data := writeFile(t, cols, layout{groupRows: 5, batchRows: 2, pageBytes: 64, version: 1})
	f := readFooter(t, data)
	want := &reference.Tensors{
		Rows: 5,
		Lengths: []int32{
			3, 0, 0, 0, 1,
			1, 0, 0, 0, 1,
			3, 0, 0, 0, 1,
			2, 0, 0, 0, 0,
			3, 0, 0, 0, 0,
			2, 0, 0, 0, 0,
			0, 0, 0, 0, 0,
		},
		Values:  []int64{17, 18, 19, 4, 17, 4, 17, 18, 19, 4, 17, 18, 17, 18, 19, 17, 18},
		Weights: []float32{0, 1, 2, 0, 0, 0, 0, 1, 2, 0, .5, 1, 3, 3, 3, 1, 1},
	}
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	got, err := ref.MiniBatch(0, 5)
	require.NoError(t, err)
	requireSame(t, want, got)
	for _, block := range []int{1, 2, 0} {
		h := newHost(engine.New(engine.Options{BlockRows: block}), p, f, data, 1)
		got, err = h.miniBatch(0, 5)
		require.NoError(t, err)
		requireSame(t, want, got)
	}
}

// TestScoresThatDoNotFit checks that a row with another number of scores than ids fails its slice.
func TestScoresThatDoNotFit(t *testing.T) {
	p := scoredProgram()
	nan := float32(math.NaN())
	cols := []testColumn{
		{name: "ids", physical: format.Int64, list: true, rows: []any{[]any{int64(1)}, []any{int64(2), int64(3)}}},
		{name: "score", physical: format.Float, rows: []any{nan, nan}},
		{name: "scores", physical: format.Float, list: true, rows: []any{[]any{nan}, []any{nan}}},
	}
	data := writeFile(t, cols, layout{groupRows: 2, batchRows: 2, pageBytes: 1 << 20, version: 1})
	f := readFooter(t, data)
	h := newHost(engine.New(engine.Options{}), p, f, data, 1)
	h.wholeChunks = true
	_, err := h.miniBatch(0, 2)
	var bad *sliceFailure
	require.ErrorAs(t, err, &bad)
	require.Equal(t, program.BadData, bad.state)
	require.Contains(t, bad.message, "with_scores: row 1 has 2 ids and 1 scores: another number of scores than of ids")
	ref, err := reference.NewParquet(p, f, bytes.NewReader(data))
	require.NoError(t, err)
	_, err = ref.MiniBatch(0, 2)
	require.ErrorIs(t, err, reference.ErrData)
	_, err = ref.MiniBatch(0, 1)
	require.NoError(t, err)
}
