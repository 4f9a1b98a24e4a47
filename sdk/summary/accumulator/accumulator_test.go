package accumulator

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/summary"
)

// reference computes statistics of finite values the obvious way, from all of them.
type reference struct {
	values []summary.Value
}

func (r reference) mean() float64 {
	sum := new(big.Rat)
	for _, v := range r.values {
		sum.Add(sum, rational(v))
	}
	mean, _ := sum.Quo(sum, new(big.Rat).SetInt64(int64(len(r.values)))).Float64()
	return mean
}

// deviation computes the variance about the mean, and finds the nearest float64 to its root by bisection.
func (r reference) deviation() float64 {
	n := new(big.Rat).SetInt64(int64(len(r.values)))
	mean := new(big.Rat)
	for _, v := range r.values {
		mean.Add(mean, rational(v))
	}
	mean.Quo(mean, n)
	variance := new(big.Rat)
	for _, v := range r.values {
		d := new(big.Rat).Sub(rational(v), mean)
		variance.Add(variance, d.Mul(d, d))
	}
	variance.Quo(variance, new(big.Rat).Sub(n, big.NewRat(1, 1)))
	low, high := uint64(0), math.Float64bits(math.MaxFloat64)
	for low < high { // the least float64 whose middle to the next one is not below the root
		middle := low + (high-low)/2
		a, b := math.Float64frombits(middle), math.Float64frombits(middle+1)
		border := new(big.Rat).Add(new(big.Rat).SetFloat64(a), new(big.Rat).SetFloat64(min(b, math.MaxFloat64)))
		border.Quo(border, big.NewRat(2, 1))
		if border.Mul(border, border).Cmp(variance) >= 0 {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return math.Float64frombits(low)
}

func rational(v summary.Value) *big.Rat {
	switch {
	case v.Large:
		return new(big.Rat).SetUint64(uint64(v.Int))
	case v.Integer:
		return new(big.Rat).SetInt64(v.Int)
	}
	return new(big.Rat).SetFloat64(v.Float)
}

// top returns the most frequent values.
func (r reference) top() []summary.TopValue {
	counts := map[summary.Value]int64{}
	for _, v := range r.values {
		counts[v]++
	}
	var list []summary.TopValue
	for v, n := range counts {
		list = append(list, summary.TopValue{Value: v, Count: n})
	}
	slices.SortFunc(list, func(a, b summary.TopValue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), compareValues(a.Value, b.Value))
	})
	return list[:min(len(list), summary.MaxTopValues)]
}

// compare compares statistics that are exact with the reference.
func (r reference) compare(t require.TestingT, s *summary.Statistics) {
	require.True(t, s.Exact)
	if len(r.values) == 0 {
		require.Nil(t, s.Mean)
		return
	}
	sorted := slices.SortedFunc(slices.Values(r.values), compareValues)
	require.Equal(t, sorted[0], *s.Least)
	require.Equal(t, sorted[len(sorted)-1], *s.Greatest)
	require.Equal(t, r.mean(), *s.Mean)
	if len(sorted) > 1 {
		require.Equal(t, r.deviation(), *s.Deviation)
	}
	require.Equal(t, r.top(), s.TopValues)
	for i, q := range s.Quantiles {
		require.Equal(t, sorted[(i+1)*(len(sorted)-1)/100], q, "quantile %d", i+1)
	}
}

// summarize makes the summary of one column, in the given partitions, cut into blocks by cut.
func summarize(t require.TestingT, c Column, cut func(rows int) int, partitions ...Block) *summary.Summary {
	b, err := NewBuilder([]Column{c}, true)
	require.NoError(t, err)
	for i, p := range partitions {
		rows := int64(0)
		for len(p.Lengths) > 0 || p.Lengths == nil && len(p.Integers)+len(p.Reals) > 0 {
			var part Block
			part, p = cutBlock(p, cut)
			n := len(part.Lengths)
			if part.Lengths == nil {
				n = len(part.Integers) + len(part.Reals)
			}
			rows += int64(n)
			require.NoError(t, b.Add(0, part))
		}
		require.NoError(t, b.EndPartition(string(rune('a'+i)), rows))
	}
	s, err := b.Finish(summary.Digest{1})
	require.NoError(t, err)
	return s
}

