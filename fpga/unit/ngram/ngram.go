package ngram

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// MaxN is the greatest length of a window.
const MaxN = 16

// MaxListed is the greatest number of ids that List makes of one list.
const MaxListed = 1 << 20

var (
	// ErrN says that the length of the windows is out of range.
	ErrN = errors.New("ngram: n must be 1 to 16")
	// ErrLengths says that lengths are negative or do not add up to the ids.
	ErrLengths = errors.New("ngram: lengths do not match the ids")
	// ErrTooLong says that the windows of a list hold too many ids to be listed.
	ErrTooLong = errors.New("ngram: windows of more than 1048576 ids; cut the lists first, as with firstx")
)

// NGram replaces every list by the ids of its windows of n ids, moves them together at the front of ids, and sets
// lengths to the numbers of windows. It returns the number of ids that are left: the lists are ids[:kept] afterwards.
func NGram(lengths []int32, ids []int64, n int64) (kept int, err error) {
	if err := check(lengths, ids, n); err != nil {
		return 0, err
	}
	window, from := int(n), 0
	for row, l := range lengths {
		list := ids[from : from+int(l)]
		from += int(l)
		windows := max(len(list)-window+1, 0)
		for i := range windows {
			var h int64
			for _, id := range list[i : i+window] {
				h = sigridhash.Combine(id, h)
			}
			ids[kept] = h // at or before list[i], which no later window has
			kept++
		}
		lengths[row] = int32(windows)
	}
	return kept, nil
}

// List appends to dst, for every list, the ids of its windows of n ids, window behind window, and sets lengths to the
// numbers of ids that the lists have then. n is the list's length in lists that are shorter. It returns dst.
func List(dst []int64, lengths []int32, ids []int64, n int64) ([]int64, error) {
	if err := check(lengths, ids, n); err != nil {
		return dst, err
	}
	for row, l := range lengths {
		if size := listed(int64(l), n); size > MaxListed {
			return dst, fmt.Errorf("row %d has %d: %w", row, size, ErrTooLong)
		}
	}
	from := 0
	for row, l := range lengths {
		list := ids[from : from+int(l)]
		from += int(l)
		window := min(int(n), len(list))
		for first := 0; first+window <= len(list) && window > 0; first++ {
			dst = append(dst, list[first:first+window]...)
		}
		lengths[row] = int32(listed(int64(l), n))
	}
	return dst, nil
}

// listed returns how many ids the windows of a list of length ids hold together.
func listed(length, n int64) int64 {
	n = min(n, length)
	return (length - n + 1) * n
}

// check checks that n is in range and that the lengths are those of lists that hold all ids.
func check(lengths []int32, ids []int64, n int64) error {
	if n < 1 || n > MaxN {
		return fmt.Errorf("n is %d: %w", n, ErrN)
	}
	var sum int64
	for row, l := range lengths {
		if l < 0 {
			return fmt.Errorf("row %d has length %d: %w", row, l, ErrLengths)
		}
		sum += int64(l)
	}
	if sum != int64(len(ids)) {
		return fmt.Errorf("lengths add up to %d, there are %d ids: %w", sum, len(ids), ErrLengths)
	}
	return nil
}
