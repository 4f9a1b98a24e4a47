package program

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scoredLists is a program with ids that have scores.
func scoredLists() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "ids.list.element", Kind: Int64, List: true, Part: GraphFirst},
			{Name: "score", Kind: Float32, Part: GraphNext},
		},
		Graphs: []Graph{{
			Steps: []Step{
				{Inputs: []uint32{0}, Combine: Enumerate{}, Ops: []Op{FirstX{N: 3}}},
				{Inputs: []uint32{0, 1}, Combine: WithScores{}},
				{Inputs: []uint32{2}, Ops: []Op{PositiveModulus{M: 10}}},
				{Inputs: []uint32{4}, Combine: Scores{}},
				{Inputs: []uint32{0, 5}, Combine: WithScores{}},
				{Inputs: []uint32{3, 0}, Combine: IDListTransform{}},
			},
			Sinks: []GraphSink{
				{Value: 2, Sink: Sink{To: ToSparse}, Scored: true},
				{Value: 3, Sink: Sink{To: ToSparse, Index: 1}, Scored: true},
				{Value: 6, Sink: Sink{To: ToSparse, Index: 2, Ops: []Op{NGram{N: 2}}}},
				{Value: 7, Sink: Sink{To: ToSparse, Index: 3}},
			},
		}},
		Output: Output{Keys: 4, Weights: true},
	}
}

func TestScoredLists(t *testing.T) {
	p := scoredLists()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "scored.v1.5.hex", b)
	assert.Equal(t, uint16(5), le.Uint16(b[10:]))
	q, err := Unmarshal(b)
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
	both.Columns = append(both.Columns, Column{Name: "m.key", Kind: Int64, Part: MapKeys},
		Column{Name: "m.value", Kind: Int64, Part: MapValues, Sinks: []Sink{{To: ToSparse, Index: 4}},
			Picks: []Pick{{Key: 1}}})
	both.Output.Keys++
	require.NoError(t, both.Validate())
	b = both.Marshal()
	q, err := Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, both, q)
	checkDamage(t, both)
}

func TestScoredListsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Program, g *Graph)
		want   string
	}{
		"positions of real numbers": {func(_ *Program, g *Graph) { g.Steps[0].Inputs[0] = 1 },
			"enumerate does not take [float32]"},
		"scores of plain ids": {func(_ *Program, g *Graph) { g.Steps[3].Inputs[0] = 0 },
			"scores does not take [list<int64>]"},
		"scores that are ids": {func(_ *Program, g *Graph) { g.Steps[1].Inputs[1] = 0 },
			"with_scores does not take [list<int64> list<int64>]"},
		"three inputs": {func(_ *Program, g *Graph) { g.Steps[1].Inputs = []uint32{0, 1, 1} },
			"with_scores does not take [list<int64> float32 float32]"},
		"ids that move in a step": {func(_ *Program, g *Graph) { g.Steps[0].Ops[0] = NGram{N: 2} },
			"step 0: ngram of scored ids"},
		"ids that move in a sink": {func(_ *Program, g *Graph) { g.Sinks[0].Sink.Ops = []Op{ListSlice{End: 2}} },
			"sink 0 (sparse 0): list_slice of scored ids"},
		"scored ids that become real": {func(_ *Program, g *Graph) { g.Steps[2].Ops[0] = Convert{To: Float32} },
			"step 2: scored ids become float32"},
		"weights of plain ids": {func(_ *Program, g *Graph) { g.Sinks[3].Scored = true },
			"sink 3 (sparse 3): takes scores of list<int64>, which has none"},
		"no weights": {func(p *Program, _ *Graph) { p.Output.Weights = false }, "takes scores, which have no tensor"},
		"weights of nothing": {func(_ *Program, g *Graph) { g.Sinks[0].Scored, g.Sinks[1].Scored = false, false },
			"weights, and no scores to make them of"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scoredLists()
			c.change(p, &p.Graphs[0])
			err := p.Validate()
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, c.want)
		})
	}
}
