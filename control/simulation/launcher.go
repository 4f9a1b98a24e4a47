package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/sdk/dataset"
)

// launcher is a process that consumes a rank: it attaches, takes leases, fetches, trains, acknowledges and saves
// checkpoints, as trainmgr/remote does.
type launcher struct {
	of       *consumer
	number   int
	dead     bool
	announce bool
	resume   bool // It goes on from what was acknowledged.

	member    int    // the member that it asks
	fence     uint64 // the greatest that an answer had
	attached  bool
	attaching bool
	session   ledger.Session
	epoch     *epoch
	model     trained             // what its model was trained with: the consumer's, while it is the consumer's process
	have      trained             // numbers that it fetched, trained, or was told to be acknowledged
	leases    map[uint64]*holding // by ID
	queue     []minibatch         // fetched, and not trained yet
	inStep    *minibatch          // nil: the trainer waits
	unsaid    []dataset.Range     // to be acknowledged
	saying    []dataset.Range     // in the call that is under way
	leasing   bool
	saves     bool // A checkpoint is under way: the trainer waits.
	mustShow  bool // The leader is new: it wants to see the leases.
	steps     int
	past      bool // It has trained the last epoch that it knows of.
	ended     bool
}

// holding is a lease that a launcher holds.
type holding struct {
	ledger.Grant
	next uint64 // the next number to fetch
}

// minibatch is a fetched mini-batch.
type minibatch struct {
	epoch   *epoch
	number  uint64
	content string
}

// launch starts a process of the rank.
func (c *consumer) launch(token *dataset.Token, resume bool) {
	w := c.job.world
	if c.done {
		return
	}
	w.launched++
	l := &launcher{
		of: c, number: w.launched, announce: c.job.announces, resume: resume, member: w.random.IntN(3),
		have: trained{}, leases: map[uint64]*holding{},
	}
	c.process, l.model = l, c.model
	l.attach(token)
}

// crashLauncher has a launcher die, and start again: from its checkpoint, or from what was acknowledged.
func (w *World) crashLauncher() {
	j := w.jobs[w.random.IntN(len(w.jobs))]
	c := j.consumers[w.random.IntN(len(j.consumers))]
	l := c.process
	if l == nil || c.done {
		return
	}
	zombie := j.tokens && w.chance(w.faults.zombies)
	w.note("%s dies (it lives on: %v)", l.name(), zombie)
	c.process = nil
	if !zombie {
		l.dead = true
	}
	token := c.token
	if j.tokens {
		if zombie {
			l.model = l.model.clone() // what it trains from now on is lost
		}
		c.model = trained{}
		if c.saved != nil {
			c.model = c.saved.clone()
		} else {
			token = j.beginning(c.rank)
		}
	}
	w.after(w.between(100*time.Millisecond, 20*time.Second), "a launcher of "+c.name()+" starts again",
		func() { c.launch(token, !j.tokens) })
}

// beginning returns the token of a rank that has trained nothing.
func (j *job) beginning(uint32) *dataset.Token { return &dataset.Token{Job: j.editions[0].digest} }

func (l *launcher) world() *World { return l.of.job.world }
func (l *launcher) name() string  { return fmt.Sprintf("launcher%d of %s", l.number, l.of.name()) }
func (l *launcher) current() bool { return l.of.process == l }

// describe says what a launcher does.
func (l *launcher) describe() string {
	if !l.attached {
		return fmt.Sprintf("%s attaches (%v)", l.name(), l.attaching)
	}
	return fmt.Sprintf("%s is in epoch %d, holds %d leases, has %d in its queue and %d to acknowledge", l.name(),
		l.epoch.number, len(l.leases), len(l.queue), len(l.unsaid)+len(l.saying))
}

// later runs something of the launcher after a time, unless it is dead.
func (l *launcher) later(d time.Duration, what string, do func()) *event {
	return l.world().after(d, l.name()+": "+what, func() {
		if !l.dead && !l.ended {
			do()
		}
	})
}

// errAway says that a call was not answered in time.
var errAway = errors.New("no answer")

// errNotLeader says that a member does not lead.
var errNotLeader = errors.New("this member does not lead")

