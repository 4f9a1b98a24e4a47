package splits

import (
	"cmp"
	"slices"
)

// State is what a Table has open, for a log or a test.
type State struct {
	Splits  []Split // in the order of their keys
	Writing int     // responses that are being written
	Waiting int     // runs that wait for a place on a drive
}

// Split is an open split.
type Split struct {
	Key
	Open  bool   // its stream is
	Next  uint64 // number that its stream gives next
	Ready int    // mini-batches made and not taken
	Asked int    // numbers that requests wait for
	Out   int    // mini-batches taken and not given back
}

// State tells what is open.
func (s *Table) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Writing: len(s.out)}
	for k, r := range s.open {
		st.Splits = append(st.Splits, Split{Key: k, Open: r.source, Next: r.next, Ready: len(r.ready), Asked: len(r.waiting), Out: r.out})
	}
	for _, d := range s.demand {
		st.Waiting += d.wanted
	}
	slices.SortFunc(st.Splits, func(a, b Split) int {
		return cmp.Or(slices.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Drive, b.Drive), cmp.Compare(a.Place, b.Place))
	})
	return st
}
