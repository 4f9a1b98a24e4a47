package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/control/ledger"
)

// A node sends a heartbeat every beat. A leader takes a node for dead that has been silent for deadAfter.
const (
	beat      = time.Second
	deadAfter = 5 * time.Second
)

// node is a model of a storage node with one drive.
type node struct {
	world       *World
	name        string
	holds       map[string]bool // The names of the partitions that the node holds.
	alive       bool
	cut         bool // The links to the members are cut.
	incarnation int
	draining    bool
	refused     map[uint64]bool // The leases that returned to the ledger.
}

func newNode(w *World, i int) *node {
	n := &node{world: w, name: fmt.Sprintf("node%d", i), holds: map[string]bool{}}
	n.start()
	return n
}

// start starts the node if it is dead.
func (n *node) start() {
	if n.alive {
		return
	}
	n.alive, n.refused = true, map[uint64]bool{}
	n.incarnation++
	n.sendHeartbeat(n.incarnation)
}

// sendHeartbeat sends a heartbeat to the members. Only the leader uses the heartbeat.
func (n *node) sendHeartbeat(incarnation int) {
	if !n.alive || n.incarnation != incarnation {
		return
	}
	for _, m := range n.world.members {
		if !n.world.faulty() && m.term == nil {
			continue // The node knows that the member does not lead.
		}
		n.world.send("heartbeat of "+n.name, func() bool { return n.cut || m.away() }, func() { m.heartbeat(n, incarnation) })
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
	n.alive = false
	w.note("%s dies", n.name)
	w.after(w.between(100*time.Millisecond, 30*time.Second), n.name+" is started", n.start)
}

// errFetch reports that a node did not serve a mini-batch.
var errFetch = errors.New("the node gives no mini-batch")

// serve returns the content of a mini-batch of a lease.
func (n *node) serve(e *epoch, g ledger.Grant, number uint64) (string, error) {
	switch {
	case !n.alive, n.refused[g.ID], n.world.faulty() && n.world.chance(n.world.faults.fetchFails):
		return "", errFetch
	case !n.holds[e.edition.words[e.partitionOf(number)]]:
		n.world.fail("%s is granted mini-batch %d of epoch %d, whose partition it does not hold", n.name, number, e.number)
	}
	if n.world.mutants.has(WrongContent) && number%7 == 3 {
		number++
	}
	return e.content(number), nil
}

// partitionOf returns the place of a mini-batch's partition.
func (e *epoch) partitionOf(number uint64) int {
	b, err := e.plan.MiniBatch(number)
	if err != nil {
		return 0
	}
	return b.Partition
}
