package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/upkeep"
)

// member is a member of the control plane. It campaigns for leadership, and leads with the product's machine.
type member struct {
	world       *World
	name        string
	alive       bool
	cut         bool      // The links to launchers, nodes and other members are cut.
	storeCut    bool      // The link to the store is cut.
	paused      time.Time // The member executes nothing until this time.
	drift       float64   // The clock of the member is faster by this share.
	term        *term     // A member without a term does not lead, or does not know that it leads.
	campaigning bool      // The next campaign is scheduled.
	follows     string    // The member names this leader to callers. Empty means that it knows none.
	deferred    []func()  // The member executes these functions after its pause.
}

// term is the state of a member that leads.
type term struct {
	member   *member
	fence    uint64
	machine  *machine.Machine
	jobs     map[string]*leaderJob
	nodes    map[string]*leaderNode
	upkeep   *upkeep.Keeper
	lastAsk  uint64
	asking   map[uint64]func(error) // by number: the calls of upkeep.Ask that wait for an answer
	heard    time.Time              // The time of the last extension of the term.
	lastCall uint64
	waiting  map[uint64]func(*machine.LeaseAnswer, error)
	journal  journal
	over     bool
}

// leaderJob is a job as a leader has it.
type leaderJob struct {
	*machine.Job
	of       *job
	busy     bool // A duty is under way.
	writing  bool // A write of a state is under way. Writes follow each other, so the last state is stored last.
	writes   []func(next func())
	editions map[int]*machine.Edition
	begun    map[int]bool // by number: nodes have been asked to prepare the edition
}

// Edition implements machine.Editions.
func (j *leaderJob) Edition(number int) *machine.Edition { return j.editions[number] }

// leaderNode is a node as a leader has it, beside what package upkeep keeps.
type leaderNode struct {
	incarnation int
	heard       time.Time
	dead        bool
}

func newMember(w *World, i int) *member {
	m := &member{world: w, name: fmt.Sprintf("member%d", i), alive: true}
	if w.random.IntN(2) == 0 {
		m.drift = (w.random.Float64() - 0.5) / 50
	}
	m.stand(time.Duration(i) * 10 * time.Millisecond)
	return m
}

// clock returns the member's own time.
func (m *member) clock() time.Time {
	since := m.world.now.Sub(start)
	return m.world.now.Add(time.Duration(float64(since) * m.drift))
}

// away reports whether nothing reaches the member.
func (m *member) away() bool { return !m.alive || m.cut }

// run runs do, after the pause if the member is paused.
func (m *member) run(do func()) {
	if m.world.now.Before(m.paused) {
		m.deferred = append(m.deferred, do)
		return
	}
	if m.alive {
		do()
	}
}

// crashMember kills a member and starts it again later.
func (w *World) crashMember() {
	m := w.members[w.random.IntN(len(w.members))]
	if !m.alive {
		return
	}
	m.crash(w.between(100*time.Millisecond, 20*time.Second))
}

// crash kills the member and starts it again later.
func (m *member) crash(down time.Duration) {
	w := m.world
	w.note("%s dies", m.name)
	m.alive, m.deferred, m.paused = false, nil, time.Time{}
	if m.term != nil {
		m.term.end()
	}
	w.after(down, m.name+" is started", func() {
		m.alive = true
		m.stand(0)
	})
}

// pauseMember pauses a member, as the migration of its machine would.
func (w *World) pauseMember() {
	m := w.members[w.random.IntN(len(w.members))]
	if !m.alive || w.now.Before(m.paused) {
		return
	}
	m.paused = w.now.Add(w.between(500*time.Millisecond, 90*time.Second))
	w.after(m.paused.Sub(w.now), m.name+" goes on", func() {
		list := m.deferred
		m.deferred = nil
		// The goroutines of a process that goes on run in any order.
		w.random.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		for _, do := range list {
			m.run(do)
		}
	})
}

// stand schedules the next campaign of the member.
func (m *member) stand(after time.Duration) {
	if m.campaigning {
		return
	}
	m.campaigning = true
	m.world.after(after, m.name+" stands for election", func() {
		m.campaigning = false
		m.run(m.campaign)
	})
}

// campaign asks the store for the leadership.
func (m *member) campaign() {
	if m.term != nil {
		return
	}
	if !m.storeCut {
		if fence, won := m.world.store.campaign(m); won {
			m.world.after(m.world.way(), m.name+" leads", func() { m.run(func() { m.lead(fence) }) })
			return
		}
		m.follows = m.world.store.leaderBeside(m)
	}
	m.stand(time.Second)
}