// call calls the member that the launcher takes for the leader. serve runs there, and calls reply at most once. done
// gets the answer, or an error after a time.
func (l *launcher) call(what string, patience time.Duration, serve func(t *term, reply func(any, error)),
	done func(any, error)) {
	w, m := l.world(), l.world().members[l.member]
	answered := false
	var late *event
	answer := func(a any, err error) {
		if answered || l.dead || l.ended {
			return
		}
		answered = true
		late.never()
		if err != nil && (errors.Is(err, errAway) || errors.Is(err, errNotLeader)) {
			l.member = (l.member + 1) % len(w.members)
		}
		done(a, err)
	}
	w.send(l.name()+": "+what, m.away, func() {
		m.run(func() {
			t := m.term
			back := func(a any, err error) {
				w.send("answer to "+l.name()+": "+what, m.away, func() { answer(a, err) })
			}
			if t == nil {
				back(nil, errNotLeader)
				return
			}
			serve(t, back)
		})
	})
	late = l.later(patience, what+" is given up", func() { answer(nil, errAway) })
}

// attach makes the launcher the rank's consumer.
func (l *launcher) attach(token *dataset.Token) {
	if l.attaching {
		return
	}
	l.attaching, l.attached = true, false
	l.leases, l.queue, l.unsaid, l.saying = map[uint64]*holding{}, nil, nil, nil
	r := machine.AttachRequest{
		Rank: l.of.rank, Token: token, Resumes: l.resume, AnnouncesEnd: l.announce,
	}
	r.Run, _ = lifecycle.RunOf(l.of.job.id) // The name is short.
	l.call("attach", 10*time.Second, func(t *term, reply func(any, error)) { t.attach(l.of.job, r, reply) },
		func(a any, err error) { l.takeAttachment(token, a, err) })
}

// attach serves a call.
func (t *term) attach(of *job, r machine.AttachRequest, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		reply(nil, errNotLeader)
		return
	}
	a, err := t.machine.Attach(j.Job, r, t.member.clock())
	t.settle()
	t.work(j)
	if err != nil {
		reply(nil, err)
		return
	}
	answer := attachment{fence: t.fence, AttachAnswer: a}
	if t.member.world.mutants.has(EarlyAttach) {
		reply(answer, nil)
		return
	}
	t.store(j, func(err error) {
		if err != nil {
			reply(nil, errAway)
			return
		}
		t.journal.sync(true, func(err error) {
			if err != nil {
				reply(nil, errAway)
				return
			}
			reply(answer, nil)
		})
	})
}

type attachment struct {
	fence uint64
	machine.AttachAnswer
}

// takeAttachment begins with the session that the launcher got.
func (l *launcher) takeAttachment(token *dataset.Token, a any, err error) {
	l.attaching = false
	w := l.world()
	var ended *machine.EndedError
	switch {
	case errors.Is(err, machine.ErrDone):
		l.ended = true
		if l.current() {
			l.of.done = true
			// If no launcher announces its end, nobody waits for a rank that goes back to a checkpoint: it submits
			// another job. A process that was taken for dead may have brought the rank to its end.
			if !l.of.through && (!l.of.job.tokens || l.announce) {
				l.of.checkWhole()
			}
			l.of.job.review()
		}
		return
	case errors.As(err, &ended):
		w.fail("%s cannot attach: %v", l.name(), err)
		return
	case errors.Is(err, dataset.ErrToken) && l.of.job.follow && token != nil && l.of.job.dropped(token.Epoch):
		// The checkpoint is older than the editions that a job keeps: its run is over.
		l.ended = true
		if l.current() {
			l.of.done = true
			l.of.job.review()
		}
		return
	case err != nil:
		var early *machine.NotBegunError
		if !errors.As(err, &early) && !errors.Is(err, errAway) && !errors.Is(err, errNotLeader) {
			w.fail("%s cannot attach: %v", l.name(), err)
		}
		l.later(w.between(50*time.Millisecond, time.Second), "attach again", func() { l.attach(token) })
		return
	}
	at := a.(attachment)
	e := l.of.job.epoch(at.Epoch)
	if e == nil {
		w.fail("%s is attached to epoch %d, which there is not", l.name(), at.Epoch)
		return
	}
	l.fence = max(l.fence, at.fence)
	l.attached, l.session, l.epoch, l.mustShow, l.past = true, at.Session, e, false, false
	l.have = trained{}
	for _, r := range at.Token.Acknowledged() {
		for n := r.From; n < r.To; n++ {
			l.have.add(e, n)
		}
	}
	if l.current() {
		l.checkAttachment(at)
	}
	if l.inStep != nil && l.inStep.epoch == e { // It is trained in any case.
		l.have.add(e, l.inStep.number)
	}
	l.lease()
}

