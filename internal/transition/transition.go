// Package transition holds the tables of the state machines: which state follows which, on which event. Each machine of
// the tree has one Table, and one function that changes its state, which asks the table. Package statediagram draws a
// table in the documentation and checks it.
//
// A Table is data and is not changed after it was made; its methods are safe for concurrent use.
package transition

import "cmp"

// Table has a row for every state of a machine. The row says which state follows on which event; an event that is not
// in the row does not change the state. A state with an empty row is final.
type Table[S, E cmp.Ordered] map[S]map[E]S

// Next returns the state that follows from on an event. It reports whether the table allows the transition; if not, the
// machine stays as it is.
func (t Table[S, E]) Next(from S, on E) (to S, ok bool) {
	to, ok = t[from][on]
	return to, ok
}

// Final reports whether no event leads out of a state.
func (t Table[S, E]) Final(s S) bool { return len(t[s]) == 0 }
