package dataset

import (
	"slices"
	"sort"
)

// Range is the mini-batch numbers [From, To). A list of ranges, in this package, is ascending, and its ranges neither
// are empty nor touch.
type Range struct{ From, To uint64 }

// InsertNumber adds a number to a list of ranges. It may change the list and returns the new one.
func InsertNumber(ranges []Range, number uint64) []Range {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].From > number })
	touchesLeft := i > 0 && ranges[i-1].To >= number
	touchesRight := i < len(ranges) && ranges[i].From == number+1
	switch {
	case touchesLeft && ranges[i-1].To > number: // it is in the list already
	case touchesLeft && touchesRight:
		ranges[i-1].To = ranges[i].To
		ranges = slices.Delete(ranges, i, i+1)
	case touchesLeft:
		ranges[i-1].To++
	case touchesRight:
		ranges[i].From--
	default:
		ranges = slices.Insert(ranges, i, Range{number, number + 1})
	}
	return ranges
}

// UnionRanges returns the ranges of the numbers that are in a, in b, or in both. It leaves empty ranges out and joins
// ranges that touch, so a and b need only ascend.
func UnionRanges(a, b []Range) []Range {
	var union []Range
	for len(a) > 0 || len(b) > 0 {
		var next Range
		if len(b) == 0 || (len(a) > 0 && a[0].From <= b[0].From) {
			next, a = a[0], a[1:]
		} else {
			next, b = b[0], b[1:]
		}
		switch last := len(union) - 1; {
		case next.From >= next.To:
		case last >= 0 && next.From <= union[last].To:
			union[last].To = max(union[last].To, next.To)
		default:
			union = append(union, next)
		}
	}
	return union
}

// IntersectRanges returns the ranges of the numbers that are both in a and in b.
func IntersectRanges(a, b []Range) []Range {
	var both []Range
	for len(a) > 0 && len(b) > 0 {
		if from, to := max(a[0].From, b[0].From), min(a[0].To, b[0].To); from < to {
			both = append(both, Range{From: from, To: to})
		}
		if a[0].To < b[0].To {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}

// ComplementRanges returns the ranges of the numbers below total that are not in the list.
func ComplementRanges(ranges []Range, total uint64) []Range {
	var gaps []Range
	end := uint64(0)
	for _, r := range ranges {
		if end < r.From {
			gaps = append(gaps, Range{From: end, To: r.From})
		}
		end = r.To
	}
	if end < total {
		gaps = append(gaps, Range{From: end, To: total})
	}
	return gaps
}
