package source

import (
	"slices"
	"sort"
)

// interval is the bytes [from, to) of a source.
type interval struct{ from, to int64 }

// intervals are sorted, and neither touch nor overlap.
type intervals struct {
	list  []interval
	total int64 // bytes
}

// add adds bytes, each of which counts once.
func (s *intervals) add(from, to int64) {
	if from >= to {
		return
	}
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].to >= from })
	j := i
	for j < len(s.list) && s.list[j].from <= to {
		from, to = min(from, s.list[j].from), max(to, s.list[j].to)
		s.total -= s.list[j].to - s.list[j].from
		j++
	}
	s.list = slices.Replace(s.list, i, j, interval{from, to})
	s.total += to - from
}
