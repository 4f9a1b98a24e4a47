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