// cutBlock cuts rows off a block.
func cutBlock(b Block, cut func(rows int) int) (first, rest Block) {
	rows := len(b.Lengths)
	if b.Lengths == nil {
		rows = len(b.Integers) + len(b.Reals)
	}
	n := min(max(cut(rows), 1), rows)
	values := n
	if b.Lengths != nil {
		values = 0
		for _, length := range b.Lengths[:n] {
			values += int(length)
		}
		first.Lengths, rest.Lengths = b.Lengths[:n], b.Lengths[n:]
	}
	if b.Reals != nil {
		first.Reals, rest.Reals = b.Reals[:n], b.Reals[n:]
		return first, rest
	}
	first.Integers, rest.Integers = b.Integers[:values], b.Integers[values:]
	return first, rest
}

func whole(rows int) int { return rows }

// integerEdges are integers whose squares and sums need every word.
var integerEdges = []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1 << 53, 1<<53 + 1, -1 << 32}

// realEdges are float32 of every kind.
var realEdges = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, 0x1.fffffep-127, 0.1, -16777217, 1e-30}

func TestExactStatisticsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partitions := rapid.IntRange(1, 3).Draw(t, "partitions")
		list, unsigned := rapid.Bool().Draw(t, "list"), rapid.Bool().Draw(t, "unsigned")
		var blocks []Block
		var all reference
		var rows, nulls int64
		for range partitions {
			lengths := rapid.SliceOfN(rapid.Int32Range(0, map[bool]int32{false: 1, true: 4}[list]), 0, 30).Draw(t, "lengths")
			b := Block{Lengths: append([]int32{}, lengths...)}
			for _, n := range lengths {
				rows++
				if n == 0 {
					nulls++
				}
				for range n {
					x := rapid.OneOf(rapid.SampledFrom(integerEdges), rapid.Int64Range(-5, 5), rapid.Int64()).Draw(t, "value")
					b.Integers = append(b.Integers, x)
					value := summary.IntegerValue(x)
					if unsigned {
						value = summary.UnsignedValue(uint64(x))
					}
					all.values = append(all.values, value)
				}
			}
			blocks = append(blocks, b)
		}
		cut := func(int) int { return rapid.IntRange(1, 20).Draw(t, "cut") }
		column := Column{Name: "c", Type: "int64", Kind: summary.Integers, List: list, Unsigned: unsigned}
		s := summarize(t, column, cut, blocks...)
		require.Equal(t, rows, s.Columns[0].Rows)
		require.Equal(t, nulls, s.Columns[0].NullRows)
		require.EqualValues(t, len(all.values), s.Columns[0].Values)
		all.compare(t, &s.Columns[0].Statistics)
		file, err := s.Encode()
		require.NoError(t, err)
		same, err := summarize(t, column, whole, blocks...).Encode()
		require.NoError(t, err)
		require.Equal(t, string(same), string(file), "where blocks are cut changes nothing")
	})
}

func TestExactRealsAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Block{Lengths: []int32{}, Reals: []float32{}}
		var all reference
		var nans, above, below, nulls int64
		for range rapid.IntRange(0, 50).Draw(t, "rows") {
			x := rapid.OneOf(rapid.SampledFrom(realEdges), rapid.Float32(), rapid.Float32Range(-1, 1),
				rapid.SampledFrom([]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))})).Draw(t, "value")
			null := rapid.IntRange(0, 5).Draw(t, "null") == 0
			b.Reals = append(b.Reals, x)
			b.Lengths = append(b.Lengths, map[bool]int32{false: 1}[null])
			switch {
			case null:
				nulls++
			case x != x:
				nans++
			case math.IsInf(float64(x), 1):
				above++
			case math.IsInf(float64(x), -1):
				below++
			default:
				all.values = append(all.values, summary.RealValue(float64(x)+0))
			}
		}
		cut := func(int) int { return rapid.IntRange(1, 20).Draw(t, "cut") }
		s := summarize(t, Column{Name: "c", Type: "float32", Kind: summary.Reals}, cut, b)
		c := &s.Columns[0]
		require.Equal(t, []int64{nulls, nans, above, below},
			[]int64{c.NullRows, c.NaNs, c.PositiveInfinite, c.NegativeInfinite})
		all.compare(t, &c.Statistics)
		_, err := s.Encode()
		require.NoError(t, err)
	})
}

// wideEdges are float64 of every kind that no float32 is.
var wideEdges = []float64{0.1, -0.1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
	-math.SmallestNonzeroFloat64, 0x1p-1022, 0x1.ffffffffffffep-1023, 1<<53 + 2, -1e300, 1e-300, math.Nextafter(1, 2)}