// checkAttachment checks what the leader says that a rank has: with a token what the token says, and without one
// nothing that was not trained.
func (l *launcher) checkAttachment(at attachment) {
	w, share := l.world(), l.epoch.shares[l.of.rank]
	for n := share.From; n < share.To; n++ {
		told, has := l.have.has(at.Epoch, n), l.model.has(at.Epoch, n)
		if told && !has {
			w.fail("%s is told that mini-batch %d of epoch %d is acknowledged, and never trained it", l.name(), n, at.Epoch)
			return
		}
		if has { // An acknowledgement that the leader forgot, or that no leader got.
			l.have.add(l.epoch, n)
			l.acknowledge(n)
		}
	}
	for s := range l.epoch.plan.All() {
		from, to := max(s.FirstNumber, share.From), min(s.FirstNumber+uint64(s.MiniBatches), share.To)
		if !l.resume || from >= to || !said(l.of.said[at.Epoch], from, to) || said(at.Token.Acknowledged(), from, to) {
			continue
		}
		w.fail("%s was answered that [%d, %d) of epoch %d are acknowledged, and the leader does not know it", l.name(),
			from, to, at.Epoch)
	}
	if len(at.Owned) > 0 && (at.Owned[0].From != share.From || at.Owned[len(at.Owned)-1].To != share.To) {
		w.fail("%s owns %v of epoch %d, and its share is %v", l.name(), at.Owned, at.Epoch, share)
	}
}

// reattach makes the launcher a consumer again, after its session was fenced off or forgotten. A launcher that was
// replaced ends.
func (l *launcher) reattach() {
	if l.world().mutants.has(NoReattach) {
		return
	}
	if !l.current() {
		l.dead = true
		return
	}
	var token *dataset.Token
	if l.of.job.tokens {
		token = l.tokenNow()
	} else {
		l.resume = true
	}
	l.attach(token)
}

// tokenNow returns the token of what the launcher has trained.
func (l *launcher) tokenNow() *dataset.Token {
	e := l.epoch
	if e == nil {
		if l.of.token != nil {
			return l.of.token
		}
		return l.of.job.beginning(l.of.rank)
	}
	t := &dataset.Token{Job: e.edition.digest, Epoch: e.number}
	for _, r := range l.model.ranges(e.number) {
		if r.From == 0 {
			t.Mark = r.To
		} else {
			t.Ranges = append(t.Ranges, r)
		}
	}
	return t
}

// depth is how many mini-batches a launcher has at most in its queue.
const depth = 12

// lease makes a Lease call, one after the other.
func (l *launcher) lease() {
	if l.leasing || !l.attached || l.saves {
		return
	}
	l.leasing = true
	r := machine.LeaseRequest{Session: l.session, Epoch: l.epoch.number, AnnouncesEnd: l.announce}
	if l.past {
		r.Epoch++
	}
	for _, id := range slices.Sorted(maps.Keys(l.leases)) {
		h := l.leases[id]
		if h.next < h.To {
			r.Held = append(r.Held, id)
		} else {
			r.Fetched = append(r.Fetched, id)
		}
		if l.mustShow {
			lease := h.Lease
			lease.Fetched = false
			r.Adopt = append(r.Adopt, lease)
		}
	}
	r.Blocked = len(l.queue) >= depth
	if len(r.Held) < 3 && !r.Blocked {
		r.Want = 3 - len(r.Held)
	}
	session := l.session
	l.call("lease", 20*time.Second,
		func(t *term, reply func(any, error)) { t.lease(l.of.job, r, 5*time.Second, reply) },
		func(a any, err error) {
			l.leasing = false
			if l.session != session {
				l.lease()
				return
			}
			if l.attached {
				l.takeLease(a, err)
			}
		})
}

