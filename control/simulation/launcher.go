package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/lifecycle"
	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/sdk/dataset"
)

// launcher is a process that consumes a rank. Like trainmgr/remote, it attaches, takes leases, fetches, trains,
// acknowledges and saves checkpoints.
type launcher struct {
	of       *consumer
	number   int
	dead     bool
	announce bool
	resume   bool // The launcher resumes behind the acknowledged mini-batches.

	member         int    // The launcher calls this member.
	fence          uint64 // The greatest fence of an answer.
	attached       bool
	attaching      bool
	session        ledger.Session
	epoch          *epoch
	model          trained             // Only the current process shares the model of the consumer.
	seen           trained             // The numbers of the epoch that the launcher does not fetch again.
	leases         map[uint64]*holding // The key is the ID of the lease.
	queue          []minibatch         // The fetched mini-batches that the trainer has not taken.
	inStep         *minibatch          // The trainer trains this mini-batch. Nil means that the trainer waits.
	unacknowledged []dataset.Range     // No call has acknowledged these numbers.
	acknowledging  []dataset.Range     // The call under way acknowledges these numbers.
	leasing        bool
	saving         bool // The trainer waits for a checkpoint.
	mustShow       bool // A new leader requests the leases.
	steps          int
	wantsNextEpoch bool // The launcher has trained its epoch and requests leases of the next one.
	ended          bool
}

// holding is a lease that a launcher holds, and its progress.
type holding struct {
	ledger.Grant
	next uint64 // The next number to fetch.
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
	if c.ended {
		return
	}
	w.launched++
	l := &launcher{
		of: c, number: w.launched, announce: c.job.announces, resume: resume, member: w.random.IntN(len(w.members)),
		seen: trained{}, leases: map[uint64]*holding{},
	}
	c.process, l.model = l, c.model
	l.attach(token)
}

// crashLauncher kills a launcher. Another process resumes later, from the checkpoint or behind the acknowledged
// mini-batches.
func (w *World) crashLauncher() {
	j := w.jobs[w.random.IntN(len(w.jobs))]
	c := j.consumers[w.random.IntN(len(j.consumers))]
	l := c.process
	if l == nil || c.ended {
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
			l.model = l.model.clone() // The consumer loses the further training of this process.
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

// describe describes the state of a launcher.
func (l *launcher) describe() string {
	if !l.attached {
		return fmt.Sprintf("%s attaches (%v)", l.name(), l.attaching)
	}
	return fmt.Sprintf("%s is in epoch %d, holds %d leases, has %d in its queue and %d to acknowledge", l.name(),
		l.epoch.number, len(l.leases), len(l.queue), len(l.unacknowledged)+len(l.acknowledging))
}

// later schedules do, which does not run if the launcher has died or ended.
func (l *launcher) later(d time.Duration, what string, do func()) *event {
	return l.world().after(d, l.name()+": "+what, func() {
		if !l.dead && !l.ended {
			do()
		}
	})
}

// errAway reports that a call had no answer in time.
var errAway = errors.New("no answer")

// errNotLeader reports that a member does not lead.
var errNotLeader = errors.New("this member does not lead")

// errNoJob reports that the leader has no such job, which ends a launcher's run.
var errNoJob = errors.New("there is not such a job")

// call sends a request to a member. serve runs on the member and calls reply at most once. done gets the answer, or an
// error when the patience has elapsed.
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

// attach requests a session for the rank.
func (l *launcher) attach(token *dataset.Token) {
	if l.attaching {
		return
	}
	l.attaching, l.attached = true, false
	l.leases, l.queue, l.unacknowledged, l.acknowledging = map[uint64]*holding{}, nil, nil, nil
	r := machine.AttachRequest{
		Rank: l.of.rank, Token: token, Resumes: l.resume, AnnouncesEnd: l.announce,
	}
	r.Run, _ = lifecycle.RunOf(l.of.job.id) // The name is short.
	l.call("attach", 10*time.Second, func(t *term, reply func(any, error)) { t.attach(l.of.job, r, reply) },
		func(a any, err error) { l.takeAttachment(token, a, err) })
}

// attach serves an Attach call.
func (t *term) attach(of *job, r machine.AttachRequest, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		t.refuse(errNoJob, reply)
		return
	}
	a, err := t.machine.Attach(j.Job, r, t.member.clock())
	t.settle()
	t.work(j)
	if err != nil {
		t.refuse(err, reply)
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

// takeAttachment handles the answer to an Attach call.
func (l *launcher) takeAttachment(token *dataset.Token, a any, err error) {
	l.attaching = false
	w := l.world()
	var ended *machine.EndedError
	switch {
	case errors.Is(err, machine.ErrDone):
		l.ended = true
		if l.current() {
			l.of.ended = true
			// A job whose launchers announce no end does not wait for a rank that resumes from a checkpoint. A process
			// that the schedule counts as dead may have completed the rank.
			if !l.of.completed && (!l.of.job.tokens || l.announce) {
				l.of.checkWhole()
			}
			l.of.job.review()
		}
		return
	case errors.As(err, &ended):
		w.fail("%s cannot attach: %v", l.name(), err)
		return
	case errors.Is(err, dataset.ErrToken) && l.of.job.follow && token != nil && l.of.job.dropped(token.Epoch):
		// The job has dropped the edition of the checkpoint, so the run cannot resume.
		l.ended = true
		if l.current() {
			l.of.ended = true
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
	l.attached, l.session, l.epoch, l.mustShow, l.wantsNextEpoch = true, at.Session, e, false, false
	l.seen = trained{}
	for _, r := range at.Token.Acknowledged() {
		for n := r.From; n < r.To; n++ {
			l.seen.add(e, n)
		}
	}
	if l.current() {
		l.checkAttachment(at)
	}
	if l.inStep != nil && l.inStep.epoch == e { // The step under way will train this mini-batch.
		l.seen.add(e, l.inStep.number)
	}
	l.lease()
}

// checkAttachment compares the acknowledged numbers of the answer with the model, and with the acknowledgements that
// leaders have confirmed.
func (l *launcher) checkAttachment(at attachment) {
	w, share := l.world(), l.epoch.shares[l.of.rank]
	for n := share.From; n < share.To; n++ {
		told, has := l.seen.has(at.Epoch, n), l.model.has(at.Epoch, n)
		if told && !has {
			w.fail("%s is told that mini-batch %d of epoch %d is acknowledged, and never trained it", l.name(), n, at.Epoch)
			return
		}
		if has { // The leader does not have this acknowledgement.
			l.seen.add(l.epoch, n)
			l.acknowledge(n)
		}
	}
	if l.resume {
		l.of.checkKnown("the answer to "+l.name(), at.Token)
	}
	if len(at.Owned) > 0 && (at.Owned[0].From != share.From || at.Owned[len(at.Owned)-1].To != share.To) {
		w.fail("%s owns %v of epoch %d, and its share is %v", l.name(), at.Owned, at.Epoch, share)
	}
}

// reattach requests a session again after the former session has ended. A launcher that the schedule has replaced ends
// instead.
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

// tokenNow returns the token of the mini-batches that the launcher has trained.
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
