package selection

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/tensor"
)

// values makes a mini-batch of two keys, of which the first has no value where a row says so.
func values(t require.TestingT, first []int64, there []bool, second []int64) *tensor.MiniBatch {
	s := &tensor.Schema{IDs: tensor.Int64, Keys: []tensor.Key{{Name: "k0", List: true}, {Name: "k1"}}}
	m, err := tensor.Make(s, len(first), 0)
	require.NoError(t, err)
	for i, v := range first {
		if there[i] {
			m.Lengths[i], m.Values64 = 1, append(m.Values64, v)
		}
	}
	for i, v := range second {
		m.Lengths[len(first)+i], m.Values64 = 1, append(m.Values64, v)
	}
	return m
}

// passes is the definition of a condition for one row.
func passes(c *Condition, name string, row int64, values []*int64) bool {
	switch {
	case len(c.All) > 0:
		for i := range c.All {
			if !passes(&c.All[i], name, row, values) {
				return false
			}
		}
		return true
	case len(c.Any) > 0:
		for i := range c.Any {
			if passes(&c.Any[i], name, row, values) {
				return true
			}
		}
		return false
	case c.Not != nil:
		return !passes(c.Not, name, row, values)
	case c.Null != NoNullTest:
		return (values[c.Key] == nil) == (c.Null == IsNull)
	case values[c.Key] == nil:
		return false
	}
	for _, r := range c.Ranges {
		if *values[c.Key] >= r.Least && *values[c.Key] <= r.Greatest {
			return true
		}
	}
	return false
}

func drawCondition(t *rapid.T, depth int) Condition {
	list := func() (list []Condition) {
		for range rapid.IntRange(1, 3).Draw(t, "conditions") {
			list = append(list, drawCondition(t, depth-1))
		}
		return list
	}
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind = 3 + kind%3
	}
	c := Condition{Key: rapid.IntRange(0, 1).Draw(t, "key")}
	switch kind {
	case 0:
		return Condition{All: list()}
	case 1:
		return Condition{Any: list()}
	case 2:
		not := drawCondition(t, depth-1)
		return Condition{Not: &not}
	case 3:
		c.Null = rapid.SampledFrom([]NullTest{IsNull, IsNotNull}).Draw(t, "null")
	default:
		bound := rapid.SampledFrom([]int64{math.MinInt64, -2, -1, 0, 1, 2, 5, math.MaxInt64})
		for range rapid.IntRange(0, 3).Draw(t, "ranges") {
			c.Ranges = append(c.Ranges, Range{bound.Draw(t, "least"), bound.Draw(t, "greatest")})
		}
		c.Ranges = Union(c.Ranges)
	}
	return c
}

func TestConditionsAreTheirDefinition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawCondition(rt, 3)
		rows := rapid.IntRange(0, 40).Draw(rt, "rows")
		value := rapid.SampledFrom([]int64{math.MinInt64, -3, -2, -1, 0, 1, 2, 3, 5, 6, math.MaxInt64})
		first, there, second := make([]int64, rows), make([]bool, rows), make([]int64, rows)
		for i := range rows {
			first[i], there[i], second[i] = value.Draw(rt, "k0"), rapid.Bool().Draw(rt, "there"), value.Draw(rt, "k1")
		}
		got, err := c.Evaluate(&Block{Rows: rows, MiniBatch: values(rt, first, there, second)})
		require.NoError(rt, err)
		for i := range rows {
			of := []*int64{&first[i], &second[i]}
			if !there[i] {
				of[0] = nil
			}
			require.Equal(rt, passes(&c, "", 0, of), got[i], "row %d", i)
		}
	})
}

func TestUnionAscendsAndDoesNotTouch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bound := rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, 3, math.MaxInt64 - 1,
			math.MaxInt64})
		var ranges []Range
		for range rapid.IntRange(0, 5).Draw(rt, "ranges") {
			ranges = append(ranges, Range{bound.Draw(rt, "least"), bound.Draw(rt, "greatest")})
		}
		in := func(list []Range, v int64) bool {
			for _, r := range list {
				if v >= r.Least && v <= r.Greatest {
					return true
				}
			}
			return false
		}
		union := Union(ranges)
		for i, r := range union {
			require.LessOrEqual(rt, r.Least, r.Greatest)
			require.True(rt, i == 0 || r.Least-1 > union[i-1].Greatest)
		}
		for _, v := range []int64{math.MinInt64, math.MinInt64 + 1, -2, -1, 0, 1, 2, 3, 4, math.MaxInt64 - 1,
			math.MaxInt64} {
			require.Equal(rt, in(ranges, v), in(union, v), "%d", v)
		}
	})
}

