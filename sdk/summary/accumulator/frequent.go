package accumulator

import (
	"math/bits"
	"slices"

	"github.com/millrace/millrace/sdk/summary"
)

const (
	tableSlots = 4 * summary.ExactValues // a power of two, so that a table is at most half full after a merge
	keptValues = summary.ExactValues / 2 // at most this number stays when the table is pruned
)

// counter is a value of the table, by its bits, and how often it was seen.
type counter struct {
	bits  uint64
	count int64 // 0: the slot is free
}

// frequentValues counts values: all of them while they are few, and later the frequent ones.
type frequentValues struct {
	slots  []counter // nil, or tableSlots with open addressing
	used   int
	missed int64 // the most by which a count is too small; 0 while nothing was pruned
	pruned bool
	// whole is the table as it was before its first pruning; nil before that, and after takeWhole.
	whole []counter
}

// takeWhole returns whole and sets it to nil.
func (f *frequentValues) takeWhole() []counter {
	whole := f.whole
	f.whole = nil
	return whole
}

// mix spreads the bits of a value over 64 bits: the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// add counts a value, whose hash is mix of its bits. It reports whether the value came into the table.
func (f *frequentValues) add(value, hash uint64) bool {
	if f.slots == nil {
		f.slots = make([]counter, tableSlots)
	}
	if !f.put(value, hash, 1) {
		return false
	}
	if f.used > summary.ExactValues {
		f.prune()
	}
	return true
}

// put adds to the count of a value, and reports whether it is a new one.
func (f *frequentValues) put(value, hash uint64, count int64) bool {
	for at := hash >> (64 - uint(bits.TrailingZeros(tableSlots))); ; at = (at + 1) % tableSlots {
		s := &f.slots[at]
		if s.count == 0 {
			*s = counter{value, count}
			f.used++
			return true
		}
		if s.bits == value {
			s.count += count
			return false
		}
	}
}

// counters returns the values of the table in no order.
func (f *frequentValues) counters() []counter {
	list := make([]counter, 0, f.used)
	for _, s := range f.slots {
		if s.count != 0 {
			list = append(list, s)
		}
	}
	return list
}

// prune subtracts the count of value keptValues+1, by count, from all counts.
func (f *frequentValues) prune() {
	list := f.counters()
	if !f.pruned {
		f.whole = slices.Clone(list)
	}
	counts := make([]int64, len(list))
	for i, c := range list {
		counts[i] = c.count
	}
	slices.Sort(counts)
	subtracted := counts[len(counts)-1-keptValues]
	clear(f.slots)
	f.used, f.pruned = 0, true
	f.missed += subtracted
	for _, c := range list {
		if c.count > subtracted {
			f.put(c.bits, mix(c.bits), c.count-subtracted)
		}
	}
}

// merge adds the counts of a later part of the data. The table holds the values of both before it is pruned.
func (f *frequentValues) merge(later *frequentValues) {
	f.missed += later.missed
	f.pruned = f.pruned || later.pruned
	if later.used == 0 {
		return
	}
	if f.slots == nil {
		f.slots = make([]counter, tableSlots)
	}
	for _, c := range later.slots {
		if c.count != 0 {
			f.put(c.bits, mix(c.bits), c.count)
		}
	}
	if f.used > summary.ExactValues {
		f.prune()
	}
}
