package idlisttransform

import (
	"errors"
	"fmt"
	"slices"
)

// ErrLengths says that lengths are negative, differ in number, or do not add up to the ids.
var ErrLengths = errors.New("id_list_transform: lengths do not match the ids")

// maxComparisons is the most comparisons of ids for which two lists are compared id by id.
const maxComparisons = 512

// Input is a list of ids a row, one behind the other.
type Input struct {
	Lengths []int32
	IDs     []int64
}

// Intersection makes intersections. The zero value works.
type Intersection struct {
	sorted []int64 // the second list of a row, in ascending order, each id once
	taken  []bool  // It says for each of sorted that the id is in the result.
}

// Lists appends the intersections of all rows to ids, and their lengths to lengths. After an error it has appended
// nothing.
func (x *Intersection) Lists(lengths []int32, ids []int64, a, b Input) ([]int32, []int64, error) {
	if err := checkInputs(a, b); err != nil {
		return lengths, ids, err
	}
	fromA, fromB := 0, 0
	for row, n := range a.Lengths {
		listA, listB := a.IDs[fromA:][:n], b.IDs[fromB:][:b.Lengths[row]]
		fromA, fromB = fromA+len(listA), fromB+len(listB)
		before := len(ids)
		if len(listA)*len(listB) <= maxComparisons {
			ids = appendCompared(ids, listA, listB)
		} else {
			ids = x.appendSearched(ids, listA, listB)
		}
		lengths = append(lengths, int32(len(ids)-before))
	}
	return lengths, ids, nil
}

// appendCompared appends the intersection of two short lists.
func appendCompared(ids, a, b []int64) []int64 {
	before := len(ids)
	for _, id := range a {
		if slices.Contains(b, id) && !slices.Contains(ids[before:], id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// appendSearched appends the intersection of two lists, whose second it sorts.
func (x *Intersection) appendSearched(ids, a, b []int64) []int64 {
	x.sorted = append(x.sorted[:0], b...)
	slices.Sort(x.sorted)
	x.sorted = slices.Compact(x.sorted)
	x.taken = slices.Grow(x.taken[:0], len(x.sorted))[:len(x.sorted)]
	clear(x.taken)
	for _, id := range a {
		if i, found := slices.BinarySearch(x.sorted, id); found && !x.taken[i] {
			x.taken[i] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// checkInputs checks the lengths of both inputs.
func checkInputs(a, b Input) error {
	if len(a.Lengths) != len(b.Lengths) {
		return fmt.Errorf("%d rows and %d: %w", len(a.Lengths), len(b.Lengths), ErrLengths)
	}
	for _, in := range []Input{a, b} {
		var sum int64
		for row, n := range in.Lengths {
			if n < 0 {
				return fmt.Errorf("row %d has length %d: %w", row, n, ErrLengths)
			}
			sum += int64(n)
		}
		if sum != int64(len(in.IDs)) {
			return fmt.Errorf("lengths add up to %d, there are %d ids: %w", sum, len(in.IDs), ErrLengths)
		}
	}
	return nil
}