type leaseAnswer struct {
	fence uint64
	*machine.LeaseAnswer
}

// lease serves a call.
func (t *term) lease(of *job, r machine.LeaseRequest, wait time.Duration, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		reply(nil, errNotLeader)
		return
	}
	t.lastCall++
	call := t.lastCall
	answer := func(a *machine.LeaseAnswer, err error) { reply(leaseAnswer{t.fence, a}, err) }
	a, err := t.machine.Lease(j.Job, call, r, t.member.clock())
	if a == nil && err == nil {
		t.waiting[call] = answer
		t.later(wait, "the time of a call is over", func() {
			t.machine.Expire(call, t.member.clock())
			t.settle()
		})
	} else {
		answer(a, err)
	}
	t.settle()
	t.work(j)
}

// takeLease takes the answer to a Lease call.
func (l *launcher) takeLease(a any, err error) {
	w := l.world()
	var ended *machine.EndedError
	if errors.As(err, &ended) {
		w.fail("%s: %v", l.name(), err)
		return
	}
	if err != nil {
		l.later(w.between(50*time.Millisecond, time.Second), "ask again", l.lease)
		return
	}
	got := a.(leaseAnswer)
	if got.fence < l.fence {
		l.later(100*time.Millisecond, "ask again", l.lease) // the answer of a former leader
		return
	}
	l.fence = max(l.fence, got.fence)
	if w.trace != nil {
		w.note("%s: epoch %d: %+v", l.name(), l.epoch.number, *got.LeaseAnswer)
	}
	l.mustShow = got.Adopt
	for _, id := range got.Revoked {
		delete(l.leases, id)
	}
	if l.past && (len(got.Grants) > 0 || got.EpochDone) {
		l.enter(l.of.job.epoch(l.epoch.number + 1))
	}
	for _, g := range got.Grants {
		if l.leases[g.ID] == nil && g.Epoch == l.epoch.number {
			h := &holding{g, g.From}
			l.leases[g.ID] = h
			l.fetch(h)
		}
	}
	switch {
	case got.UnknownSession:
		if !w.mutants.has(StaleSession) {
			l.reattach()
			return
		}
	case got.JobDone:
		l.endWhenSaid()
		return
	case got.EpochDone && l.epochTrained() || got.EpochDone && w.mutants.has(EpochEndsEarly):
		l.nextEpoch()
	}
	l.later(w.between(10*time.Millisecond, 200*time.Millisecond), "lease", l.lease)
}

// enter goes on with an epoch. A launcher that was put back an epoch may have trained a part of it.
func (l *launcher) enter(e *epoch) {
	l.epoch, l.past, l.have = e, false, trained{}
	l.leases, l.queue = map[uint64]*holding{}, nil
	for n, has := range l.model[e.number] {
		if has {
			l.have.add(e, uint64(n))
			l.acknowledge(uint64(n))
		}
	}
}

// epochTrained reports whether the launcher has trained its share of the epoch, and said so.
func (l *launcher) epochTrained() bool {
	share := l.epoch.shares[l.of.rank]
	for n := share.From; n < share.To; n++ {
		if !l.model.has(l.epoch.number, n) {
			return false
		}
	}
	return len(l.unsaid) == 0 && len(l.saying) == 0
}

// nextEpoch has the launcher ask for the next epoch. A follower for which the schedule has no further partitions is
// stopped.
func (l *launcher) nextEpoch() {
	if l.of.job.follow && l.of.job.epoch(l.epoch.number+1) == nil {
		l.endWhenSaid()
		return
	}
	l.past = true
}

