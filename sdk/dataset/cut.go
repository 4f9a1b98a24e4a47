package dataset

import (
	"fmt"
	"slices"
)

const (
	// maxGroupRows is the most rows of a split that is a row group of its own.
	maxGroupRows = 4 << 20
	// MaxSplitFragments is the most fragments of a split: the end of a row group can make a split longer by half.
	MaxSplitFragments = 2 * MaxSplitBatches
)

// cutter cuts partitions into splits as the package comment says for BoundaryNone.
type cutter struct {
	splitRows int64 // The rows of a split that ends at no row group's end.
	half      int64 // How far a row group's end may be from there.
	largest   int64 // The most rows of a split that is a row group of its own, or a part of one.
	limit     int   // The most splits of a plan.
}

// newCutter returns the cutter of a plan of at most the given number of splits.
func newCutter(o Options, most int) cutter {
	splitRows := int64(o.SplitBatches) * int64(o.Batch)
	alone := min(maxGroupRows, int64(MaxSplitFragments-1)*int64(o.Batch))
	return cutter{splitRows: splitRows, half: splitRows / 2, largest: max(splitRows, alone), limit: most}
}

// cut appends the end of each split of a partition. Without row groups every split but the last has splitRows.
func (c cutter) cut(ends []int64, rows int64, groups []int64) ([]int64, error) {
	longest, expected := c.splitRows, rows/c.splitRows
	if len(groups) > 0 {
		longest, expected = max(c.splitRows+c.half, c.largest), min(expected, int64(len(groups)))
	}
	// Ends that do not fit are refused before the memory of all the others is spent on them.
	if rows/longest > int64(c.limit-len(ends)) {
		return nil, tooManySplits(c.limit)
	}
	ends = slices.Grow(ends, int(expected))
	groupEnd, next := int64(0), 0 // groups before next end at groupEnd
	for at := int64(0); at < rows; {
		for groupEnd <= at && next < len(groups) {
			groupEnd += groups[next]
			next++
		}
		if next == 0 {
			at += min(c.splitRows, rows-at)
		} else {
			at = c.endOfSplit(at, rows, groupEnd, groups[next-1:])
		}
		if len(ends) == c.limit {
			return nil, tooManySplits(c.limit)
		}
		ends = append(ends, at)
	}
	return ends, nil
}

// endOfSplit returns the end of the split that begins at a row of the first row group, which ends at groupEnd.
func (c cutter) endOfSplit(at, rows, groupEnd int64, groups []int64) int64 {
	if c.isLarge(groups[0]) {
		return min(groupEnd, at+min(c.largest, rows-at))
	}
	end, distance := at+min(c.splitRows, rows-at), c.half+1
	for i := 0; groupEnd-at <= c.splitRows+c.half; i++ {
		if d := max(groupEnd-at-c.splitRows, c.splitRows-(groupEnd-at)); d < distance {
			end, distance = groupEnd, d
		}
		if i+1 == len(groups) {
			break
		}
		if c.isLarge(groups[i+1]) {
			return min(end, groupEnd)
		}
		groupEnd += groups[i+1]
	}
	return end
}

// isLarge reports whether a row group has more rows than one and a half splits.
func (c cutter) isLarge(rows int64) bool { return rows > c.splitRows+c.half }

// tooManySplits returns the error of a plan that has more splits than most.
func tooManySplits(most int) error {
	return fmt.Errorf("%w: more than %d splits: raise batch or split_batches", ErrOptions, most)
}
