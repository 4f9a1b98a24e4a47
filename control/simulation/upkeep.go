package simulation

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/upkeep"
	"github.com/millrace/millrace/sdk/dataset"
)

// newUpkeep makes the keeper of the term's nodes.
func (t *term) newUpkeep() *upkeep.Keeper {
	return upkeep.New(upkeep.Config{
		Jobs: t.upkeepJobs, KeepReturned: time.Hour,
		Holds: func(node string, m *dataset.Manifest) bool { return t.member.world.nodeOf(node).holdsSome(m) },
	})
}

// upkeepJobs describes the jobs that have not ended to the keeper of the nodes.
func (t *term) upkeepJobs() (jobs []upkeep.Job) {
	for _, id := range slices.Sorted(maps.Keys(t.jobs)) {
		j := t.jobs[id]
		if j.Phase().Ended() {
			continue
		}
		u := upkeep.Job{ID: id, Ranks: uint32(j.of.ranks), NeedsWorkers: j.of.workers != 0}
		for _, number := range slices.Sorted(maps.Keys(j.editions)) {
			if g := j.editions[number]; j.Uses(g.Digest) {
				u.Editions = append(u.Editions, upkeep.Edition{
					Digest: g.Digest, Manifest: g.Manifest, Begun: j.begun[number],
				})
			}
		}
		jobs = append(jobs, u)
	}
	return jobs
}

// heartbeat takes a heartbeat of a node.
func (m *member) heartbeat(n *node, incarnation int, r upkeep.Report) {
	m.run(func() {
		t := m.term
		if t == nil {
			return
		}
		known := t.nodes[n.name]
		if known == nil {
			known = &leaderNode{dead: true}
			t.nodes[n.name] = known
		}
		if incarnation < known.incarnation {
			return // The node sent this heartbeat before its restart.
		}
		now := m.clock()
		if known.dead || incarnation > known.incarnation {
			t.upkeep.Joined(r)
			t.upkeep.Renewed(n.name)
		}
		known.heard, known.incarnation, known.dead = now, incarnation, false
		t.upkeep.Reported(r)
		t.settle()
		returned, _ := t.upkeep.Returned(n.name, 0, now)
		m.world.send("answer to "+n.name, func() bool { return n.cut || m.away() }, func() { n.answered(t.fence, returned) })
	})
}

// carryOutUpkeep carries out an effect of the nodes' keeper.
func (t *term) carryOutUpkeep(e upkeep.Effect, now time.Time) {
	w := t.member.world
	var err error
	switch e := e.(type) {
	case upkeep.Prepare:
		n := w.nodeOf(e.Node)
		t.callNode(n, "prepare "+e.Job, func() error { return n.prepare(e.Digest) }, func(r upkeep.Result) {
			t.upkeep.Prepared(e, r, t.member.clock())
		})
	case upkeep.Finish:
		n := w.nodeOf(e.Node)
		t.callNode(n, "forget a job", func() error { delete(n.prepared, e.Digest); return nil },
			func(upkeep.Result) { t.upkeep.Finished(e) })
	case upkeep.Reply:
		reply := t.asking[e.Call]
		delete(t.asking, e.Call)
		reply(e.Err)
	case upkeep.ListDrives:
		for _, d := range e.Drives {
			d.Partitions = slices.Sorted(maps.Keys(w.nodeOf(e.Node).holds))
			err = errors.Join(err, t.machine.Ledger.PutDrive(d, now))
		}
	case upkeep.DriveChanged:
		if e.To == upkeep.Lost {
			err = t.machine.Ledger.LoseDrive(e.Drive, e.Why, now)
		} else {
			err = t.machine.Ledger.DrainDrive(e.Drive, e.To == upkeep.Draining, now)
		}
	case upkeep.Enlist:
		err = t.machine.Ledger.Enlist(e.Job, e.Worker, e.Ready, now)
	case upkeep.NeedRoom: // The jobs of a day give no room away.
	default:
		w.fail("%s does not know the effect %T", t.member.name, e)
	}
	if err != nil {
		w.fail("%s: %v", t.member.name, err)
	}
}

