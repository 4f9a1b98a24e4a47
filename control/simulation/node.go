package simulation

import (
	"errors"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// A node sends a heartbeat every beat. A leader takes a node for dead that has been silent for deadAfter.
const (
	beat      = time.Second
	deadAfter = 5 * time.Second
)

// ticket is what a leader signs for a lease: a node gives the fragments of the lease to the session of the ticket.
type ticket struct {
	fence       uint64 // The fence of the leader that signed the ticket.
	incarnation int    // The incarnation of the node.
	job         string
	session     ledger.Session
	from, to    uint64
}

// sign signs tickets of leases.
func (t *term) sign(job string, session ledger.Session, grants []ledger.Grant) {
	for _, g := range grants {
		if n := t.nodes[g.Drive.Node]; n != nil {
			t.member.world.tickets[g.ID] = ticket{t.fence, n.incarnation, job, session, g.From, g.To}
		}
	}
}

// node is a model of a storage node with one drive, or of a worker without data. The tests run one suite against the
// model and against host/node.
type node struct {
	world       *World
	name        string
	holds       map[string]bool // The names of the partitions that the node holds.
	alive       bool
	cut         bool // The links to the members are cut.
	incarnation int
	draining    bool
	reach       ledger.Reach
	serves      *ledger.RankRef // A trainer's own CPUs serve this rank alone. Nil means every rank.
	fence       uint64          // The greatest fence of a leader that has answered. The node keeps it when it dies.

	// The node forgets these when it dies.
	heard    uint64                            // The fence of the leader that has answered last. 0 means none.
	refused  map[uint64]bool                   // The leases that returned to the ledger.
	open     map[uint64]bool                   // The leases of which the node has served fragments.
	sessions map[ledger.RankRef]ledger.Session // The last session of each rank that showed a ticket.
	prepared map[dataset.Digest]bool           // The editions that the node serves.
}

// addNode adds a node, or a worker of a reach, to the world.
func (w *World) addNode(name string, reach ledger.Reach, serves *ledger.RankRef) {
	w.nodes = append(w.nodes, &node{world: w, name: name, holds: map[string]bool{}, reach: reach, serves: serves})
}

// start starts the node if it is dead.
func (n *node) start() {
	if n.alive {
		return
	}
	n.alive, n.heard, n.refused, n.open = true, 0, map[uint64]bool{}, map[uint64]bool{}
	n.sessions = map[ledger.RankRef]ledger.Session{}
	n.prepared = map[dataset.Digest]bool{}
	n.incarnation++
	n.sendHeartbeat(n.incarnation)
}

// sendHeartbeat sends a heartbeat to the members. Only the leader uses the heartbeat.
func (n *node) sendHeartbeat(incarnation int) {
	if !n.alive || n.incarnation != incarnation {
		return
	}
	r := n.report()
	for _, m := range n.world.members {
		if !n.world.faulty() && m.term == nil {
			continue // The node knows that the member does not lead.
		}
		n.world.send("heartbeat of "+n.name, func() bool { return n.cut || m.away() },
			func() { m.heartbeat(n, incarnation, r) })
	}
	n.world.after(beat, n.name+" beats", func() { n.sendHeartbeat(incarnation) })
}

// crashNode kills a node, or changes whether the node drains.
func (w *World) crashNode() {
	n := w.nodes[w.random.IntN(len(w.nodes))]
	if w.random.IntN(3) == 0 {
		n.draining = !n.draining
		w.after(w.between(time.Second, 20*time.Second), n.name+" drains no more", func() { n.draining = false })
		return
	}
	n.die(w.between(100*time.Millisecond, 30*time.Second))
}

// die kills the node and starts it again later.
func (n *node) die(down time.Duration) {
	n.alive, n.prepared = false, nil
	n.world.note("%s dies", n.name)
	n.world.after(down, n.name+" is started", n.start)
}

var (
	// errFetch reports that a node did not serve a fragment.
	errFetch = errors.New("the node gives no fragment")
	// errBusy reports that a node would serve a fragment later.
	errBusy = errors.New("the node is busy")
)

// answered takes the answer of a leader to a heartbeat: the leases that returned to the ledger. The node does not
// believe a former leader.
func (n *node) answered(fence uint64, returned []uint64) {
	if !n.alive || fence < n.fence {
		return
	}
	n.fence, n.heard = fence, fence
	for _, id := range returned {
		n.refused[id] = true
	}
}

// entitles reports whether a ticket entitles to fragments of its lease.
func (n *node) entitles(lease uint64, t ticket) bool {
	if t.fence > n.heard || t.incarnation != n.incarnation {
		return false
	}
	rank := ledger.RankRef{Job: t.job, Rank: t.session.Rank}
	switch last := n.sessions[rank]; {
	case t.session.Fence < last.Fence, t.session.Fence == last.Fence && t.session.Generation < last.Generation:
		return false
	default:
		n.sessions[rank] = t.session
	}
	return !n.refused[lease]
}

// serve returns the content of a fragment of a lease.
func (n *node) serve(e *epoch, lease, number uint64) (string, error) {
	t := n.world.tickets[lease]
	switch {
	case !n.alive, n.world.faulty() && n.world.chance(n.world.faults.fetchFails), !n.entitles(lease, t),
		!n.prepared[e.edition.digest], n.draining && !n.open[lease]:
		return "", errFetch
	case number < t.from || number >= t.to:
		n.world.fail("%s is asked for fragment %d of a lease of [%d, %d)", n.name, number, t.from, t.to)
		return "", errFetch
	case n.world.faulty() && n.world.chance(n.world.faults.fetchFails):
		return "", errBusy
	case n.reach == ledger.Held && !n.holds[e.edition.words[e.partitionOf(number)]]:
		n.world.fail("%s is granted fragment %d of epoch %d, whose partition it does not hold", n.name, number, e.number)
	}
	n.open[lease] = true
	if n.world.mutant == WrongContent && number%7 == 3 {
		number++
	}
	return e.content(number), nil
}

// nodeOf finds a node by its name.
func (w *World) nodeOf(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	panic("a lease on no node") // This package has a fault.
}

// partitionOf returns the place of a fragment's partition.
func (e *epoch) partitionOf(fragment uint64) int {
	f, err := e.plan.Fragment(fragment)
	if err != nil {
		return 0
	}
	return f.Partition
}
