package program_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/enumerate"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/idlisttransform"
	"github.com/millrace/millrace/fpga/operator/listslice"
	"github.com/millrace/millrace/fpga/operator/ngram"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/scores"
	"github.com/millrace/millrace/fpga/operator/withscores"
	"github.com/millrace/millrace/fpga/program"
)

// scoredLists is a program with ids that have scores.
func scoredLists() *program.Program {
	return &program.Program{
		Source: program.Parquet,
		Columns: []program.Column{
			{Name: "ids.list.element", Kind: program.Int64, List: true, Part: program.GraphFirst},
			{Name: "score", Kind: program.Float32, Part: program.GraphNext},
		},
		Graphs: []program.Graph{{
			Steps: []program.Step{
				{Inputs: []uint32{0}, Combine: enumerate.Op{}, Ops: []program.Op{firstx.Op{N: 3}}},
				{Inputs: []uint32{0, 1}, Combine: withscores.Op{}},
				{Inputs: []uint32{2}, Ops: []program.Op{positivemodulus.Op{M: 10}}},
				{Inputs: []uint32{4}, Combine: scores.Op{}},
				{Inputs: []uint32{0, 5}, Combine: withscores.Op{}},
				{Inputs: []uint32{3, 0}, Combine: idlisttransform.Op{}},
			},
			Sinks: []program.GraphSink{
				{Value: 2, Sink: program.Sink{To: program.ToSparse}, Scored: true},
				{Value: 3, Sink: program.Sink{To: program.ToSparse, Index: 1}, Scored: true},
				{Value: 6, Sink: program.Sink{To: program.ToSparse, Index: 2, Ops: []program.Op{ngram.Op{N: 2}}}},
				{Value: 7, Sink: program.Sink{To: program.ToSparse, Index: 3}},
			},
		}},
		Output: program.Output{Keys: 4, Weights: true},
	}
}

func TestScoredLists(t *testing.T) {
	p := scoredLists()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "scored.v1.5.hex", b)
	assert.Equal(t, uint16(5), le.Uint16(b[10:]))
	q, err := operator.Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p, q)
	assert.Equal(t, b, q.Marshal())
	checkDamage(t, p)
	for _, line := range []string{
		"  value 2 = [0]: enumerate | firstx 3 -> list<int64, score>\n",
		"  value 3 = [0 1]: with_scores -> list<int64, score>\n",
		"  value 5 = [4]: scores -> list<float32>\n",
		"  value 2 to scored sparse 0:\n",
	} {
		assert.Contains(t, p.String(), line)
	}
}

// TestScoresAreWrittenOnlyIfUsed checks that a program without them keeps its version.
func TestScoresAreWrittenOnlyIfUsed(t *testing.T) {
	b := crosses().Marshal()
	assert.Equal(t, uint16(3), le.Uint16(b[10:]))

	// Weights of a map and of a graph: the section of maps says that there are weights, and that of graphs does not.
	both := scoredLists()
	both.Columns = append(
		both.Columns,
		program.Column{Name: "m.key", Kind: program.Int64, Part: program.MapKeys},
		program.Column{
			Name:  "m.value",
			Kind:  program.Int64,
			Part:  program.MapValues,
			Sinks: []program.Sink{{To: program.ToSparse, Index: 4}},
			Picks: []program.Pick{{Key: 1}},
		},
	)
	both.Output.Keys++
	require.NoError(t, both.Validate())
	b = both.Marshal()
	q, err := operator.Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, both, q)
	checkDamage(t, both)
}

func TestScoredListsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *program.Program, g *program.Graph)
		want   string
	}{
		"positions of real numbers": {func(_ *program.Program, g *program.Graph) { g.Steps[0].Inputs[0] = 1 },
			"enumerate does not take [float32]"},
		"scores of plain ids": {func(_ *program.Program, g *program.Graph) { g.Steps[3].Inputs[0] = 0 },
			"scores does not take [list<int64>]"},
		"scores that are ids": {func(_ *program.Program, g *program.Graph) { g.Steps[1].Inputs[1] = 0 },
			"with_scores does not take [list<int64> list<int64>]"},
		"three inputs": {func(_ *program.Program, g *program.Graph) { g.Steps[1].Inputs = []uint32{0, 1, 1} },
			"with_scores does not take [list<int64> float32 float32]"},
		"ids that move in a step": {func(_ *program.Program, g *program.Graph) { g.Steps[0].Ops[0] = ngram.Op{N: 2} },
			"step 0: ngram of scored ids"},
		"ids that move in a sink": {func(_ *program.Program, g *program.Graph) {
			g.Sinks[0].Sink.Ops = []program.Op{listslice.Op{End: 2}}
		},
			"sink 0 (sparse 0): list_slice of scored ids"},
		"scored ids that become real": {func(_ *program.Program, g *program.Graph) {
			g.Steps[2].Ops[0] = convert.Op{To: program.Float32}
		},
			"step 2: scored ids become float32"},
		"weights of plain ids": {func(_ *program.Program, g *program.Graph) { g.Sinks[3].Scored = true },
			"sink 3 (sparse 3): takes scores of list<int64>, which has none"},
		"no weights": {func(p *program.Program, _ *program.Graph) { p.Output.Weights = false },
			"takes scores, which have no tensor"},
		"weights of nothing": {func(_ *program.Program, g *program.Graph) {
			g.Sinks[0].Scored, g.Sinks[1].Scored = false, false
		},
			"weights, and no scores to make them of"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scoredLists()
			c.change(p, &p.Graphs[0])
			err := p.Validate()
			require.ErrorIs(t, err, program.ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}
