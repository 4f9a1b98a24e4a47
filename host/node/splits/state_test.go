package splits

import (
	"cmp"
	"slices"
)

// tableState lists the open splits of a Table.
type tableState struct {
	Splits  []splitState // in the order of their keys
	Writing int          // responses that are being written
	Waiting int          // splits that wait for a stream
}

// splitState is an open split.
type splitState struct {
	Key
	Streaming bool   // its stream is open
	Next      uint64 // number that its stream makes next
	Ready     int    // mini-batches made and not taken
	Asked     int    // numbers that requests wait for
	Lent      int    // mini-batches taken and not given back
}

// state returns the open splits.
func (t *Table) state() tableState {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := tableState{Writing: len(t.responses)}
	for k, s := range t.open {
		st.Splits = append(st.Splits, splitState{
			Key: k, Streaming: s.streaming, Next: s.next, Ready: len(s.ready), Asked: len(s.waiting), Lent: s.lent,
		})
	}
	for _, d := range t.demand {
		st.Waiting += d.waiting
	}
	slices.SortFunc(st.Splits, func(a, b splitState) int {
		return cmp.Or(slices.Compare(a.Job[:], b.Job[:]), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Drive, b.Drive),
			cmp.Compare(a.Place, b.Place))
	})
	return st
}
