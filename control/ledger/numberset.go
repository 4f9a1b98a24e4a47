package ledger

import (
	"slices"
	"sort"

	"github.com/millrace/millrace/sdk/dataset"
)

// set holds numbers as runs: ascending, neither empty nor touching.
type set []dataset.Range

// indexAfter returns the index of the first run that ends after n.
func (s set) indexAfter(n uint64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].To > n })
}

// union returns the set and [from, to) together. It may reuse s.
func (s set) union(from, to uint64) set {
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

// gaps returns the parts of [from, to) that the set does not have.
func (s set) gaps(from, to uint64) set {
	var out set
	for i := s.indexAfter(from); from < to; i++ {
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

// within returns the parts of [from, to) that the set has.
func (s set) within(from, to uint64) set {
	var out set
	for i := s.indexAfter(from); i < len(s) && s[i].From < to; i++ {
		out = append(out, dataset.Range{From: max(from, s[i].From), To: min(to, s[i].To)})
	}
	return out
}

// cut returns the numbers below at, and the others. It may reuse s.
func (s set) cut(at uint64) (below, above set) {
	i := s.indexAfter(at)
	if below = s[:i:i]; i < len(s) && s[i].From < at {
		below, s[i].From = append(below, dataset.Range{From: s[i].From, To: at}), at
	}
	return below, s[i:]
}

// count returns how many numbers of [from, to) the set has.
func (s set) count(from, to uint64) uint64 {
	var n uint64
	for i := s.indexAfter(from); i < len(s) && s[i].From < to; i++ {
		n += min(to, s[i].To) - max(from, s[i].From)
	}
	return n
}

// covers reports whether the set has all of [from, to).
func (s set) covers(from, to uint64) bool {
	i := s.indexAfter(from)
	return from == to || i < len(s) && s[i].From <= from && to <= s[i].To
}

// appendRun appends a run that does not begin before the end of the last run. It extends the last run if both touch.
func (s set) appendRun(from, to uint64) set {
	if from >= to {
		return s
	}
	if n := len(s); n > 0 && s[n-1].To == from {
		s[n-1].To = to
		return s
	}
	return append(s, dataset.Range{From: from, To: to})
}

// ofToken returns a token's numbers.
func ofToken(t *dataset.Token) set {
	if t == nil {
		return nil
	}
	s := make(set, 0, len(t.Ranges)+1).appendRun(0, t.Mark)
	return append(s, t.Ranges...)
}

// token returns the set as a token of a job's epoch.
func (s set) token(job dataset.Digest, epoch uint64) dataset.Token {
	t := dataset.Token{Job: job, Epoch: epoch}
	if len(s) > 0 && s[0].From == 0 {
		t.Mark, s = s[0].To, s[1:]
	}
	t.Ranges = slices.Clone([]dataset.Range(s))
	return t
}
