package occurrence

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Entry is what is known of a key: where it appeared first, and how often it appeared.
type Entry struct {
	Key      int64
	Position uint64 // Position is the row in the data set and, in its low PlaceBits bits, the place in the row
	Count    uint64
}

// EntrySize is the bytes of an entry in a file.
const EntrySize = 24

// AppendEncoded appends the bytes of an entry in a file.
func (e *Entry) AppendEncoded(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Key))
	b = binary.LittleEndian.AppendUint64(b, e.Position)
	return binary.LittleEndian.AppendUint64(b, e.Count)
}

// DecodeEntry reads the bytes of an entry, which are there.
func DecodeEntry(b []byte) Entry {
	return Entry{Key: int64(binary.LittleEndian.Uint64(b)), Position: binary.LittleEndian.Uint64(b[8:]),
		Count: binary.LittleEndian.Uint64(b[16:])}
}

// foldEntry adds what is known of the same key elsewhere: the least position, and the sum of counts, which stays at its
// greatest value instead of overflowing.
func (e *Entry) foldEntry(o Entry) {
	e.Position = min(e.Position, o.Position)
	e.Count = addCounts(e.Count, o.Count)
}

// addCounts returns the sum of two counts, or the greatest count if the sum is greater.
func addCounts(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

func compareByKey(a, b Entry) int { return cmp.Compare(a.Key, b.Key) }

// leastSorted is how many entries are sorted by their digits. Comparisons are faster for fewer.
const leastSorted = 1 << 10

// SortByKey sorts entries by key.
func SortByKey(list []Entry) {
	if len(list) < leastSorted {
		slices.SortFunc(list, compareByKey)
		return
	}
	sortByDigits(list, true)
}

// SortByPosition sorts entries, which are sorted by key, by position. Those of one position stay sorted by key.
func SortByPosition(list []Entry) {
	if len(list) < leastSorted {
		slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Compare(a.Position, b.Position) })
		return
	}
	sortByDigits(list, false)
}

// digitBits is the width of a digit: the next places of 2,048 digits stay in the first-level cache.
const digitBits = 11

// sortByDigits sorts entries by their keys, or else by their positions, and keeps the order of entries with the same
// number. It sorts by one digit of the numbers after the other, and leaves out bits that all numbers share.
func sortByDigits(list []Entry, byKey bool) {
	number := func(e *Entry) uint64 {
		if byKey {
			return uint64(e.Key) ^ 1<<63
		}
		return e.Position
	}
	var differing uint64
	first := number(&list[0])
	for i := range list {
		differing |= number(&list[i]) ^ first
	}
	from, to := list, make([]Entry, len(list))
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

// PlaceBits is how many low bits of a position are the value's place in its row.
const PlaceBits = 24