// TestExactFloat64AreReference gives numbers as the bits of float64.
func TestExactFloat64AreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Block{Lengths: []int32{}, Integers: []int64{}}
		var all reference
		var nans, above, below, nulls int64
		for range rapid.IntRange(0, 50).Draw(t, "rows") {
			if rapid.IntRange(0, 5).Draw(t, "null") == 0 {
				nulls++
				b.Lengths = append(b.Lengths, 0)
				continue
			}
			x := rapid.OneOf(rapid.SampledFrom(wideEdges), rapid.Float64(), rapid.Float64Range(-1, 1),
				rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)})).Draw(t, "value")
			b.Integers, b.Lengths = append(b.Integers, int64(math.Float64bits(x))), append(b.Lengths, 1)
			switch {
			case x != x:
				nans++
			case math.IsInf(x, 1):
				above++
			case math.IsInf(x, -1):
				below++
			default:
				all.values = append(all.values, summary.RealValue(x+0))
			}
		}
		cut := func(int) int { return rapid.IntRange(1, 20).Draw(t, "cut") }
		s := summarize(t, Column{Name: "c", Type: "float64", Kind: summary.Reals}, cut, b)
		c := &s.Columns[0]
		require.Equal(t, []int64{nulls, nans, above, below},
			[]int64{c.NullRows, c.NaNs, c.PositiveInfinite, c.NegativeInfinite})
		all.compare(t, &c.Statistics)
		_, err := s.Encode()
		require.NoError(t, err)
	})
}

// TestDeviationBeyondFloat64 checks that the deviation of two numbers, which is their difference divided by the root of
// 2, is the greatest float64 where it is beyond that.
func TestDeviationBeyondFloat64(t *testing.T) {
	for of, want := range map[float64]float64{math.MaxFloat64: math.MaxFloat64, 0x1p1023: math.Sqrt2 * 0x1p1023,
		0x1p1022: math.Sqrt2 * 0x1p1022} {
		s := summarize(t, Column{Name: "c", Type: "float64", Kind: summary.Reals}, whole,
			Block{Integers: []int64{int64(math.Float64bits(of)), int64(math.Float64bits(-of))}})
		require.Equal(t, want, *s.Columns[0].Deviation)
		_, err := s.Encode()
		require.NoError(t, err)
	}
}

// TestSketchesAreNearTheReference draws columns with many distinct values and holds the documented errors.
func TestSketchesAreNearTheReference(t *testing.T) {
	const rows = 30_000
	rng := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() int64{
		"uniform":    func() int64 { return rng.Int64N(1 << 40) },
		"skewed":     func() int64 { return int64(math.Exp(rng.Float64() * 20)) },
		"far from 0": func() int64 { return 1_700_000_000_000_000 + rng.Int64N(1<<20) },
		"signs":      func() int64 { return rng.Int64N(1<<30) - 1<<29 },
		"hot value":  func() int64 { return rng.Int64N(50_000) * int64(rng.IntN(3)/2) },
	} {
		t.Run(name, func(t *testing.T) {
			values := make([]int64, rows)
			for i := range values {
				values[i] = draw()
			}
			half := rows / 3
			s := summarize(t, Column{Name: "c", Type: "int64", Kind: summary.Integers}, whole,
				Block{Integers: values[:half]}, Block{}, Block{Integers: values[half:]})
			c := s.Columns[0]
			require.False(t, c.Exact)
			counts := map[int64]int64{}
			for _, v := range values {
				counts[v]++
			}
			assert.InEpsilon(t, len(counts), c.Distinct, 0.03, "four standard errors")
			sorted := slices.Sorted(slices.Values(values))
			const most = 4 * rows / levelValues // error of a rank, since there are four levels
			for i, q := range c.Quantiles {
				rank := (i + 1) * (rows - 1) / 100
				first, found := slices.BinarySearch(sorted, q.Int)
				behind, _ := slices.BinarySearch(sorted, q.Int+1)
				assert.True(t, found && first-most <= rank && rank < behind+most, "quantile %d: %d, want about %d", i+1,
					q.Int, sorted[rank])
			}
			require.NotZero(t, c.MissedCount)
			require.LessOrEqual(t, c.MissedCount, int64(rows/512), "each pruning takes 1024 counts at least")
			for _, top := range c.TopValues {
				have := counts[top.Value.Int]
				assert.LessOrEqual(t, top.Count, have)
				assert.GreaterOrEqual(t, top.Count+c.MissedCount, have)
			}
			kept := map[int64]bool{}
			for _, top := range c.TopValues {
				kept[top.Value.Int] = true
			}
			if len(c.TopValues) < summary.MaxTopValues {
				for v, n := range counts {
					assert.True(t, kept[v] || n <= c.MissedCount, "%d, %d times, was lost", v, n)
				}
			}
			sum := new(big.Int)
			for _, v := range values {
				sum.Add(sum, big.NewInt(v))
			}
			mean, _ := new(big.Rat).SetFrac(sum, big.NewInt(rows)).Float64()
			assert.Equal(t, mean, *c.Mean)
		})
	}
}

