package upkeep

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestNodesGetWhatJobsNeed kills, restarts and cuts off nodes at random, loses calls and answers, and lets jobs begin
// and end in any order. At every event: a node is not called twice for one edition at the same time, it is prepared
// only for what a job uses and made to forget only what no job uses, what counts as prepared is prepared, the ledger's
// drives are those that the keeper takes for listed, and no table grows. When the faults have ended, every node is
// prepared for what it is wanted for and for nothing else, and every call was answered.
func TestNodesGetWhatJobsNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newFaultyWorld(t)
		for range rapid.IntRange(5, 200).Draw(t, "steps") {
			w.step()
			w.check()
		}
		w.finish()
	})
}

// faultyWorld is jobs, nodes, calls that are under way, and a ledger, around a keeper.
type faultyWorld struct {
	t        *rapid.T
	keeper   *Keeper
	now      time.Time
	jobs     []Job
	begun    int // jobs
	nodes    []*realNode
	calls    []Effect
	asked    map[uint64]bool // the calls of Ask and Dismiss that were not answered
	numbered uint64
	ledger   map[ledger.DriveID]DriveState
	enlisted map[string]bool // JOB WORKER
	editions []*dataset.Manifest
}

// realNode is a node as it is, which the keeper may not know.
type realNode struct {
	name        string
	runs        bool
	incarnation int
	has         map[dataset.Digest]bool
	holds       map[*dataset.Manifest]bool
	drains      bool
	drainAsked  bool
	worker      bool
	heard       int  // the incarnation whose heartbeat the keeper got last
	counted     bool // The keeper takes the node for alive.
	broken      bool // Its drive has failed.
}

const editionsOfWorld = 5

func newFaultyWorld(t *rapid.T) *faultyWorld {
	w := &faultyWorld{t: t, asked: map[uint64]bool{}, ledger: map[ledger.DriveID]DriveState{},
		enlisted: map[string]bool{}}
	for range editionsOfWorld {
		w.editions = append(w.editions, &dataset.Manifest{})
	}
	for i := range 3 {
		n := &realNode{name: fmt.Sprintf("n%d", i), runs: true, incarnation: 1, has: map[dataset.Digest]bool{},
			holds: map[*dataset.Manifest]bool{}, worker: i == 2}
		for _, m := range w.editions {
			n.holds[m] = !n.worker && rapid.Bool().Draw(t, "holds")
		}
		w.nodes = append(w.nodes, n)
	}
	w.keeper = New(Config{Jobs: func() []Job { return w.jobs }, Holds: func(node string, m *dataset.Manifest) bool {
		return w.node(node).holds[m]
	}})
	return w
}

func (w *faultyWorld) node(name string) *realNode {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *realNode) bool { return n.name == name })]
}

// uses reports whether a job uses a digest.
func (w *faultyWorld) uses(d dataset.Digest) bool {
	return slices.ContainsFunc(w.jobs, func(j Job) bool { return j.Editions[0].Digest == d })
}