// leading returns the member whose term the store has accepted last, or nil if the member does not lead.
func (w *World) leading() *member {
	for _, m := range w.members {
		if m.term != nil && m.term.fence == w.store.fence {
			return m
		}
	}
	return nil
}

// service returns the term of the leader that a user reaches now, or nil.
func (w *World) service() *term {
	m := w.leading()
	if m == nil || m.away() || w.now.Before(m.paused) {
		return nil
	}
	return m.term
}

// lead begins a term with the records of the store.
func (m *member) lead(fence uint64) {
	if m.term != nil {
		return
	}
	now := m.clock()
	t := &term{
		member: m, fence: fence, heard: now,
		machine: machine.New(machine.Config{
			Ledger: ledger.Config{Fence: fence, GrantAfter: now.Add(2 * beat)},
			Lives:  lifecycle.Config{AbandonAfter: time.Hour, Presence: presence.Options{Silence: 30 * time.Second}},
		}),
		jobs: map[string]*leaderJob{}, nodes: map[string]*leaderNode{},
		waiting: map[uint64]func(*machine.LeaseAnswer, error){}, asking: map[uint64]func(error){},
	}
	t.journal.term, t.upkeep = t, t.newUpkeep()
	m.term = t
	t.load(now)
	t.settle()
	t.tick()
	t.extend()
	t.review()
	for _, id := range slices.Sorted(maps.Keys(t.jobs)) {
		t.work(t.jobs[id])
	}
}

// end ends a term.
func (t *term) end() {
	if t.over {
		return
	}
	t.over = true
	t.member.world.note("%s does not lead any more", t.member.name)
	t.member.term, t.member.follows = nil, ""
	if t.member.alive {
		for _, call := range slices.Sorted(maps.Keys(t.waiting)) {
			t.waiting[call](nil, &notLeaderError{})
		}
	}
	t.member.stand(500 * time.Millisecond)
}

// later schedules do, which does not run if the term has ended.
func (t *term) later(d time.Duration, what string, do func()) {
	t.member.world.after(d, t.member.name+": "+what, func() {
		t.member.run(func() {
			if !t.over {
				do()
			}
		})
	})
}

// extend extends the term again and again. The term ends if the store cannot be reached for too long.
func (t *term) extend() {
	m := t.member
	if !m.storeCut {
		if !m.world.store.extend(t.fence) {
			t.end()
			return
		}
		t.heard = m.clock()
	} else if m.clock().Sub(t.heard) > leaderTime {
		t.end()
		return
	}
	t.later(leaderTime/3, "the term goes on", t.extend)
}

// review reviews every job once a second.
func (t *term) review() {
	for _, id := range slices.Sorted(maps.Keys(t.jobs)) {
		if j := t.jobs[id]; !j.Phase().Ended() {
			j.Review()
			t.work(j)
		}
	}
	t.later(time.Second, "review", t.review)
}

// load reads the records of earlier leaders.
func (t *term) load(now time.Time) {
	w, data := t.member.world, t.member.world.store.data
	records := map[string][]format.Record{}
	for _, key := range w.store.sorted() {
		id, rest, ok := record.SplitKey(key)
		if !ok || rest == "spec" || rest == "state" || strings.HasPrefix(rest, "data/") {
			continue
		}
		r, err := format.RecordOf(id, rest, data[key])
		if err != nil {
			w.fail("%s cannot read %s: %v", t.member.name, key, err)
			return
		}
		if r.Kind == format.RanksRecord && w.mutant == ForgottenRanks ||
			r.Kind != format.RanksRecord && w.mutant == ForgottenRecords {
			continue
		}
		records[id] = append(records[id], r)
	}
	for _, j := range w.jobs {
		if data[record.Key(j.id, "spec")] == nil {
			continue
		}
		var state record.State
		if err := json.Unmarshal(data[record.Key(j.id, "state")], &state); err != nil {
			w.fail("%s cannot read the state of %s: %v", t.member.name, j.id, err)
			return
		}
		if w.mutant == ForgottenState {
			state = lifecycle.Submission(j.editions[0].record(0))
		}
		if w.mutant == ForgottenEditions && len(state.Editions) > 1 {
			state.Editions = state.Editions[:1]
		}
		if err := t.add(j, state, records[j.id], now); err != nil {
			w.fail("%s cannot take %s: %v", t.member.name, j.id, err)
			return
		}
	}
}

