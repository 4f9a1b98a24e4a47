package computescore

import (
	"math/bits"
	"math/rand/v2"
)

// idGroups numbers the different ids of a row, from 0, and holds what is known of each. It is a hash table with linear
// probing that is never more than half full.
type idGroups struct {
	slots      []int32 // the number of the id there plus 1; 0: empty
	multiplier uint64  // random and odd: the high bits of a product with it are a hash. 0: not drawn yet
	shift      uint8   // A hash is shifted by it.
	count      int     // different ids
	ids        []int64 // by number, and so are the others

	inputCounts, matchingCounts []int32

	inputSums, matchingSums   []float64
	inputSizes, matchingSizes []float64 // sums of absolute values
}

// begin makes the table empty, with room for n different ids. The hash is drawn at random, so that nobody can choose
// ids of one hash; no result depends on it.
func (g *idGroups) begin(n int) {
	if g.multiplier == 0 {
		g.multiplier = rand.Uint64() | 1
	}
	width := bits.Len(uint(n)) + 1 // 2^width is more than 2 n
	g.shift = uint8(64 - width)
	g.slots = resize(g.slots, 1<<width)
	clear(g.slots)
	g.count = 0
	if len(g.ids) < n {
		g.ids = resize(g.ids, n)
		g.inputCounts, g.matchingCounts = resize(g.inputCounts, n), resize(g.matchingCounts, n)
	}
}

// beginSums makes room for sums, behind begin.
func (g *idGroups) beginSums(n int) {
	if len(g.inputSums) < n {
		g.inputSums, g.matchingSums = resize(g.inputSums, n), resize(g.matchingSums, n)
		g.inputSizes, g.matchingSizes = resize(g.inputSizes, n), resize(g.matchingSizes, n)
	}
	clear(g.inputSums[:n])
	clear(g.matchingSums[:n])
	clear(g.inputSizes[:n])
	clear(g.matchingSizes[:n])
}

// add returns the number of an id, which it enters if it is new.
func (g *idGroups) add(id int64) int {
	mask := len(g.slots) - 1
	for at := int(uint64(id) * g.multiplier >> g.shift); ; at++ {
		slot := &g.slots[at&mask]
		if *slot == 0 {
			n := g.count
			g.ids[n], g.inputCounts[n], g.matchingCounts[n] = id, 0, 0
			g.count++
			*slot = int32(g.count)
			return n
		}
		if n := int(*slot) - 1; g.ids[n] == id {
			return n
		}
	}
}

// find returns the number of an id, or -1 if the id was not entered.
func (g *idGroups) find(id int64) int {
	mask := len(g.slots) - 1
	for at := int(uint64(id) * g.multiplier >> g.shift); ; at++ {
		n := int(g.slots[at&mask]) - 1
		if n < 0 || g.ids[n] == id {
			return n
		}
	}
}

// resize returns a slice of n elements, which are those of s as far as they fit, or new ones.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n+n/4)[:n]
	}
	return s[:n]
}
