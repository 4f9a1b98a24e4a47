package numberset

import (
	"slices"
	"sort"

	"github.com/millrace/millrace/sdk/dataset"
)

// Runs holds numbers as runs: ascending, neither empty nor touching.
type Runs []dataset.Range

// IndexAfter returns the index of the first run that ends after n.
func (s Runs) IndexAfter(n uint64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].To > n })
}

// Union returns the set and [from, to) together. It may reuse s.
func (s Runs) Union(from, to uint64) Runs {
	if from >= to {
		return s
	}
	i := sort.Search(len(s), func(i int) bool { return s[i].To >= from })
	j := i
	for j < len(s) && s[j].From <= to {
		from, to = min(from, s[j].From), max(to, s[j].To)
		j++
	}
	return slices.Replace(s, i, j, dataset.Range{From: from, To: to})
}

// Gaps returns the parts of [from, to) that the set does not have.
func (s Runs) Gaps(from, to uint64) Runs {
	var out Runs
	for i := s.IndexAfter(from); from < to; i++ {
		if i == len(s) || s[i].From >= to {
			return append(out, dataset.Range{From: from, To: to})
		}
		if s[i].From > from {
			out = append(out, dataset.Range{From: from, To: s[i].From})
		}
		from = s[i].To
	}
	return out
}

// Within returns the parts of [from, to) that the set has.
func (s Runs) Within(from, to uint64) Runs {
	var out Runs
	for i := s.IndexAfter(from); from < to && i < len(s) && s[i].From < to; i++ {
		out = append(out, dataset.Range{From: max(from, s[i].From), To: min(to, s[i].To)})
	}
	return out
}

// Cut returns the numbers below at, and the others. It may reuse s.
func (s Runs) Cut(at uint64) (below, above Runs) {
	i := s.IndexAfter(at)
	if below = s[:i:i]; i < len(s) && s[i].From < at {
		below, s[i].From = append(below, dataset.Range{From: s[i].From, To: at}), at
	}
	return below, s[i:]
}

// Count returns how many numbers of [from, to) the set has.
func (s Runs) Count(from, to uint64) uint64 {
	var n uint64
	for i := s.IndexAfter(from); i < len(s) && s[i].From < to; i++ {
		n += min(to, s[i].To) - max(from, s[i].From)
	}
	return n
}

// Covers reports whether the set has all of [from, to).
func (s Runs) Covers(from, to uint64) bool {
	i := s.IndexAfter(from)
	return from == to || i < len(s) && s[i].From <= from && to <= s[i].To
}

// Append appends a run that does not begin before the end of the last run. It extends the last run if both touch.
func (s Runs) Append(from, to uint64) Runs {
	if from >= to {
		return s
	}
	if n := len(s); n > 0 && s[n-1].To == from {
		s[n-1].To = to
		return s
	}
	return append(s, dataset.Range{From: from, To: to})
}

// Convert returns the set of what each run becomes. Runs keep their order.
func (s Runs) Convert(become func(dataset.Range) dataset.Range) Runs {
	out := make(Runs, 0, len(s))
	for _, r := range s {
		to := become(r)
		out = out.Append(to.From, to.To)
	}
	return out
}

// EndOfMissing returns the least end at or above from so that [from, end) has n numbers that are not in the set.
func (s Runs) EndOfMissing(from, n uint64) uint64 {
	for i := s.IndexAfter(from); n > 0; i++ {
		if i == len(s) {
			return from + n
		}
		if s[i].From > from {
			free := s[i].From - from
			if n <= free {
				return from + n
			}
			n -= free
		}
		from = s[i].To
	}
	return from
}

// OfToken returns a token's numbers.
func OfToken(t *dataset.Token) Runs {
	if t == nil {
		return nil
	}
	s := make(Runs, 0, len(t.Ranges)+1).Append(0, t.Mark)
	return append(s, t.Ranges...)
}

// Token returns the set as a token of a job's epoch.
func (s Runs) Token(job dataset.Digest, epoch uint64) dataset.Token {
	t := dataset.Token{Job: job, Epoch: epoch}
	if len(s) > 0 && s[0].From == 0 {
		t.Mark, s = s[0].To, s[1:]
	}
	t.Ranges = slices.Clone([]dataset.Range(s))
	return t
}