// TestSamplingKeepsTheRowsOfTheGoldenFile runs the case of Sampling in golden/proposed_ops.json.
func TestSamplingKeepsTheRowsOfTheGoldenFile(t *testing.T) {
	document, err := os.ReadFile("../../fpga/unit/testdata/golden/proposed_ops.json")
	require.NoError(t, err)
	var golden struct {
		Cases []struct {
			Fn   string          `json:"fn"`
			Salt json.Number     `json:"salt"`
			Keys json.RawMessage `json:"keys"`
			Rate float64         `json:"rate"`
			Keep []bool          `json:"keep"`
			Kept int             `json:"kept_of_100000"`
		} `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(document, &golden))
	found := false
	for _, c := range golden.Cases {
		if len(c.Keep) == 0 {
			continue
		}
		found = true
		salt, err := c.Salt.Int64()
		require.NoError(t, err)
		s := Sampling{Rate: c.Rate, Salt: salt}
		var keys []int64
		require.NoError(t, json.Unmarshal(c.Keys, &keys))
		for i, key := range keys {
			assert.Equal(t, c.Keep[i], s.Keeps(key), "key %d", key)
		}
		kept := 0
		for key := range int64(100000) {
			if s.Keeps(key) {
				kept++
			}
			require.False(t, (&Sampling{Salt: salt}).Keeps(key), "rate 0 keeps nothing")
			require.True(t, (&Sampling{Rate: 1, Salt: salt}).Keeps(key), "rate 1 keeps all")
		}
		assert.Equal(t, c.Kept, kept)
	}
	require.True(t, found)
}

// TestSamplingByRow checks which rows are kept, as every release must, that the share is the rate, and that partitions
// and salts draw apart.
func TestSamplingByRow(t *testing.T) {
	keep := func(partition string, first int64, rows int, s Sampling) []bool {
		s.Key = -1
		c := Condition{Sampling: &s}
		got, err := c.Evaluate(&Block{Partition: partition, First: first, Rows: rows})
		require.NoError(t, err)
		return got
	}
	var rows []int
	for i, kept := range keep("day_0.parquet", 0, 48, Sampling{Rate: 0.25, Salt: 7}) {
		if kept {
			rows = append(rows, i)
		}
	}
	assert.Equal(t, []int{3, 8, 12, 15, 26, 27, 30, 36, 45, 47}, rows)
	const n = 1_000_000
	for _, rate := range []float64{0, 0.01, 0.25, 0.5, 1} {
		same, other, salted := keep("a", 0, n, Sampling{Rate: rate}), keep("b", 0, n, Sampling{Rate: rate}),
			keep("a", 0, n, Sampling{Rate: rate, Salt: 1})
		assert.Equal(t, same[1000:2000], keep("a", 1000, 1000, Sampling{Rate: rate}), "the cut of blocks does not count")
		count, both := func(list []bool) (count int) {
			for _, kept := range list {
				if kept {
					count++
				}
			}
			return count
		}, [2]int{}
		for i := range same {
			if same[i] && other[i] {
				both[0]++
			}
			if same[i] && salted[i] {
				both[1]++
			}
		}
		deviation := math.Sqrt(n * rate * (1 - rate))
		for _, list := range [][]bool{same, other, salted} {
			assert.InDelta(t, n*rate, count(list), 4*deviation)
		}
		for _, together := range both { // of draws that are independent
			assert.InDelta(t, n*rate*rate, together, 4*math.Sqrt(n*rate*rate*(1-rate*rate)))
		}
	}
}

func TestBlocksThatDoNotFit(t *testing.T) {
	c := Condition{Key: 1, Null: IsNull}
	mb := values(t, []int64{1, 2}, []bool{true, true}, []int64{3, 4})
	_, err := c.Evaluate(&Block{Rows: 3, MiniBatch: mb})
	require.ErrorContains(t, err, "2 rows for a block of 3")
	for _, key := range []int{-1, 2} {
		c.Key = key
		_, err = c.Evaluate(&Block{Rows: 2, MiniBatch: mb})
		require.ErrorContains(t, err, "of a mini-batch of 2 keys")
	}
	_, err = c.Evaluate(&Block{Rows: 2})
	require.ErrorContains(t, err, "of a mini-batch of 0 keys")
	c.Key = 1
	mb.Lengths = []int32{2, 0, 1, 1}
	_, err = c.Evaluate(&Block{Rows: 2, MiniBatch: mb})
	require.ErrorContains(t, err, "key k0 has 2 values in a row")
	mb.Lengths = []int32{1}
	_, err = c.Evaluate(&Block{Rows: 2, MiniBatch: mb})
	require.ErrorIs(t, err, tensor.ErrShape)
	narrow, err := tensor.Make(&tensor.Schema{IDs: tensor.Int32, Keys: []tensor.Key{{Name: "k"}}}, 2, 2)
	require.NoError(t, err)
	_, err = c.Evaluate(&Block{Rows: 2, MiniBatch: narrow})
	require.ErrorContains(t, err, "ids of int32")
}