// record returns the stored form of an edition.
func (g *edition) record(first uint64) record.Edition {
	return record.Edition{Number: g.number, First: first, Digest: g.digest, Pieces: 1}
}

// add adds a job to the machine.
func (t *term) add(j *job, state record.State, records []format.Record, now time.Time) error {
	l := &leaderJob{of: j, editions: map[int]*machine.Edition{}, begun: map[int]bool{}}
	terms := ledger.Job{ID: j.id, Ranks: j.ranks, Drives: j.drives}
	if j.keepTail {
		terms.Tail = ledger.KeepTail
	}
	if j.deterministic {
		terms.Order = 1
	}
	l.Job = &machine.Job{
		LifeTerms: lifecycle.Terms{
			ID: j.id, Name: j.id, Submitted: start, Ranks: j.ranks, Epochs: j.epochs, FirstEpoch: j.firstEpoch(),
			Follow: j.follow, FollowOnce: j.once,
		},
		LedgerTerms: terms, Plan: j.plan, Resume: j.from, Shares: j.share, Data: l,
	}
	for _, g := range state.Editions {
		l.addEdition(g)
		l.begun[g.Number] = state.Phase.Begun()
	}
	if err := t.machine.Add(l.Job, state, records, now); err != nil {
		return err
	}
	t.jobs[j.id] = l
	if l.Phase().Ended() {
		return nil
	}
	return t.machine.Ledger.AllowWorkers(j.id, j.workers, now)
}

func (j *leaderJob) addEdition(g record.Edition) {
	of := j.of.editions[g.Number]
	j.editions[g.Number] = &machine.Edition{Edition: g, Manifest: of.manifest, Words: of.words, Passing: of.passing}
}

// submit submits a job to the leader, again and again until the job is stored.
func (w *World) submit(j *job) {
	again := func() { w.after(time.Second, "submit "+j.id+" again", func() { w.submit(j) }) }
	t := w.service()
	if t == nil {
		again()
		return
	}
	if t.jobs[j.id] != nil { // The job is stored, and the answer was lost.
		j.begin()
		return
	}
	again()
	if j.submitting == t {
		return
	}
	j.submitting = t
	state := lifecycle.Submission(j.editions[0].record(0))
	ops := []op{
		{key: record.DataKey(j.id, 0, 0), data: []byte("data")}, {key: record.Key(j.id, "state"), data: encode(state)},
		{key: record.Key(j.id, "spec"), data: []byte("spec")},
	}
	t.commit("a submission", ops, func(err error) {
		switch {
		case err != nil: // The store may have carried out the write, and the user gets an error.
			t.commit("no submission", []op{{key: record.Key(j.id, ""), prefix: true}}, func(error) { j.submitting = nil })
		default:
			if err := t.add(j, state, nil, t.member.clock()); err != nil {
				w.fail("%s cannot take %s: %v", t.member.name, j.id, err)
			}
			t.settle()
			t.work(t.jobs[j.id])
		}
	})
}

// begin starts the launchers of a job.
func (j *job) begin() {
	for _, c := range j.consumers {
		j.world.after(j.world.between(0, 5*time.Second), "a launcher of "+c.name(), func() { c.launch(nil, false) })
	}
}

func encode(state record.State) []byte {
	b, err := json.Marshal(state)
	if err != nil {
		panic(err) // This package has a fault.
	}
	return b
}

// commit writes records and calls done with the result. If the answer of the store is lost, the result is an error,
// although the store may have carried out the write.
func (t *term) commit(what string, ops []op, done func(err error)) {
	w, m := t.member.world, t.member
	answered := false
	var late *event
	answer := func(err error) {
		if !answered {
			answered = true
			late.never()
			m.run(func() {
				if errors.Is(err, errFenced) {
					t.end()
				}
				if !t.over {
					done(err)
				}
			})
		}
	}
	lost := w.faulty() && w.chance(w.faults.lostAnswer)
	w.after(w.way(), m.name+" writes "+what, func() {
		if m.storeCut || !m.alive {
			return
		}
		err := w.store.apply(t.fence, ops)
		if errors.Is(err, errWrite) {
			w.fail("%s writes %s: %v", m.name, what, err)
		}
		if lost {
			return
		}
		w.after(w.way(), "the store answers "+m.name, func() {
			if !m.storeCut {
				answer(err)
			}
		})
	})
	late = w.after(5*time.Second, m.name+" waits no longer for the store", func() { answer(errStore) })
}