// TestTheTableIsExactUpToItsSize takes as many distinct values as are counted exactly, and one more.
func TestTheTableIsExactUpToItsSize(t *testing.T) {
	for _, distinct := range []int64{summary.ExactValues, summary.ExactValues + 1} {
		var f frequentValues
		for round := range 3 {
			for v := range distinct {
				if round < 2 || v < 700 {
					f.add(uint64(v), mix(uint64(v)))
				}
			}
		}
		assert.Equal(t, distinct > summary.ExactValues, f.pruned)
		counts := map[uint64]int64{}
		for _, c := range f.counters() {
			counts[c.bits] = c.count
		}
		if !f.pruned {
			require.Len(t, counts, int(distinct))
			assert.EqualValues(t, 3, counts[0])
			assert.EqualValues(t, 2, counts[uint64(distinct-1)])
		}
		assert.LessOrEqual(t, len(counts), summary.ExactValues)
	}
}

// TestMergedTables joins tables and compares with one table over all values while they are few.
func TestMergedTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SliceOfN(rapid.Uint64Range(0, 50), 0, 100), 1, 5).Draw(t, "parts")
		var joined, all frequentValues
		for _, part := range parts {
			var one frequentValues
			for _, v := range part {
				one.add(v, mix(v))
				all.add(v, mix(v))
			}
			joined.merge(&one)
		}
		collect := func(f *frequentValues) map[uint64]int64 {
			m := map[uint64]int64{}
			for _, c := range f.counters() {
				m[c.bits] = c.count
			}
			return m
		}
		require.True(t, maps.Equal(collect(&all), collect(&joined)))
		require.False(t, joined.pruned)
	})
}

func TestBlocksThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		column Column
		block  Block
	}{
		"two values of a scalar":      {Column{Kind: summary.Integers}, Block{Lengths: []int32{2}, Integers: []int64{1, 2}}},
		"a negative length":           {Column{Kind: summary.Integers, List: true}, Block{Lengths: []int32{-1}}},
		"more values than lengths":    {Column{Kind: summary.Integers}, Block{Lengths: []int32{1}, Integers: []int64{1, 2}}},
		"fewer values than lengths":   {Column{Kind: summary.Integers}, Block{Lengths: []int32{1, 1}, Integers: []int64{1}}},
		"more lengths than reals":     {Column{Kind: summary.Reals}, Block{Lengths: []int32{1, 1}, Reals: []float32{1}}},
		"two reals of a row":          {Column{Kind: summary.Reals}, Block{Lengths: []int32{2}, Reals: []float32{1}}},
		"lengths that have no values": {Column{Kind: summary.Lengths, List: true}, Block{Integers: []int64{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.column.Name = "c"
			b, err := NewBuilder([]Column{c.column}, true)
			require.NoError(t, err)
			require.ErrorIs(t, b.Add(0, c.block), ErrBlock)
		})
	}
	b, err := NewBuilder([]Column{{Name: "c", Kind: summary.Integers}}, true)
	require.NoError(t, err)
	require.NoError(t, b.Add(0, Block{Integers: []int64{1}}))
	require.ErrorIs(t, b.EndPartition("p", 2), ErrBlock)
}

// TestStridedReals reads a column of a row-major matrix.
func TestStridedReals(t *testing.T) {
	b, err := NewBuilder([]Column{{Name: "c", Type: "float32", Kind: summary.Reals}}, false)
	require.NoError(t, err)
	require.NoError(t, b.Add(0, Block{Reals: []float32{5, 0, 0, 7, 0}[0:5], Stride: 3}))
	require.NoError(t, b.EndPartition("p", 2))
	s, err := b.Finish(summary.Digest{})
	require.NoError(t, err)
	require.Equal(t, 6.0, *s.Columns[0].Mean)
	require.Empty(t, s.Partitions)
	_, err = s.Encode()
	require.NoError(t, err)
}
