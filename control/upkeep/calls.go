package upkeep

import (
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// dismissal is a call of Dismiss that waits for nodes.
type dismissal struct {
	call   uint64
	digest dataset.Digest
}

// Ask has a node prepared for an edition at once, because a job waits for it. Reply with this number has the answer. A
// call that is under way is not repeated. The number is the owner's.
func (k *Keeper) Ask(call uint64, name string, d dataset.Digest) {
	n := k.nodes[name]
	if n == nil || !n.alive {
		k.emit(Reply{call, &AwayError{name}})
		return
	}
	p := n.pairOf(d)
	p.wanted = true
	p.waiting = append(p.waiting, call)
	k.dirty[name] = true
}

// Dropped records that a job uses an edition no more. Nodes forget the edition unless another job uses the digest.
func (k *Keeper) Dropped(d dataset.Digest) {
	for name, n := range k.nodes {
		if n.pairs[d] != nil || slices.Contains(n.report.Jobs, d) {
			k.dirty[name] = true
		}
	}
}

// Dismiss does what Dropped does. Reply with this number follows when every node has been asked to forget the edition,
// or when another job uses the digest. A node that could not be reached is asked again later. The number is the
// owner's.
func (k *Keeper) Dismiss(call uint64, d dataset.Digest) {
	k.Dropped(d)
	k.recheck = true
	k.awaited = append(k.awaited, dismissal{call, d})
}

// replyDismissals answers the calls of Dismiss that wait for no node any more.
func (k *Keeper) replyDismissals(t *jobTable) {
	k.awaited = slices.DeleteFunc(k.awaited, func(w dismissal) bool {
		if t.user(w.digest) == "" {
			for _, n := range k.nodes {
				if p := n.pairs[w.digest]; n.alive && p != nil && p.call != 0 {
					return false
				}
			}
		}
		k.emit(Reply{Call: w.call})
		return true
	})
}

// reply answers the calls that wait for a pair.
func (k *Keeper) reply(p *pair, err error) {
	for _, call := range p.waiting {
		k.emit(Reply{call, err})
	}
	p.waiting = nil
}

// take ends a call of a node for a digest. It returns nil if the answer is of no use: the call is not known any more,
// or an earlier incarnation of the node was called.
func (k *Keeper) take(name string, d dataset.Digest, call uint64) (*node, *pair) {
	n := k.nodes[name]
	if n == nil {
		return nil, nil
	}
	p := n.pairs[d]
	if p == nil || p.call != call {
		return nil, nil
	}
	k.dirty[name] = true
	if p.inTurn {
		n.turn = false
	}
	stale := p.stale
	p.call, p.stale, p.inTurn = 0, false, false
	if !stale {
		return n, p
	}
	if !n.alive {
		k.reply(p, &AwayError{name})
		delete(n.pairs, d)
	}
	return nil, nil
}

// Prepared takes the answer to Prepare.
func (k *Keeper) Prepared(e Prepare, r Result, now time.Time) {
	n, p := k.take(e.Node, e.Digest, e.Call)
	if p == nil {
		return
	}
	p.tried, p.last = true, r
	if r.Outcome == Done {
		p.prepared, p.ownFiles = true, r.OwnFiles
		n.enlist = true
		if len(r.OwnFiles) > 0 {
			n.listed = false // The ledger learns of the files when the drives are listed.
		}
	} else {
		p.repeatAt = now.Add(k.config.Retry)
		p.roomNeeded = r.Outcome == NoRoom
	}
	k.reply(p, r.Err)
}

// Finished takes the answer to Finish. If the node has not forgotten the edition, its next heartbeat lists the digest,
// and the node is called again.
func (k *Keeper) Finished(e Finish) {
	n, p := k.take(e.Node, e.Digest, e.Call)
	if p == nil {
		return
	}
	if p.prepared, p.listed = false, false; len(p.ownFiles) > 0 {
		p.ownFiles, n.listed = nil, false
	}
	n.report.Jobs = slices.DeleteFunc(slices.Clone(n.report.Jobs), func(d dataset.Digest) bool { return d == e.Digest })
}

// Drained takes the answer to Drain.
func (k *Keeper) Drained(e Drain, r Result, now time.Time) {
	n := k.nodes[e.Node]
	if n == nil || n.drain.call != e.Call {
		return
	}
	k.dirty[n.name] = true
	stale := e.Incarnation != n.report.Incarnation
	n.drain.call, n.drain.asked, n.drain.unsure = 0, e.Drain, stale || r.Outcome != Done
	if !stale && r.Outcome != Done {
		n.drain.repeatAt = now.Add(k.config.Retry)
	}
}