// fetch fetches the next mini-batch of a lease.
func (l *launcher) fetch(h *holding) {
	w := l.world()
	for h.next < h.To && l.have.has(h.Epoch, h.next) && !w.mutants.has(TrainTwice) { // It was trained: the acknowledgement was lost.
		if l.model.has(h.Epoch, h.next) {
			l.acknowledge(h.next)
		}
		h.next++
	}
	if h.next >= h.To || l.leases[h.ID] != h {
		return
	}
	if len(l.queue) >= depth {
		l.later(50*time.Millisecond, "there may be room", func() { l.fetch(h) })
		return
	}
	n, e, number := w.nodeOf(h.Drive.Node), l.epoch, h.next
	answered := false
	var late *event
	answer := func(content string, err error) {
		if answered || l.dead || l.ended || l.leases[h.ID] != h || l.epoch != e {
			return
		}
		answered = true
		late.never()
		if err != nil {
			l.release(h)
			return
		}
		h.next++
		if !l.have.has(e.number, number) || w.mutants.has(TrainTwice) {
			l.have.add(e, number)
			l.queue = append(l.queue, minibatch{e, number, content})
			l.train()
		}
		if w.mutants.has(ForeignNumbers) && h.next == h.To && e.plan.MiniBatches() > h.To {
			h.To++
		}
		l.fetch(h)
	}
	whole := func() bool { return !n.alive }
	w.send(l.name()+" fetches", whole, func() {
		content, err := n.serve(e, h.Grant, number)
		w.send(n.name+" answers "+l.name(), whole, func() { answer(content, err) })
	})
	late = l.later(3*time.Second, "the fetch is given up", func() { answer("", errFetch) })
}

func (w *World) nodeOf(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	panic("a lease on no node") // a fault of this package
}

// release gives a lease back whose node has failed.
func (l *launcher) release(h *holding) {
	if l.world().mutants.has(NoRelease) {
		return
	}
	delete(l.leases, h.ID)
	r := machine.Release{Session: l.session, Leases: []uint64{h.ID}, Reason: ledger.NodeFailed, Why: "it failed"}
	l.call("release", 5*time.Second, func(t *term, reply func(any, error)) { t.release(l.of.job, r, reply) },
		func(any, error) {})
}

// release serves a call.
func (t *term) release(of *job, r machine.Release, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		reply(nil, errNotLeader)
		return
	}
	err := t.machine.Release(j.Job, r, t.member.clock())
	t.settle()
	t.work(j)
	if err != nil || !r.Through {
		reply(nil, err)
		return
	}
	t.store(j, func(err error) {
		t.work(j)
		reply(nil, err)
	})
}

// train trains with the mini-batches of the queue, one after the other.
func (l *launcher) train() {
	if l.inStep != nil || l.saves || len(l.queue) == 0 {
		return
	}
	b := l.queue[0]
	l.inStep, l.queue = &b, l.queue[1:]
	w := l.world()
	l.later(w.between(time.Millisecond, 30*time.Millisecond), "a step", func() {
		l.inStep = nil
		l.step(b)
		l.train()
	})
}

// step trains with one mini-batch.
func (l *launcher) step(b minibatch) {
	if l.current() {
		l.of.train(b.epoch, b.number, b.content)
	} else {
		l.model.add(b.epoch, b.number)
	}
	l.acknowledge(b.number)
	l.steps++
	if l.of.job.tokens && l.steps%10 == 0 {
		l.saves = true
		l.save()
	}
}

// acknowledge says that a mini-batch was trained.
func (l *launcher) acknowledge(number uint64) {
	l.unsaid = dataset.InsertNumber(l.unsaid, number)
	l.say()
}

// say makes an Acknowledge call, one after the other.
func (l *launcher) say() {
	if len(l.saying) > 0 || len(l.unsaid) == 0 || !l.attached {
		return
	}
	l.saying, l.unsaid = l.unsaid, nil
	session, epoch, numbers := l.session, l.epoch.number, l.saying
	l.call("acknowledge", 5*time.Second, func(t *term, reply func(any, error)) {
		t.acknowledge(l.of.job, session, epoch, numbers, reply)
	}, func(fence any, err error) {
		if l.session != session || !l.attached {
			return
		}
		l.saying = nil
		if err == nil {
			l.of.noteSaid(fence.(uint64), l.of.job.epoch(epoch), numbers)
		}
		switch {
		case errors.Is(err, ledger.ErrSession) && !l.world().mutants.has(StaleSession):
			l.reattach()
			return
		case err != nil:
			l.unsaid = dataset.UnionRanges(l.unsaid, numbers)
			l.later(200*time.Millisecond, "acknowledge again", l.say)
			return
		}
		l.say()
	})
}

