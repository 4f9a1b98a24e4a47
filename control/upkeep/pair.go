package upkeep

import (
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// pair is an edition on a node: whether the node is prepared for it, and the call that is under way.
type pair struct {
	digest     dataset.Digest
	call       uint64 // the number of the call that is under way; 0: none is
	stale      bool   // An earlier incarnation of the node was called: the answer says nothing of the present one.
	inTurn     bool   // The call is the one that the node's other calls wait for.
	prepared   bool
	listed     bool // A heartbeat has listed the edition since the node was prepared.
	tried      bool // The present incarnation has answered once, or could not be reached.
	wanted     bool // The node is to be prepared for the edition.
	last       Result
	repeatAt   time.Time // A call that failed is repeated at this time.
	ownFiles   []string
	waiting    []uint64 // The calls of Ask that wait for the answer.
	roomNeeded bool     // The node refused the job for lack of room, and NeedRoom has not been reported.
}

// due reports whether the node may be called for the edition without a job that waits for the answer.
func (p *pair) due(now time.Time) bool {
	return p.wanted && !p.prepared && p.call == 0 && p.last.Outcome != Refused && !now.Before(p.repeatAt)
}

// tryAgain has the edition prepared without a pause, even after a refusal.
func (p *pair) tryAgain() {
	p.repeatAt = time.Time{}
	if p.last.Outcome == Refused {
		p.last.Outcome = Failed // The words of the refusal stay until the next answer.
	}
}

// forgetIncarnation begins a new incarnation of the node. It reports whether anything of the pair is left.
func (p *pair) forgetIncarnation() bool {
	*p = pair{digest: p.digest, call: p.call, stale: p.call != 0, waiting: p.waiting}
	return p.call != 0 || len(p.waiting) > 0
}

// pairOf returns the pair of a digest. It makes the pair if there is none.
func (n *node) pairOf(d dataset.Digest) *pair {
	p := n.pairs[d]
	if p == nil {
		p = &pair{digest: d}
		n.pairs[d] = p
	}
	return p
}

// sorted returns the pairs in the order in which their jobs were submitted, and then those that no job uses.
func (n *node) sorted(t *jobTable) []*pair {
	place := func(p *pair) int {
		if i, ok := t.users[p.digest]; ok {
			return i
		}
		return len(t.jobs)
	}
	list := make([]*pair, 0, len(n.pairs))
	for _, p := range n.pairs {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *pair) int {
		if order := place(a) - place(b); order != 0 {
			return order
		}
		return slices.Compare(a.digest[:], b.digest[:])
	})
	return list
}
