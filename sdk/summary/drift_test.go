package summary_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/summary/accumulator"
)

// summarize makes the summary of one column.
func summarize(t *testing.T, c accumulator.Column, b accumulator.Block) *summary.Summary {
	t.Helper()
	c.Name, c.Type = "c", string(c.Kind)
	builder, err := accumulator.NewBuilder([]accumulator.Column{c}, false)
	require.NoError(t, err)
	require.NoError(t, builder.Add(0, b))
	rows := int64(len(b.Lengths))
	if b.Lengths == nil {
		rows = int64(len(b.Integers) + len(b.Reals))
	}
	require.NoError(t, builder.EndPartition("p", rows))
	s, err := builder.Finish(summary.Digest{})
	require.NoError(t, err)
	return s
}

// draw returns integers that a function makes of its generator.
func draw(seed uint64, n int, one func(*rand.Rand) int64) accumulator.Block {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b accumulator.Block
	for range n {
		b.Integers = append(b.Integers, one(rng))
	}
	return b
}

func uniform(n int64) func(*rand.Rand) int64 {
	return func(r *rand.Rand) int64 { return r.Int64N(n) }
}

// nulls makes some rows null.
func nulls(b accumulator.Block, every int) accumulator.Block {
	with := accumulator.Block{Lengths: []int32{}}
	for i, x := range b.Integers {
		if i%every == 0 {
			with.Lengths = append(with.Lengths, 0)
			continue
		}
		with.Lengths, with.Integers = append(with.Lengths, 1), append(with.Integers, x)
	}
	return with
}

// lists makes lists of one length.
func lists(b accumulator.Block, length int) accumulator.Block {
	for range len(b.Integers) / length {
		b.Lengths = append(b.Lengths, int32(length))
	}
	b.Integers = b.Integers[:len(b.Lengths)*length]
	return b
}

// around returns reals that are drawn around a number.
func around(seed uint64, n int, middle, deviation float64) (b accumulator.Block) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		b.Reals = append(b.Reals, float32(middle+deviation*rng.NormFloat64()))
	}
	return b
}

// replaced sets one of every few reals to a number.
func replaced(b accumulator.Block, every int, x float64) accumulator.Block {
	for i := 0; i < len(b.Reals); i += every {
		b.Reals[i] = float32(x)
	}
	return b
}

// embeddings returns lists of two reals: a finite one, and one of a class.
func embeddings(n int, mark int64) (b accumulator.Block) {
	for range n {
		b.Lengths, b.Integers = append(b.Lengths, 2), append(b.Integers, accumulator.Finite, mark)
	}
	return b
}

func constant(x int64) func(*rand.Rand) int64 { return func(*rand.Rand) int64 { return x } }

