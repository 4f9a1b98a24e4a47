package firstx

import (
	"errors"
	"fmt"
)

// ErrLengths says that lengths are negative or do not add up to the values.
var ErrLengths = errors.New("firstx: lengths do not match the values")

// FirstX keeps the first n values of every list, moves them together at the front of values, and sets lengths to what
// is left. It returns the number of values kept: the lists are values[:kept] afterwards.
func FirstX[T any](lengths []int32, values []T, n int64) (kept int, err error) {
	var sum int64
	for row, l := range lengths {
		if l < 0 {
			return 0, fmt.Errorf("row %d has length %d: %w", row, l, ErrLengths)
		}
		sum += int64(l)
	}
	if sum != int64(len(values)) {
		return 0, fmt.Errorf("lengths add up to %d, there are %d values: %w", sum, len(values), ErrLengths)
	}
	n = max(n, 0)
	from := 0
	for row, l := range lengths {
		keep := int32(min(int64(l), n))
		if from != kept {
			copy(values[kept:kept+int(keep)], values[from:from+int(keep)])
		}
		lengths[row] = keep
		kept += int(keep)
		from += int(l)
	}
	return kept, nil
}
