package dataset

import "fmt"

const (
	// maxGroupRows is the most rows of a split that is a row group of its own.
	maxGroupRows = 4 << 20
	// MaxSplitFragments is the most fragments of a split: the end of a row group can make a split longer by half.
	MaxSplitFragments = 2 * MaxSplitBatches
)

// cutter cuts partitions into splits whose ends are, where the package comment says so, ends of row groups.
type cutter struct {
	splitRows int64 // about so many rows has a split
	largest   int64 // rows of a split that is a row group of its own
	limit     int   // ends, beyond which cut stops
}

// newCutter returns the cutter of a plan.
func newCutter(o Options) cutter {
	splitRows := int64(o.SplitBatches) * int64(o.Batch)
	alone := min(maxGroupRows, int64(MaxSplitFragments-1)*int64(o.Batch))
	return cutter{splitRows: splitRows, largest: max(splitRows, alone), limit: MaxSplits}
}

// cut appends the end of each split of a partition. Without row groups every split but the last has splitRows.
func (c cutter) cut(ends []int64, rows int64, groups []int64) ([]int64, error) {
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
			return nil, fmt.Errorf("%w: more than %d splits: raise batch or split_batches", ErrOptions, c.limit)
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
	half := c.splitRows / 2
	end, distance := at+min(c.splitRows, rows-at), half+1
	for i := 0; groupEnd-at <= c.splitRows+half; i++ {
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
func (c cutter) isLarge(rows int64) bool { return rows > c.splitRows+c.splitRows/2 }