// confirm lets a final answer leave the member if the store says that the term holds. Otherwise the caller asks another
// member.
func (t *term) confirm(reply func(any, error), final func()) {
	t.commit("nothing, to confirm the term", nil, func(err error) {
		if err != nil {
			reply(nil, &notLeaderError{})
			return
		}
		final()
	})
}

// settle carries out the machine's effects.
func (t *term) settle() {
	now := t.member.clock()
	for {
		effects := t.machine.Ready(now)
		for _, e := range effects {
			t.carryOut(e, now)
		}
		ofNodes := t.upkeep.Ready(now)
		for _, e := range ofNodes {
			t.carryOutUpkeep(e, now)
		}
		if len(effects)+len(ofNodes) == 0 {
			break
		}
	}
	if t.machine.Ledger.Pending() > 0 {
		t.journal.kick()
	}
	t.checkConfirmed()
	if err := t.machine.Ledger.Broken(); err != nil {
		t.member.world.fail("%v", err)
	}
}

// carryOut carries out an effect of the machine.
func (t *term) carryOut(e machine.Effect, now time.Time) {
	w := t.member.world
	switch e := e.(type) {
	case machine.Answered:
		reply := t.waiting[e.Call]
		delete(t.waiting, e.Call)
		reply(&e.Answer, e.Err)
	case machine.Returned:
		t.upkeep.LeaseReturned(e.Drive.Node, e.ID, now)
	case machine.Delivered:
		t.work(t.jobs[e.Job])
		if w.mutant == ConcludeTooEarly && e.Epoch+1 >= t.jobs[e.Job].EndEpoch() {
			t.jobs[e.Job].Confirmed(now.Add(time.Hour))
		}
	case machine.Life:
		t.carryOutLife(e.Effect, now)
	}
}

func (t *term) carryOutLife(e lifecycle.Effect, now time.Time) {
	w := t.member.world
	switch e := e.(type) {
	case lifecycle.Moved:
		w.mix(e.Job + string(e.To))
		w.note("%s: %s is %s (%s)", t.member.name, e.Job, e.To, e.Why)
		t.work(t.jobs[e.Job])
	case lifecycle.Refused:
		w.fail("%s: %s: %v", t.member.name, e.Job, e.Err)
	case lifecycle.EndJob:
		j := t.jobs[e.Job]
		if e.Phase != record.Done && !(j.of.cancelled && e.Phase == record.Cancelled) {
			w.fail("%s ends as %s: %s", e.Job, e.Phase, j.Words())
		}
		j.Conclude(lifecycle.Conclusion{Status: []byte("status")})
		for _, number := range slices.Sorted(maps.Keys(j.editions)) {
			t.drop(j.editions[number])
		}
		if err := t.machine.RemoveFromLedger(j.Job, now); err != nil {
			w.fail("%v", err)
		}
	case lifecycle.FindPartitions:
		t.findPartitions(t.jobs[e.Job])
	case lifecycle.DropEdition:
		g := t.jobs[e.Job].editions[e.Number]
		delete(t.jobs[e.Job].editions, e.Number)
		t.drop(g)
	case lifecycle.EditionBegun:
		t.jobs[e.Job].editions[e.Edition.Number].Edition = e.Edition
	}
}

// findPartitions looks for partitions that a job does not have yet.
func (t *term) findPartitions(j *leaderJob) {
	number, first := j.NextEdition()
	if number >= j.of.appeared {
		j.PartitionsMissing("")
		return
	}
	g := j.of.editions[number].record(first)
	j.addEdition(g)
	if t.member.world.mutant == SharedEditions {
		j.editions[number].Manifest, j.editions[number].Words = j.of.editions[0].manifest, j.of.editions[0].words
	}
	j.PartitionsFound(g.Digest)
}

// tick passes the time to the machine.
func (t *term) tick() {
	now := t.member.clock()
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if n := t.nodes[name]; !n.dead && now.Sub(n.heard) > deadAfter {
			n.dead = true
			t.upkeep.Died(name, "its node is dead")
		}
	}
	t.machine.Tick(now)
	if t.member.world.mutant != NoRepeats {
		t.upkeep.Tick(now)
	}
	t.settle()
	t.later(200*time.Millisecond, "tick", t.tick)
}

func driveOf(node string) ledger.DriveID { return ledger.DriveID{Node: node, Name: "d"} }