// callNode calls a node. The node carries out do, and done gets the answer, or an error when the time is over.
func (t *term) callNode(n *node, what string, do func() error, done func(upkeep.Result)) {
	w, m := t.member.world, t.member
	cut := func() bool { return !n.alive || n.cut || m.away() }
	answered := false
	var late *event
	answer := func(r upkeep.Result) {
		if answered || t.over {
			return
		}
		answered = true
		late.never()
		done(r)
		t.settle()
	}
	w.after(w.way(), m.name+" has "+n.name+" "+what, func() {
		if cut() || t.fence < n.fence { // A node does what a former leader wants no more.
			return
		}
		err := do()
		w.send(n.name+" answers "+m.name, cut, func() {
			m.run(func() {
				r := upkeep.Result{Err: err}
				if err != nil {
					r.Outcome = upkeep.NoRoom
				}
				answer(r)
			})
		})
	})
	late = w.after(5*time.Second, m.name+" gives up to have "+n.name+" "+what, func() {
		m.run(func() { answer(upkeep.Result{Outcome: upkeep.Failed, Err: errStore}) })
	})
}

// prepareJob has the nodes that hold partitions of the job's next edition prepared, and waits for the answers.
func (t *term) prepareJob(j *leaderJob, done func(error)) {
	g := j.editions[j.Preparing()]
	j.begun[g.Number] = true
	t.upkeep.WorkersNeeded()
	var nodes []string
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if !t.nodes[name].dead && t.member.world.nodeOf(name).holdsSome(g.Manifest) {
			nodes = append(nodes, name)
		}
	}
	left := 1
	answered := func(error) {
		if left--; left > 0 {
			return
		}
		for _, p := range g.Manifest.Partitions {
			if !slices.ContainsFunc(nodes, func(name string) bool {
				return t.member.world.nodeOf(name).holds[p.Name] && t.upkeep.IsPrepared(name, g.Digest)
			}) {
				j.Delayed("for a node")
				done(errStore)
				return
			}
		}
		j.Prepared()
		done(nil)
	}
	for _, name := range nodes {
		left++
		t.lastAsk++
		t.asking[t.lastAsk] = answered
		t.upkeep.Ask(t.lastAsk, name, g.Digest)
	}
	t.settle()
	answered(nil)
}

// drop has nodes forget an edition that a job uses no more.
func (t *term) drop(g *machine.Edition) {
	if t.member.world.mutant != KeptEditions {
		t.upkeep.Dropped(g.Digest)
	}
}

// report returns what a heartbeat of the node says.
func (n *node) report() upkeep.Report {
	r := upkeep.Report{
		Node: n.name, Incarnation: time.Duration(n.incarnation).String(), SelfDrains: n.draining,
		Owned: n.serves != nil,
	}
	d := upkeep.Drive{
		Drive: ledger.Drive{ID: driveOf(n.name), Streams: 3, Reach: n.reach, Serves: n.serves}, State: upkeep.Ready,
	}
	if n.draining {
		d.State = upkeep.Draining
	}
	r.Drives = []upkeep.Drive{d}
	r.Jobs = slices.SortedFunc(maps.Keys(n.prepared), func(a, b dataset.Digest) int {
		return slices.Compare(a[:], b[:])
	})
	return r
}

// errRoom reports that a node has no room for another job.
var errRoom = errors.New("the node has no room")

// prepare prepares the node for an edition.
func (n *node) prepare(d dataset.Digest) error {
	if n.world.faulty() && n.world.chance(n.world.faults.prepareFails) {
		return errRoom
	}
	n.prepared[d] = true
	return nil
}

// holdsSome reports whether the node holds a partition of a manifest.
func (n *node) holdsSome(m *dataset.Manifest) bool {
	return slices.ContainsFunc(m.Partitions, func(p dataset.Partition) bool { return n.holds[p.Name] })
}

// remembered reports whether some node is prepared for the job. A launcher's own CPUs end with their job.
func (j *job) remembered() bool {
	return slices.ContainsFunc(j.editions, func(g *edition) bool {
		return slices.ContainsFunc(j.world.nodes, func(n *node) bool { return n.serves == nil && n.prepared[g.digest] })
	})
}
