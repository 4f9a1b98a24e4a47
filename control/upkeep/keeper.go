package upkeep

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// DefaultRetry is the default of Config.Retry.
const DefaultRetry = 2 * time.Second

// Config holds the settings of a Keeper, and its questions to the owner.
type Config struct {
	Jobs         func() []Job                                 // the jobs that have not ended, the earliest first
	Holds        func(node string, of *dataset.Manifest) bool // whether a node holds a partition of a manifest
	Retry        time.Duration                                // before a call that failed is repeated; 0: DefaultRetry
	KeepReturned time.Duration                                // how long a returned lease is kept for its node
}

// Keeper holds what the owner knows of every node beside the fleet.
type Keeper struct {
	config   Config
	nodes    map[string]*node
	dirty    map[string]bool // the nodes to review
	calls    uint64          // calls numbers the calls of nodes.
	repeatAt time.Time       // the next time at which a call may be repeated; zero: none is
	awaited  []dismissal
	recheck  bool // A call of Dismiss may be answered.
	effects  []Effect
}

// node is what is known of a node, and what it was asked.
type node struct {
	name   string
	alive  bool
	known  bool   // It has reported its partitions and drives since it joined.
	scan   bool   // What the node is wanted for is to be determined again.
	report Report // the last one
	pairs  map[dataset.Digest]*pair
	turn   bool // A call is under way that no job waits for. The next one follows its answer.

	drives map[string]DriveState // by name: the state that the ledger knows
	listed bool                  // The ledger knows the drives as they are.
	enlist bool                  // Workers are to be enlisted for the jobs that the node is prepared for.

	drain    drain
	returned returns
}

// drain is what a node was asked about new splits.
type drain struct {
	asked    bool   // The node was asked to refuse them.
	unsure   bool   // The answer to the last call was lost, or an earlier incarnation was called.
	call     uint64 // the number of the call that is under way; 0: none is
	repeatAt time.Time
}

// needsCall reports whether the node has to be asked once more.
func (d *drain) needsCall(wanted bool) bool { return d.call == 0 && (d.unsure || d.asked != wanted) }

// New makes a keeper that knows no node.
func New(c Config) *Keeper {
	if c.Retry <= 0 {
		c.Retry = DefaultRetry
	}
	return &Keeper{config: c, nodes: map[string]*node{}, dirty: map[string]bool{}}
}

func (k *Keeper) emit(e Effect) { k.effects = append(k.effects, e) }

func (k *Keeper) nextCall() uint64 {
	k.calls++
	return k.calls
}

// repeat has a node reviewed at a time.
func (k *Keeper) repeat(at time.Time) {
	if k.repeatAt.IsZero() || at.Before(k.repeatAt) {
		k.repeatAt = at
	}
}

// names returns the names of the nodes in their order.
func (k *Keeper) names() []string { return slices.Sorted(maps.Keys(k.nodes)) }

// Joined records the first heartbeat of an incarnation of a node, and the first heartbeat after a silence.
func (k *Keeper) Joined(r Report) {
	n := k.nodes[r.Node]
	if n == nil {
		n = &node{name: r.Node, pairs: map[dataset.Digest]*pair{}, drives: map[string]DriveState{}}
		k.nodes[r.Node] = n
	}
	if n.alive {
		k.loseDrives(n, "the node was restarted")
	}
	if n.report.Incarnation != r.Incarnation {
		// The owner may be newer than the node. A call that was meant for an earlier incarnation may reach this one.
		was := n.drain
		n.drain = drain{
			asked: r.DrainAsked && r.SelfDrains, unsure: was.call != 0 || was.asked || was.unsure, call: was.call,
		}
	}
	for d, p := range n.pairs {
		if !p.forgetIncarnation() {
			delete(n.pairs, d)
		}
	}
	if !r.reaches() {
		for _, d := range r.Jobs {
			if n.pairs[d] == nil { // Otherwise the call that is under way may change what the node has.
				n.pairOf(d).prepared = true
			}
		}
	}
	n.alive, n.known, n.listed, n.turn, n.report = true, false, false, false, r
	k.dirty[n.name] = true
}

