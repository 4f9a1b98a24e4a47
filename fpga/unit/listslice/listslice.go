package listslice

import (
	"errors"
	"fmt"
	"math"
)

// MaxLength is the greatest length to which lists are filled up.
const MaxLength = 1024

// NoEnd as the end of a part is the end of the list.
const NoEnd = math.MaxInt64

var (
	// ErrLength says that a part has no length that lists could be filled up to.
	ErrLength = errors.New("list_slice: lists cannot be filled up to the part's length")
	// ErrLengths says that lengths are negative, do not add up to the values, or do not fit.
	ErrLengths = errors.New("list_slice: lengths do not match the values")
)

// Length returns how many elements list[start:end] has of every list that is long enough, at most MaxLength.
func Length(start, end int64) (int64, error) {
	if start < 0 && end == NoEnd {
		end = 0 // behind the last element, which is -1
	} else if (start < 0) != (end < 0) {
		return 0, fmt.Errorf("from %d to %d: the length depends on the list: %w", start, end, ErrLength)
	}
	if end <= start {
		return 0, nil
	}
	length := uint64(end) - uint64(start) // of numbers of one sign, or with the end 0: at most 2^63
	if length > MaxLength {
		return 0, fmt.Errorf("from %d to %d: more than %d elements: %w", start, end, MaxLength, ErrLength)
	}
	return int64(length), nil
}

// bounds returns where list[start:end] begins and ends in a list of n elements.
func bounds(start, end, n int64) (from, to int64) {
	if start < 0 {
		from = max(start+n, 0)
	} else {
		from = min(start, n)
	}
	if end < 0 {
		to = max(end+n, 0)
	} else {
		to = min(end, n)
	}
	return from, max(from, to)
}

// checkLengths checks that lengths add up to count.
func checkLengths(lengths []int32, count int) error {
	var sum int64
	for row, l := range lengths {
		if l < 0 {
			return fmt.Errorf("row %d has length %d: %w", row, l, ErrLengths)
		}
		sum += int64(l)
	}
	if sum != int64(count) {
		return fmt.Errorf("lengths add up to %d, there are %d values: %w", sum, count, ErrLengths)
	}
	return nil
}

// Cut keeps list[start:end] of every list, moves the parts together at the front of values, and sets lengths to theirs.
// It returns the number of values kept: the lists are values[:kept] afterwards.
func Cut[T any](lengths []int32, values []T, start, end int64) (kept int, err error) {
	if err := checkLengths(lengths, len(values)); err != nil {
		return 0, err
	}
	list := 0 // where the list begins
	for row, l := range lengths {
		from, to := bounds(start, end, int64(l))
		part := values[list+int(from) : list+int(to)]
		copy(values[kept:kept+len(part)], part)
		lengths[row] = int32(len(part))
		kept += len(part)
		list += int(l)
	}
	return kept, nil
}

// Pad writes the lists to dst, each followed by pad until it has length elements, and sets lengths to length. No list
// may be longer than that, dst has length elements for each, and is not the memory of values.
func Pad[T any](dst []T, lengths []int32, values []T, length int64, pad T) error {
	if err := checkLengths(lengths, len(values)); err != nil {
		return err
	}
	if length < 0 || length > MaxLength || int64(len(dst)) != length*int64(len(lengths)) {
		return fmt.Errorf("room for %d values, want %d for each of %d lists: %w", len(dst), length, len(lengths), ErrLengths)
	}
	for row, l := range lengths {
		if int64(l) > length {
			return fmt.Errorf("row %d has length %d, want at most %d: %w", row, l, length, ErrLengths)
		}
	}
	for row, l := range lengths {
		list := dst[:length]
		rest := list[copy(list, values[:l]):]
		for i := range rest {
			rest[i] = pad
		}
		dst, values, lengths[row] = dst[length:], values[l:], int32(length)
	}
	return nil
}
