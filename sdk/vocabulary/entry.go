package vocabulary

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// entry is what is known of a key: where it appeared first, and how often it appeared.
type entry struct {
	key      int64
	position uint64 // see positions
	count    uint64
}

const entrySize = 24

func (e *entry) appendEncoded(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(e.key))
	b = binary.LittleEndian.AppendUint64(b, e.position)
	return binary.LittleEndian.AppendUint64(b, e.count)
}

func decodeEntry(b []byte) entry {
	return entry{key: int64(binary.LittleEndian.Uint64(b)), position: binary.LittleEndian.Uint64(b[8:]),
		count: binary.LittleEndian.Uint64(b[16:])}
}

// foldEntry adds what is known of the same key elsewhere: the least position, and the sum of counts, which stays at its
// greatest value instead of overflowing.
func (e *entry) foldEntry(o entry) {
	e.position = min(e.position, o.position)
	e.count = addCounts(e.count, o.count)
}

// addCounts returns the sum of two counts, or the greatest count if the sum is greater.
func addCounts(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

func compareByKey(a, b entry) int { return cmp.Compare(a.key, b.key) }

// leastSorted is how many entries are sorted by their digits. Comparisons are faster for fewer.
const leastSorted = 1 << 10

// sortByKey sorts entries by key.
func sortByKey(list []entry) {
	if len(list) < leastSorted {
		slices.SortFunc(list, compareByKey)
		return
	}
	sortByDigits(list, true)
}

// sortEntries brings entries, which are sorted by key, in the order of ids.
func (o Order) sortEntries(list []entry) {
	if o == FirstSeen && len(list) >= leastSorted {
		// Entries of one position keep their order, which is that of the keys.
		sortByDigits(list, false)
		return
	}
	slices.SortFunc(list, o.compareEntries())
}

// digitBits is the width of a digit: the next places of 2,048 digits stay in the first-level cache.
const digitBits = 11

// sortByDigits sorts entries by their keys, or else by their positions, and keeps the order of entries with the same
// number. It sorts by one digit of the numbers after the other, and leaves out bits that all numbers share.
func sortByDigits(list []entry, byKey bool) {
	number := func(e *entry) uint64 {
		if byKey {
			return uint64(e.key) ^ 1<<63
		}
		return e.position
	}
	var differing uint64
	first := number(&list[0])
	for i := range list {
		differing |= number(&list[i]) ^ first
	}
	from, to := list, make([]entry, len(list))
	for differing != 0 {
		shift := bits.TrailingZeros64(differing)
		differing &^= (1<<digitBits - 1) << shift
		var next [1 << digitBits]int
		for i := range from {
			next[number(&from[i])>>shift&(1<<digitBits-1)]++
		}
		begin := 0
		for digit, n := range next {
			next[digit], begin = begin, begin+n
		}
		for i := range from {
			digit := number(&from[i]) >> shift & (1<<digitBits - 1)
			to[next[digit]] = from[i]
			next[digit]++
		}
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
}

// compareEntries returns the order of ids. No two keys are equal in it.
func (o Order) compareEntries() func(a, b entry) int {
	switch o {
	case ByCount:
		return func(a, b entry) int {
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.key, b.key))
		}
	case ByCountText:
		return func(a, b entry) int {
			return cmp.Or(cmp.Compare(b.count, a.count), compareDecimals(b.key, a.key))
		}
	}
	return func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.key, b.key))
	}
}

// compareDecimals compares the decimal texts of two keys byte by byte.
func compareDecimals(a, b int64) int {
	var x, y [20]byte
	return cmp.Compare(string(strconv.AppendInt(x[:0], a, 10)), string(strconv.AppendInt(y[:0], b, 10)))
}

// Bits of a position: the row in the data set, and below it the value's place in the row.
const (
	placeBits = 24
	// MaxRows bounds the rows of a data set that a vocabulary is made of, over all generations.
	MaxRows = 1 << (64 - placeBits)
)
