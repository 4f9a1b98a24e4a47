package simulation

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
)

// depth is the capacity of a launcher's queue, in mini-batches.
const depth = 12

// lease makes a Lease call if none is under way.
func (l *launcher) lease() {
	if l.leasing || !l.attached || l.saving {
		return
	}
	l.leasing = true
	r := machine.LeaseRequest{Session: l.session, Epoch: l.epoch.number, AnnouncesEnd: l.announce}
	if l.wantsNextEpoch {
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

// lease serves a Lease call.
func (t *term) lease(of *job, r machine.LeaseRequest, wait time.Duration, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		t.refuse(errNoJob, reply)
		return
	}
	t.lastCall++
	call := t.lastCall
	answer := func(a *machine.LeaseAnswer, err error) {
		switch {
		case err != nil:
			t.refuse(err, reply)
		case a.UnknownSession:
			t.confirm(reply, func() { reply(leaseAnswer{t.fence, a}, nil) })
		default:
			t.sign(j.ID, r.Session, a.Grants)
			reply(leaseAnswer{t.fence, a}, nil)
		}
	}
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

// takeLease handles the answer to a Lease call.
func (l *launcher) takeLease(a any, err error) {
	w := l.world()
	var ended *machine.EndedError
	if errors.As(err, &ended) || errors.Is(err, errNoJob) {
		w.fail("%s: %v", l.name(), err)
		return
	}
	if err != nil {
		l.later(w.between(50*time.Millisecond, time.Second), "ask again", l.lease)
		return
	}
	got := a.(leaseAnswer)
	if got.fence < l.fence {
		l.later(100*time.Millisecond, "ask again", l.lease) // A former leader sent this answer.
		return
	}
	if got.fence > l.fence { // A control plane that was restored from a backup lacks acknowledgements.
		l.fence = got.fence
		l.acknowledgeAgain()
	}
	if w.trace != nil {
		w.note("%s: epoch %d: %+v", l.name(), l.epoch.number, *got.LeaseAnswer)
	}
	l.mustShow = got.Adopt
	for _, id := range got.Revoked {
		delete(l.leases, id)
	}
	if l.wantsNextEpoch && (len(got.Grants) > 0 || got.EpochDone) {
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

// enter begins an epoch. A launcher that returned to an earlier epoch may have trained a part of the epoch.
func (l *launcher) enter(e *epoch) {
	l.epoch, l.wantsNextEpoch, l.seen = e, false, trained{}
	l.leases, l.queue, l.unacknowledged, l.acknowledging = map[uint64]*holding{}, nil, nil, nil
	l.acknowledgeAgain()
}

// acknowledgeAgain acknowledges every mini-batch of the epoch that the model was trained with.
func (l *launcher) acknowledgeAgain() {
	e := l.epoch
	for n, has := range l.model[e.number] {
		if has {
			l.seen.add(e, uint64(n))
			l.acknowledge(uint64(n))
		}
	}
}

// epochTrained reports whether the launcher has trained and acknowledged its share of the epoch.
func (l *launcher) epochTrained() bool {
	share := l.epoch.shares[l.of.rank]
	for n := share.From; n < share.To; n++ {
		if !l.model.has(l.epoch.number, n) {
			return false
		}
	}
	return len(l.unacknowledged) == 0 && len(l.acknowledging) == 0
}

// nextEpoch makes the launcher request the next epoch. A launcher of a job with follow stops if the schedule has no
// further partitions.
func (l *launcher) nextEpoch() {
	if l.of.job.follow && l.of.job.epoch(l.epoch.number+1) == nil {
		l.endWhenSaid()
		return
	}
	l.wantsNextEpoch = true
}

// fetch fetches the next mini-batch of a lease.
func (l *launcher) fetch(h *holding) {
	w := l.world()
	for h.next < h.To && l.seen.has(h.Epoch, h.next) && !w.mutants.has(TrainTwice) {
		// The acknowledgement of this mini-batch was lost.
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
		if !l.seen.has(e.number, number) || w.mutants.has(TrainTwice) {
			l.seen.add(e, number)
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
	panic("a lease on no node") // This package has a fault.
}

// release returns a lease whose node has failed.
func (l *launcher) release(h *holding) {
	if l.world().mutants.has(NoRelease) {
		return
	}
	delete(l.leases, h.ID)
	r := machine.Release{Session: l.session, Leases: []uint64{h.ID}, Reason: ledger.NodeFailed, Why: "it failed"}
	l.call("release", 5*time.Second, func(t *term, reply func(any, error)) { t.release(l.of.job, r, reply) },
		func(any, error) {})
}

// release serves a Release call.
func (t *term) release(of *job, r machine.Release, reply func(any, error)) {
	j := t.jobs[of.id]
	if j == nil {
		t.refuse(errNoJob, reply)
		return
	}
	err := t.machine.Release(j.Job, r, t.member.clock())
	t.settle()
	t.work(j)
	if err != nil {
		t.refuse(err, reply)
		return
	}
	if !r.Through {
		reply(nil, nil)
		return
	}
	t.store(j, func(err error) {
		t.work(j)
		reply(nil, err)
	})
}