// step applies one random event.
func (w *faultyWorld) step() {
	t := w.t
	n := w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node")]
	switch kind := rapid.IntRange(0, 13).Draw(t, "kind"); kind {
	case 0, 1:
		w.begin()
	case 2:
		if len(w.jobs) > 0 {
			w.end(rapid.IntRange(0, len(w.jobs)-1).Draw(t, "job"))
		}
	case 3: // The node's process dies, or is started.
		if n.runs = !n.runs; n.runs {
			n.incarnation++
			n.drains = false
			clear(n.has)
		}
	case 4: // The leader takes the node for dead, rightly or not.
		n.counted = false
		w.keeper.Died(n.name, "its node is dead")
	case 5:
		if !n.counted && !n.runs && !w.isCalled(n.name) { // A call ends long before its node is forgotten.
			w.keeper.Forgotten(n.name)
			n.heard = 0
		}
	case 6:
		n.drainAsked = !n.drainAsked
		if n.counted {
			w.keeper.Reported(w.report(n))
		}
	case 7:
		n.broken = !n.broken
	case 8, 9, 10:
		w.beat(n)
	case 11:
		w.clock(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
	default:
		if len(w.calls) > 0 {
			w.answer(rapid.IntRange(0, len(w.calls)-1).Draw(t, "call"), rapid.IntRange(0, 5).Draw(t, "answer"))
		}
	}
	w.carryOut()
}

// begin begins a job, which asks every node that holds its edition and lives.
func (w *faultyWorld) begin() {
	if len(w.jobs) == 4 {
		return
	}
	w.begun++
	e := rapid.IntRange(0, editionsOfWorld-1).Draw(w.t, "edition")
	j := Job{ID: fmt.Sprintf("j%d", w.begun), Ranks: 1, NeedsWorkers: rapid.Bool().Draw(w.t, "workers")}
	j.Editions = []Edition{{Digest: dataset.Digest{byte(e + 1)}, Manifest: w.editions[e], Begun: true}}
	w.jobs = append(w.jobs, j)
	for _, n := range w.nodes {
		if n.counted && n.holds[w.editions[e]] {
			w.numbered++
			w.asked[w.numbered] = true
			w.keeper.Ask(w.numbered, n.name, j.Editions[0].Digest)
		}
	}
	w.keeper.WorkersNeeded()
}

func (w *faultyWorld) end(i int) {
	d := w.jobs[i].Editions[0].Digest
	w.jobs = slices.Delete(w.jobs, i, i+1)
	w.numbered++
	w.asked[w.numbered] = true
	w.keeper.Dismiss(w.numbered, d)
}

func (w *faultyWorld) report(n *realNode) Report {
	r := Report{Node: n.name, Incarnation: fmt.Sprint(n.heard), SelfDrains: n.drains, DrainAsked: n.drainAsked}
	r.Jobs = slices.SortedFunc(maps.Keys(n.has), func(a, b dataset.Digest) int { return slices.Compare(a[:], b[:]) })
	d := Drive{Drive: ledger.Drive{ID: ledger.DriveID{Node: n.name, Name: "d"}, Streams: 1}, State: Ready}
	if n.worker {
		d.Reach = ledger.Any
	}
	switch {
	case n.broken:
		d.State = Broken
	case n.drainAsked || n.drains:
		d.State = Draining
	}
	r.Drives = []Drive{d}
	return r
}

// beat delivers a heartbeat.
func (w *faultyWorld) beat(n *realNode) {
	if !n.runs {
		return
	}
	joins := !n.counted || n.heard != n.incarnation
	n.counted, n.heard = true, n.incarnation
	if joins {
		w.keeper.Joined(w.report(n))
		w.keeper.Renewed(n.name)
	}
	w.keeper.Reported(w.report(n))
}

func (w *faultyWorld) clock(d time.Duration) {
	w.now = w.now.Add(d)
	w.keeper.Tick(w.now)
}

// The answers to a call.
const (
	callLost = iota
	answerLost
	refusedForRoom
	refused
)

// answer ends a call. The node that runs now is called, whatever incarnation the call was meant for.
func (w *faultyWorld) answer(i, how int) {
	e := w.calls[i]
	w.calls = slices.Delete(w.calls, i, i+1)
	result := Result{}
	node := callNode(e)
	n := w.node(node)
	_, prepares := e.(Prepare)
	switch {
	case !n.runs, how == callLost, how == answerLost:
		result = Result{Outcome: Failed, Err: errors.New("not reached")}
	case prepares && how == refusedForRoom:
		result = Result{Outcome: NoRoom, Err: errors.New("no memory")}
	case prepares && how == refused:
		result = Result{Outcome: Refused, Err: errors.New("refused")}
	}
	arrives := n.runs && (result.Outcome == Done || how == answerLost)
	switch e := e.(type) {
	case Prepare:
		if arrives {
			n.has[e.Digest] = true
		}
		w.keeper.Prepared(e, result, w.now)
	case Finish:
		if arrives {
			delete(n.has, e.Digest)
		}
		w.keeper.Finished(e)
	case Drain:
		if arrives {
			n.drains = e.Drain
		}
		w.keeper.Drained(e, result, w.now)
	}
}

// callNode returns the node that a call goes to.
func callNode(e Effect) string {
	switch e := e.(type) {
	case Prepare:
		return e.Node
	case Finish:
		return e.Node
	case Drain:
		return e.Node
	}
	return ""
}

// underWay counts the calls of a node for an edition.
func (w *faultyWorld) underWay(node string, d dataset.Digest) (n int) {
	for _, e := range w.calls {
		switch e := e.(type) {
		case Prepare:
			if e.Node == node && e.Digest == d {
				n++
			}
		case Finish:
			if e.Node == node && e.Digest == d {
				n++
			}
		}
	}
	return n
}

// isCalled reports whether a call of a node is under way.
func (w *faultyWorld) isCalled(node string) bool {
	return slices.ContainsFunc(w.calls, func(e Effect) bool { return callNode(e) == node })
}

func (w *faultyWorld) carryOut() {
	for effects := w.keeper.Ready(w.now); len(effects) > 0; effects = w.keeper.Ready(w.now) {
		for _, e := range effects {
			w.effect(e)
		}
	}
}

func (w *faultyWorld) effect(e Effect) {
	t := w.t
	switch e := e.(type) {
	case Prepare:
		require.True(t, w.uses(e.Digest), "a node is prepared for an edition that no job uses")
		require.Zero(t, w.underWay(e.Node, e.Digest), "a node is called twice for one edition at the same time")
		w.calls = append(w.calls, e)
	case Finish:
		require.False(t, w.uses(e.Digest), "a node has to forget an edition that a job uses")
		require.Zero(t, w.underWay(e.Node, e.Digest), "a node is called twice for one edition at the same time")
		w.calls = append(w.calls, e)
	case Drain:
		w.calls = append(w.calls, e)
	case ListDrives:
		for _, d := range e.Drives {
			w.ledger[d.ID] = Ready
			if d.Draining {
				w.ledger[d.ID] = Draining
			}
		}
	case DriveChanged:
		require.Equal(t, w.ledger[e.Drive], e.From, "%v", e.Drive)
		w.ledger[e.Drive] = e.To
	case RemoveDrive:
		delete(w.ledger, e.Drive)
	case Enlist:
		w.enlisted[e.Job+" "+e.Worker.Node] = true
	case Reply:
		require.True(t, w.asked[e.Call], "call %d is answered twice", e.Call)
		delete(w.asked, e.Call)
	}
}

// check checks what holds at every event.
func (w *faultyWorld) check() {
	known := map[ledger.DriveID]DriveState{}
	for _, n := range w.keeper.nodes {
		require.LessOrEqual(w.t, len(n.pairs), editionsOfWorld)
		for d, p := range n.pairs {
			require.True(w.t, w.uses(d) || p.call != 0, "%s keeps a pair of an edition that no job uses", n.name)
			if p.call != 0 {
				require.NotZero(w.t, w.underWay(n.name, d), "%s waits for a call that is not under way", n.name)
			} else {
				require.Empty(w.t, p.waiting, "a job waits, and no call is under way")
			}
			if at := w.node(n.name); p.prepared && p.call == 0 && at.runs && at.incarnation == at.heard {
				require.True(w.t, at.has[d], "%s counts as prepared for an edition that it does not have", n.name)
			}
		}
		for d, state := range n.drives {
			known[ledger.DriveID{Node: n.name, Name: d}] = state
		}
	}
	require.Equal(w.t, known, w.ledger, "the ledger has other drives than the keeper takes for listed")
	for _, a := range w.keeper.awaited {
		require.True(w.t, w.asked[a.call])
	}
}

// finish ends the faults, and checks what holds in the end.
func (w *faultyWorld) finish() {
	for range 12 {
		for _, n := range w.nodes {
			if n.broken = false; !n.runs {
				n.runs, n.drains = true, false
				n.incarnation++
				clear(n.has)
			}
			w.beat(n)
			w.carryOut()
			for len(w.calls) > 0 {
				w.answer(0, refused+1)
				w.carryOut()
			}
		}
		w.clock(DefaultRetry)
		w.carryOut()
		w.check()
	}
	for _, n := range w.nodes { // A node that has refused a job is called again when something has changed.
		w.keeper.Renewed(n.name)
		for w.carryOut(); len(w.calls) > 0; w.carryOut() {
			w.answer(0, refused+1)
		}
	}
	w.check()
	require.Empty(w.t, w.asked, "calls of Ask and Dismiss were not answered")
	for _, n := range w.nodes {
		wanted := map[dataset.Digest]bool{}
		for _, j := range w.jobs {
			e := j.Editions[0]
			if n.holds[e.Manifest] || n.worker && j.NeedsWorkers {
				wanted[e.Digest] = true
				require.True(w.t, w.keeper.IsPrepared(n.name, e.Digest))
				require.True(w.t, !n.worker || w.enlisted[j.ID+" "+n.name], "%s is not enlisted for %s", n.name, j.ID)
			}
		}
		for d := range wanted {
			require.True(w.t, n.has[d], "%s is not prepared for %x", n.name, d[0])
		}
		for d := range n.has {
			require.True(w.t, w.uses(d), "%s still has %x, which no job uses", n.name, d[0])
		}
		require.Equal(w.t, n.drainAsked, n.drains, "%s was not asked what the operator wants last", n.name)
		state := Ready
		if n.drainAsked {
			state = Draining
		}
		require.Equal(w.t, state, w.ledger[ledger.DriveID{Node: n.name, Name: "d"}])
	}
}
