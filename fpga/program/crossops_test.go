package program

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crosses is a program with the hashes of buckets.
func crosses() *Program {
	return &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "a", Kind: Int64, Part: GraphFirst},
			{Name: "b", Kind: Int64, Part: GraphNext},
			{Name: "list.list.element", Kind: Int64, List: true, Sinks: []Sink{{To: ToSparse, Index: 1,
				Ops: []Op{HashBucket{Buckets: math.MaxInt64}}}}},
		},
		Graphs: []Graph{{
			Steps: []Step{{Inputs: []uint32{0, 1, 0}, Combine: HashCross{Buckets: 1000}}},
			Sinks: []GraphSink{{Value: 2, Sink: Sink{To: ToSparse, Ops: []Op{FillNull{Int: 7}}}}},
		}},
		Output: Output{Keys: 2},
	}
}

func TestCrosses(t *testing.T) {
	p := crosses()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "crosses.v1.3.hex", b)
	q, err := Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p, q)
	assert.Equal(t, b, q.Marshal())
	checkDamage(t, p)
	assert.Contains(t, p.String(), "value 2 = [0 1 0]: hash_cross 1000 -> int64\n")
	assert.Contains(t, p.String(), "sparse 1: hash_bucket 9223372036854775807\n")
}

func TestCrossesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *Program)
		want   string
	}{
		"no bucket of several": {func(p *Program) { p.Graphs[0].Steps[0].Combine = HashCross{} },
			"hash_cross: 0 buckets, want more than 0"},
		"no bucket of one": {func(p *Program) { p.Columns[2].Sinks[0].Ops[0] = HashBucket{Buckets: -1} },
			"hash_bucket: -1 buckets, want more than 0"},
		"one input":   {func(p *Program) { p.Graphs[0].Steps[0].Inputs = []uint32{0} }, "hash_cross does not take [int64]"},
		"nine inputs": {func(p *Program) { p.Graphs[0].Steps[0].Inputs = make([]uint32, 9) }, "9 inputs, want 1 to 8"},
		"a list":      {func(p *Program) { p.Columns[1].List = true }, "hash_cross does not take [int64 list<int64> int64]"},
		"real numbers": {func(p *Program) { p.Columns[0].Kind = Float32 },
			"hash_cross does not take [float32 int64 float32]"},
		"real numbers of one": {func(p *Program) { p.Columns[2].Kind = Float64 }, "hash_bucket does not take float64"},
	} {
		p := crosses()
		c.change(p)
		err := p.Validate()
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// scoring is a program with the comparisons of lists.
func scoring() *Program {
	p := &Program{
		Source: Parquet,
		Columns: []Column{
			{Name: "a.list.element", Kind: Int64, List: true, Part: GraphFirst},
			{Name: "weights.list.element", Kind: Float32, List: true, Part: GraphNext},
			{Name: "b", Kind: Int64, Part: GraphNext},
			{Name: "w", Kind: Float32, Part: GraphNext},
		},
		Graphs: []Graph{{}},
	}
	g := &p.Graphs[0]
	for f := ScoreHasOverlap; f <= ScoreMax; f++ {
		s := Step{Inputs: []uint32{0, 2}, Combine: ComputeScore{Function: f}}
		switch len(f.Inputs()) {
		case 3:
			s.Inputs = append(s.Inputs, 3)
		case 4:
			s.Inputs, s.Combine = []uint32{0, 1, 2, 3}, ComputeScore{Function: f, ZeroNorm: ZeroNormZero}
		}
		g.Steps = append(g.Steps, s)
		g.Sinks = append(g.Sinks, GraphSink{Value: uint32(4 + f), Sink: Sink{To: ToDense, Index: uint32(f)}})
		p.Output.Dense++
	}
	return p
}

func TestScoring(t *testing.T) {
	p := scoring()
	require.NoError(t, p.Validate())
	b := p.Marshal()
	golden(t, "scoring.v1.3.hex", b)
	q, err := Unmarshal(b)
	require.NoError(t, err)
	assert.Equal(t, p, q)
	checkDamage(t, p)
	assert.Contains(t, p.String(), "value 7 = [0 2]: compute_score get_jaccard_similarity -> float32\n")
	assert.Contains(t, p.String(),
		"value 8 = [0 1 2 3]: compute_score get_cosine_similarity zero norm zero -> float32\n")
	assert.Equal(t, "function(8)", ScoreFunction(8).String())
	assert.Equal(t, "zero norm(2)", ZeroNorm(2).String())
}

func TestScoringThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s []Step)
		want   string
	}{
		"an unknown function": {func(s []Step) { s[0].Combine = ComputeScore{Function: 8} },
			"compute_score does not take [list<int64> int64]"},
		"an unknown norm": {func(s []Step) { s[4].Combine = ComputeScore{Function: ScoreCosine, ZeroNorm: 2} },
			"compute_score: zero norm(2) is no treatment of a norm of 0"},
		"a norm of counts": {func(s []Step) { s[1].Combine = ComputeScore{Function: 1, ZeroNorm: 1} },
			"compute_score: id_overlap_count has no norm that may be 0"},
		"too few":  {func(s []Step) { s[5].Inputs = s[5].Inputs[:2] }, "compute_score does not take [list<int64> int64]"},
		"too many": {func(s []Step) { s[0].Inputs = []uint32{0, 2, 2} }, "compute_score does not take"},
		"ids as scores": {func(s []Step) { slices.Reverse(s[5].Inputs) },
			"compute_score does not take [float32 int64 list<int64>]"},
	} {
		p := scoring()
		c.change(p.Graphs[0].Steps)
		err := p.Validate()
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, c.want, name)
	}
}