func TestCompare(t *testing.T) {
	const n = 20_000
	numbers, hashes, reals := summary.Integers, summary.Hashes, summary.Reals
	far := func(r *rand.Rand) int64 { return 10_000_000_000 + int64(1000*r.NormFloat64()) }
	shifted := func(by int64) func(*rand.Rand) int64 {
		return func(r *rand.Rand) int64 { return r.Int64N(1000) + by }
	}
	hot := func(value int64, share float64) func(*rand.Rand) int64 {
		return func(r *rand.Rand) int64 {
			if r.Float64() < share {
				return value
			}
			return r.Int64N(1 << 40)
		}
	}
	for _, c := range []struct {
		name          string
		kind          summary.Kind
		list          bool
		before, after accumulator.Block
		reasons       []summary.Reason
	}{
		{"another sample", numbers, false, draw(1, n, uniform(5000)), draw(2, n, uniform(5000)), nil},
		{"another sample of few values", numbers, false, draw(1, n, uniform(5)), draw(2, n, uniform(5)), nil},
		{"another sample of many values", hashes, false, draw(1, n, uniform(1<<40)), draw(2, n, uniform(1<<40)), nil},
		{"the same constant", numbers, false, draw(1, n, constant(3)), draw(1, n/2, constant(3)), nil},
		{"nulls", numbers, false, draw(1, n, uniform(5000)), nulls(draw(2, n, uniform(5000)), 10),
			[]summary.Reason{summary.NullRateMoved}},
		{"a move of the mean", numbers, false, draw(1, n, shifted(0)), draw(2, n, shifted(300)),
			[]summary.Reason{summary.MeanMoved, summary.QuantileMoved, summary.ClassesMoved}},
		{"a small move of the mean", numbers, false, draw(1, n, shifted(0)), draw(2, n, shifted(50)), nil},
		{"more values", hashes, false, draw(1, n, uniform(5000)), draw(2, n, uniform(9000)),
			[]summary.Reason{summary.DistinctMoved}},
		{"another constant above", numbers, false, draw(1, n, constant(3)), draw(1, n, constant(5)), []summary.Reason{
			summary.MeanMoved, summary.QuantileMoved, summary.ClassesMoved, summary.ValuesMoved}},
		{"another constant below", numbers, false, draw(1, n, constant(5)), draw(1, n, constant(2)), []summary.Reason{
			summary.MeanMoved, summary.QuantileMoved, summary.ClassesMoved, summary.ValuesMoved}},
		{"another hot value", hashes, false, draw(1, n, hot(7, 0.3)), draw(2, n, hot(8, 0.3)),
			[]summary.Reason{summary.ValuesMoved}},
		{"a hot value that cools a little", hashes, false, draw(1, n, hot(7, 0.3)), draw(2, n, hot(7, 0.25)), nil},
		{"longer lists", hashes, true, lists(draw(1, n, uniform(9)), 2), lists(draw(2, n, uniform(9)), 3),
			[]summary.Reason{summary.LengthMoved}},
		{"no rows", numbers, false, draw(1, n, uniform(9)), accumulator.Block{}, []summary.Reason{summary.RowsMoved}},
		{"another sample far from 0", numbers, false, draw(1, n, far), draw(2, n, far), nil},
		{"another sample of reals far from 0", reals, false, around(1, n, 1e10, 1e6), around(2, n, 1e10, 1e6), nil},
		{"a move far from 0", reals, false, around(1, n, 1e10, 1e6), around(2, n, 1e10+2e6, 1e6), []summary.Reason{
			summary.MeanMoved, summary.QuantileMoved, summary.ClassesMoved}},
		{"all NaN", reals, false, around(1, n, 0, 1), replaced(around(1, n, 0, 1), 1, math.NaN()),
			[]summary.Reason{summary.NaNRateMoved}},
		{"a third NaN", reals, false, around(1, n, 0, 1), replaced(around(1, n, 0, 1), 3, math.NaN()),
			[]summary.Reason{summary.NaNRateMoved}},
		{"a third infinite", reals, false, around(1, n, 0, 1), replaced(around(1, n, 0, 1), 3, math.Inf(-1)),
			[]summary.Reason{summary.InfiniteMoved}},
		{"few NaN", reals, false, around(1, n, 0, 1), replaced(around(1, n, 0, 1), 100, math.NaN()), nil},
		{"embeddings that turn to NaN", summary.Lengths, true, embeddings(9, accumulator.Finite),
			embeddings(9, accumulator.NotANumber), []summary.Reason{summary.NaNRateMoved}},
		{"embeddings that turn infinite", summary.Lengths, true, embeddings(9, accumulator.Finite),
			embeddings(9, accumulator.PositiveInfinity), []summary.Reason{summary.InfiniteMoved}},
	} {
		t.Run(c.name, func(t *testing.T) {
			column := accumulator.Column{Kind: c.kind, List: c.list}
			before, after := summarize(t, column, c.before), summarize(t, column, c.after)
			drifts := summary.Compare(before, after, summary.DefaultThresholds())
			require.Len(t, drifts, 1)
			assert.Equal(t, c.reasons, drifts[0].Reasons)
			for _, s := range []*summary.Summary{before, after} {
				same := summary.Compare(s, s, summary.Thresholds{})
				require.Empty(t, same[0].Reasons, "a summary did not move from itself: %+v", same[0])
			}
		})
	}
}

// TestMovesOfReals computes the moves of a column by hand.
func TestMovesOfReals(t *testing.T) {
	var before, after accumulator.Block
	for i := range 1000 {
		before.Reals = append(before.Reals, float32(i))
		after.Reals = append(after.Reals, float32(2*i))
	}
	column := accumulator.Column{Kind: summary.Reals}
	a, b := summarize(t, column, before), summarize(t, column, after)
	d := summary.Compare(a, b, summary.DefaultThresholds())[0]
	deviation := *a.Columns[0].Deviation
	assert.InDelta(t, 499.5/deviation, *d.Mean, 1e-9)
	assert.InDelta(t, 949/deviation, *d.Quantiles, 1e-9)
	assert.Equal(t, 0.0, *d.Distinct)
	assert.Nil(t, d.FrequentValues)
	// Each of the ten classes has a tenth before, of which the lower half of after fills five and the last holds half.
	assert.InDelta(t, 9*0.05*0.693+0.41*1.65, *d.Stability, 0.15)
	back := summary.Compare(b, a, summary.DefaultThresholds())[0]
	assert.Less(t, *back.Mean, 0.0)
}

func TestColumnsThatComeAndGo(t *testing.T) {
	with := func(kind summary.Kind, names ...string) *summary.Summary {
		s := &summary.Summary{}
		for _, name := range names {
			s.Columns = append(s.Columns, summary.Column{Name: name, Type: fmt.Sprint(kind), Kind: kind})
		}
		return s
	}
	before, after := with(summary.Hashes, "a", "b"), with(summary.Hashes, "b", "c")
	after.Columns[0].Type = "int64"
	drifts := summary.Compare(before, after, summary.DefaultThresholds())
	require.Len(t, drifts, 3)
	for i, want := range []struct {
		name   string
		reason summary.Reason
	}{{"a", summary.Removed}, {"b", summary.OtherType}, {"c", summary.Added}} {
		assert.Equal(t, want.name, drifts[i].Name)
		assert.Equal(t, []summary.Reason{want.reason}, drifts[i].Reasons)
	}
}