// Reported records a heartbeat, or that an operator has drained a node or has undone that. It follows Joined.
func (k *Keeper) Reported(r Report) {
	n := k.nodes[r.Node]
	if n == nil || !n.alive {
		return
	}
	if n.drain.needsCall(r.DrainAsked) || !slices.Equal(r.Jobs, n.report.Jobs) {
		k.dirty[n.name] = true
	}
	n.report = r
	k.compareJobs(n)
	k.compareDrives(n)
}

// compareJobs compares the editions in a report with those that the node counts as prepared for. A node that listed an
// edition and lists it no more has lost it: a call of Finish that was given up may have reached the node late.
func (k *Keeper) compareJobs(n *node) {
	for d, p := range n.pairs {
		switch has := slices.Contains(n.report.Jobs, d); {
		case !p.prepared || p.call != 0:
		case has:
			p.listed = true
		case p.listed:
			p.prepared, p.listed = false, false
			n.scan, k.dirty[n.name] = true, true
		}
	}
}

// Renewed records that a node holds other partitions or has other drives or URLs than before. The node is called again
// for the editions that it was not prepared for, and its drives are listed again.
func (k *Keeper) Renewed(name string) {
	if n := k.nodes[name]; n != nil && n.alive {
		n.known, n.listed = true, false
		k.rescan(n)
	}
}

// WorkersNeeded records that a job needs workers of reach Any.
func (k *Keeper) WorkersNeeded() {
	for _, n := range k.nodes {
		if n.alive && n.report.reaches() {
			k.rescan(n)
		}
	}
}

// rescan has the node called for every edition that it is wanted for and not prepared for.
func (k *Keeper) rescan(n *node) {
	n.scan, k.dirty[n.name] = true, true
	for _, p := range n.pairs {
		p.tryAgain()
	}
}

// Died records that a node is silent for too long.
func (k *Keeper) Died(name, why string) {
	n := k.nodes[name]
	if n == nil || !n.alive {
		return
	}
	k.loseDrives(n, why)
	n.alive, n.known, n.listed, n.turn = false, false, false, false
	k.dirty[n.name] = true
	for d, p := range n.pairs {
		if !p.forgetIncarnation() {
			delete(n.pairs, d)
		}
	}
}

// Forgotten records that a node is gone for good.
func (k *Keeper) Forgotten(name string) {
	n := k.nodes[name]
	if n == nil {
		return
	}
	for _, d := range slices.Sorted(maps.Keys(n.drives)) {
		k.emit(RemoveDrive{ledger.DriveID{Node: name, Name: d}})
	}
	for _, p := range n.sorted(&jobTable{}) {
		k.reply(p, &AwayError{name})
	}
	delete(k.nodes, name)
	k.recheck = true
}

// Tick records the passing of time.
func (k *Keeper) Tick(now time.Time) {
	if k.repeatAt.IsZero() || now.Before(k.repeatAt) {
		return
	}
	k.repeatAt = time.Time{}
	for name, n := range k.nodes {
		if n.alive {
			k.dirty[name] = true
		}
	}
}

// Ready returns the effects of the events since the last call, in their order. Call it again until it returns none.
func (k *Keeper) Ready(now time.Time) []Effect {
	if len(k.dirty) > 0 || k.recheck {
		t := newJobTable(k.config.Jobs())
		for _, name := range slices.Sorted(maps.Keys(k.dirty)) {
			if n := k.nodes[name]; n != nil {
				k.review(n, &t, now)
			}
		}
		clear(k.dirty)
		k.recheck = false
		k.replyDismissals(&t)
	}
	effects := k.effects
	k.effects = nil
	return effects
}
