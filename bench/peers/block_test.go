package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func twoRows() *block {
	return &block{
		rows: 2, label: []float32{0, 1}, dense: [][]float32{{0.5, 2}}, values: [][]int32{{7, 8, 9}, {1, 2}},
		lengths: [][]int32{{1, 2}, {1, 1}},
	}
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*block)
		fails  string
	}{
		"equal":   {func(*block) {}, ""},
		"one ulp": {func(b *block) { b.dense[0][1] = math.Nextafter32(2, 3) }, ""},
		"two ulp": {func(b *block) {
			b.dense[0][1] = math.Nextafter32(math.Nextafter32(2, 3), 3)
		}, "dense feature 0, row 1"},
		"rows":  {func(b *block) { b.rows = 1 }, "1 rows, want 2"},
		"label": {func(b *block) { b.label[0] = 1 }, "label, place 0"},
		"ids":   {func(b *block) { b.values[0][2]++ }, "ids of key 0, place 2"},
		"too many ids": {func(b *block) {
			b.values[1] = append(b.values[1], 1)
		}, "ids of key 1: 3 values, want 2"},
		"ids moved a row":    {func(b *block) { b.lengths[0][0], b.lengths[0][1] = 2, 1 }, "lengths of key 0, place 0"},
		"a key less":         {func(b *block) { b.values = b.values[:1] }, "1 keys, want 1 and 2"},
		"a feature less":     {func(b *block) { b.dense = nil }, "0 dense features"},
		"a dense value less": {func(b *block) { b.dense[0] = b.dense[0][:1] }, "dense feature 0: 1 values, want 2"},
		"not a number":       {func(b *block) { b.dense[0][0] = float32(math.NaN()) }, "dense feature 0, row 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := twoRows()
			c.change(got)
			unequal, farthest, err := compare(twoRows(), got, 1)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			if name == "one ulp" {
				assert.Equal(t, int64(1), unequal)
				assert.Equal(t, int64(1), farthest)
			} else {
				assert.Zero(t, unequal)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	nan := float32(math.NaN())
	tiny := float32(math.SmallestNonzeroFloat32)
	for _, c := range []struct {
		a, b float32
		want int64
	}{
		{1, 1, 0}, {0, float32(math.Copysign(0, -1)), 0}, {tiny, -tiny, 2}, {1, math.Nextafter32(1, 2), 1},
		{math.Nextafter32(1, 0), math.Nextafter32(1, 2), 2},
		{nan, nan, 0}, {nan, 1, math.MaxInt64}, {1, nan, math.MaxInt64}, {math.MaxFloat32, float32(math.Inf(1)), 1},
	} {
		assert.Equal(t, c.want, distance(c.a, c.b), "%v %v", c.a, c.b)
		assert.Equal(t, c.want, distance(c.b, c.a), "%v %v", c.b, c.a)
	}
}

func TestBlockAppendCopies(t *testing.T) {
	all := newBlock(1, 2)
	b := twoRows()
	b.lengths[1] = nil // one id a row
	all.append(b)
	all.append(b)
	b.label[0], b.values[0][0] = 5, 5
	assert.Equal(t, &block{rows: 4, label: []float32{0, 1, 0, 1}, dense: [][]float32{{0.5, 2, 0.5, 2}},
		values: [][]int32{{7, 8, 9, 7, 8, 9}, {1, 2, 1, 2}}, lengths: [][]int32{{1, 2, 1, 2}, {1, 1, 1, 1}}}, all)
}