// acknowledge serves a call.
func (t *term) acknowledge(of *job, s ledger.Session, epoch uint64, numbers []dataset.Range, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		reply(nil, errNotLeader)
		return
	}
	over, err := t.machine.Acknowledge(j.Job, s, epoch, numbers, 0, t.member.clock())
	dirty := t.machine.Ledger.Pending() > 0
	t.settle()
	t.work(j)
	if err != nil || over || t.member.world.mutants.has(EarlyAnswer) {
		reply(t.fence, err)
		return
	}
	t.journal.sync(dirty, func(err error) {
		if err != nil {
			err = errAway
		}
		reply(t.fence, err)
	})
}

// save saves a checkpoint: everything trained is acknowledged first, and the trainer waits.
func (l *launcher) save() {
	if !l.attached {
		l.saves = false
		return
	}
	if len(l.unsaid)+len(l.saying) > 0 {
		l.later(20*time.Millisecond, "save", l.save)
		return
	}
	session, e := l.session, l.epoch
	l.call("checkpoint", 5*time.Second, func(t *term, reply func(any, error)) { t.checkpoint(l.of.job, session, reply) },
		func(a any, err error) {
			l.saves = false
			if err == nil && l.session == session && l.epoch == e && l.current() {
				l.keep(a.(dataset.Token))
			}
			l.train()
			l.lease()
		})
}

// keep checks a token and keeps it, with the model.
func (l *launcher) keep(t dataset.Token) {
	w, c, share := l.world(), l.of, l.epoch.shares[l.of.rank]
	if l.epoch.number != t.Epoch || l.epoch.edition.digest != t.Job {
		w.fail("%s is in epoch %d and gets a token of epoch %d", l.name(), l.epoch.number, t.Epoch)
		return
	}
	missing := false
	for n := share.From; n < share.To; n++ {
		said := slices.ContainsFunc(t.Acknowledged(), func(r dataset.Range) bool { return r.From <= n && n < r.To })
		switch has := c.model.has(t.Epoch, n); {
		case said && !has:
			w.fail("%s was not trained with mini-batch %d of epoch %d, and its token has it", l.name(), n, t.Epoch)
			return
		case has && !said: // The leader changed after it got the acknowledgement.
			missing = true
			l.acknowledge(n)
		}
	}
	if missing {
		l.saves = true
		l.later(20*time.Millisecond, "save", l.save)
		return
	}
	if w.mutants.has(TokenOfFetched) {
		t.Mark, t.Ranges = 0, l.have.ranges(t.Epoch)
	}
	c.saved, c.token = c.model.clone(), &t
}

// checkpoint serves a call.
func (t *term) checkpoint(of *job, s ledger.Session, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		reply(nil, errNotLeader)
		return
	}
	token, err := t.machine.Checkpoint(j.Job, &s)
	if err != nil {
		reply(token, err)
		return
	}
	t.journal.sync(t.machine.Ledger.Pending() > 0, func(err error) {
		if err != nil {
			err = errAway
		}
		reply(token, err)
	})
}

// endWhenSaid ends the launcher when everything that it trained is acknowledged.
func (l *launcher) endWhenSaid() {
	if len(l.unsaid)+len(l.saying) > 0 {
		l.later(100*time.Millisecond, "end", l.endWhenSaid)
		return
	}
	if c := l.of; l.current() && c.job.tokens { // The last checkpoint is saved before the rank is through.
		c.saved, c.token = c.model.clone(), l.tokenNow()
	}
	if !l.announce {
		l.end()
		return
	}
	r := machine.Release{Session: l.session, Through: true}
	l.call("through", 5*time.Second, func(t *term, reply func(any, error)) { t.release(l.of.job, r, reply) },
		func(_ any, err error) {
			if errors.Is(err, errAway) || errors.Is(err, errNotLeader) {
				l.later(time.Second, "end", l.endWhenSaid)
				return
			}
			l.end()
		})
}

// end ends the launcher: nothing is left for it.
func (l *launcher) end() {
	if l.ended {
		return
	}
	elsewhere := l.of.through // A process that was taken for dead has attached again, and trained the rest.
	l.ended, l.of.through = true, true
	if l.current() {
		l.of.done = true
		if !elsewhere {
			l.of.checkWhole()
		}
		l.of.job.review()
	}
}
