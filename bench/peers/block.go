package main

import (
	"fmt"
	"math"
)

// block is some rows as a peer hands them out: columns, materialised. Its slices are the peer's and change with the
// next block.
type block struct {
	rows    int
	label   []float32
	dense   [][]float32 // a slice a feature
	values  [][]int32   // a slice a key, ids one behind the other
	lengths [][]int32   // a slice a key; nil: one id a row
}

func newBlock(dense, keys int) *block {
	return &block{dense: make([][]float32, dense), values: make([][]int32, keys), lengths: make([][]int32, keys)}
}

// append adds a copy of b's rows.
func (t *block) append(b *block) {
	t.rows += b.rows
	t.label = append(t.label, b.label...)
	for i := range b.dense {
		t.dense[i] = append(t.dense[i], b.dense[i]...)
	}
	for i := range b.values {
		t.values[i] = append(t.values[i], b.values[i]...)
		if b.lengths[i] != nil {
			t.lengths[i] = append(t.lengths[i], b.lengths[i]...)
			continue
		}
		for range b.rows {
			t.lengths[i] = append(t.lengths[i], 1)
		}
	}
}

// compare returns an error unless got equals want. Dense features may differ by ulps units in the last place. It
// returns the number of dense values that are not equal, and the farthest distance.
func compare(want, got *block, ulps int64) (unequal, farthest int64, err error) {
	if want.rows != got.rows {
		return 0, 0, fmt.Errorf("%d rows, want %d", got.rows, want.rows)
	}
	if len(want.dense) != len(got.dense) || len(want.values) != len(got.values) {
		return 0, 0, fmt.Errorf("%d dense features and %d keys, want %d and %d", len(got.dense), len(got.values),
			len(want.dense), len(want.values))
	}
	if err := same("label", want.label, got.label); err != nil {
		return 0, 0, err
	}
	for i := range want.values {
		if err := same(fmt.Sprintf("lengths of key %d", i), want.lengths[i], got.lengths[i]); err != nil {
			return 0, 0, err
		}
		if err := same(fmt.Sprintf("ids of key %d", i), want.values[i], got.values[i]); err != nil {
			return 0, 0, err
		}
	}
	for i := range want.dense {
		w, g := want.dense[i], got.dense[i]
		if len(w) != len(g) {
			return 0, 0, fmt.Errorf("dense feature %d: %d values, want %d", i, len(g), len(w))
		}
		for row := range w {
			d := distance(w[row], g[row])
			if d == 0 {
				continue
			}
			unequal++
			farthest = max(farthest, d)
			if d > ulps {
				return unequal, farthest,
					fmt.Errorf("dense feature %d, row %d: %v, want %v within %d ulp", i, row, g[row], w[row], ulps)
			}
		}
	}
	return unequal, farthest, nil
}

func same[T comparable](what string, want, got []T) error {
	if len(want) != len(got) {
		return fmt.Errorf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("%s, place %d: %v, want %v", what, i, got[i], want[i])
		}
	}
	return nil
}

// distance counts the float32 from a to b; NaN is far from everything but NaN.
func distance(a, b float32) int64 {
	an, bn := a != a, b != b
	switch {
	case an && bn:
		return 0
	case an || bn:
		return math.MaxInt64
	}
	d := ordered(a) - ordered(b)
	return max(d, -d)
}

// ordered maps floats to integers in order; both zeroes to 0.
func ordered(f float32) int64 {
	b := int64(math.Float32bits(f))
	if b>>31 == 1 {
		return -(b & 0x7fffffff)
	}
	return b
}
