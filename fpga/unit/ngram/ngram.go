package ngram

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/unit/sigridhash"
)

// MaxN is the greatest length of a window.
const MaxN = 16

var (
	// ErrN says that the length of the windows is out of range.
	ErrN = errors.New("ngram: n must be 1 to 16")
	// ErrLengths says that lengths are negative or do not add up to the ids.
	ErrLengths = errors.New("ngram: lengths do not match the ids")
)

// NGram replaces every list by the ids of its windows of n ids, moves them together at the front of ids, and sets
// lengths to the numbers of windows. It returns the number of ids that are left: the lists are ids[:kept] afterwards.
func NGram(lengths []int32, ids []int64, n int64) (kept int, err error) {
	if n < 1 || n > MaxN {
		return 0, fmt.Errorf("n is %d: %w", n, ErrN)
	}
	var sum int64
	for row, l := range lengths {
		if l < 0 {
			return 0, fmt.Errorf("row %d has length %d: %w", row, l, ErrLengths)
		}
		sum += int64(l)
	}
	if sum != int64(len(ids)) {
		return 0, fmt.Errorf("lengths add up to %d, there are %d ids: %w", sum, len(ids), ErrLengths)
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
