package program

import (
	"math"
	"slices"
)

// Limits of a table of texts.
const (
	MaxTexts     = 1 << 16 // texts of one table
	MaxTextBytes = 4096    // bytes of a text
)

// Table is a list of numbers or texts that operators use: borders of buckets, keys, values. One of the lists is set. A
// program holds each table once, however many operators use it.
type Table struct {
	Float32s []float32
	Float64s []float64
	Int64s   []int64
	Texts    []string
}

// Equal reports whether both tables have the same texts or numbers, bit for bit, so that -0 and 0 differ. Lists over
// the same memory, as lowering and Unmarshal make them, are recognised without a comparison of their values.
func (t Table) Equal(o Table) bool {
	same32 := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	same64 := func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }
	sameInt := func(x, y int64) bool { return x == y }
	sameText := func(x, y string) bool { return x == y }
	return equalLists(t.Float32s, o.Float32s, same32) && equalLists(t.Float64s, o.Float64s, same64) &&
		equalLists(t.Int64s, o.Int64s, sameInt) && equalLists(t.Texts, o.Texts, sameText)
}

func equalLists[T any](a, b []T, eq func(T, T) bool) bool {
	if len(a) != len(b) || len(a) == 0 {
		return len(a) == len(b)
	}
	return &a[0] == &b[0] || slices.EqualFunc(a, b, eq)
}
