package control

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/control/lifecycle"
	"github.com/millrace/millrace/trainmgr/control/record"
	"github.com/millrace/millrace/trainmgr/control/store"
)

// runJob takes a job from where it stands to its end. One goroutine a job.
func (l *leader) runJob(j *job) {
	defer l.wg.Done()
	ticker := time.NewTicker(l.o.ScaleEvery)
	defer ticker.Stop()
	for {
		for again := true; again; {
			duty := l.duty(j)
			if duty == lifecycle.Retire {
				l.retire(j)
				return
			}
			again = l.discharge(j, duty)
		}
		select {
		case <-ticker.C:
			l.scale(j)
			l.measureJoined(j)
		case <-j.wake:
		case <-l.ctx.Done():
			return
		}
		l.mu.Lock()
		j.Review()
		l.mu.Unlock()
	}
}

// duty returns what the job's goroutine has to do next. A state that was stored a moment ago is looked at again when a
// second has gone by.
func (l *leader) duty(j *job) lifecycle.Duty {
	l.mu.Lock()
	defer l.mu.Unlock()
	duty := j.Duty(time.Now())
	if duty == lifecycle.Rest && j.Unwritten() {
		time.AfterFunc(time.Second, j.poke)
	}
	return duty
}

// discharge carries out a duty of a job, without the lock. It reports whether the next one may follow at once: not after
// a failure, and not where there was nothing to do.
func (l *leader) discharge(j *job, duty lifecycle.Duty) bool {
	var err error
	switch duty {
	case lifecycle.Prepare:
		l.prepareJob(j)
	case lifecycle.Measure:
		l.measureJob(j)
	case lifecycle.Store:
		if err = l.storeState(l.ctx, j); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("the job's state was not stored", "job", j.ID, "error", err)
		}
	case lifecycle.Commit:
		if err = l.commitState(j); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("the job's state was not stored; trying again", "job", j.ID, "error", err)
		}
	case lifecycle.Confirm:
		if err = l.confirmDelivery(j); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("the job's end could not be stored; trying again", "job", j.ID, "error", err)
		}
	case lifecycle.StoreGeneration:
		if err = l.storeNextGeneration(j); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("the job's end could not be stored; trying again", "job", j.ID, "error", err)
		}
	default:
		return false
	}
	return err == nil && l.ctx.Err() == nil
}

// happen has an event happen to a job's life, with its effects.
func (l *leader) happen(event func(now time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	event(now)
	l.settle(now)
}

// prepareJob has the nodes prepare the generation that the job begins with, or goes on with.
func (l *leader) prepareJob(j *job) {
	l.mu.Lock()
	g := j.generations[j.Preparing()]
	l.mu.Unlock()
	err := l.prepareAll(j, g)
	if l.ctx.Err() != nil {
		return // the next leader begins again
	}
	l.happen(func(now time.Time) {
		if err != nil {
			j.PrepareFailed(err.Error(), now)
		} else {
			j.Prepared()
		}
	})
}

// measureJob measures P of the drives and decides how many of them the job begins with.
func (l *leader) measureJob(j *job) {
	l.mu.Lock()
	g := j.latest()
	l.mu.Unlock()
	var p map[string]float64
	err := l.patiently(j, func() (err error) {
		p, err = l.measureAll(j, g)
		return err
	})
	if l.ctx.Err() != nil {
		return // the next leader begins again
	}
	l.happen(func(now time.Time) {
		if j.Phase().Ended() {
			return
		}
		var a allocation.Allocation
		if err == nil {
			a, err = l.allocate(j, g, p, j.spec.TRowsPerSecond, now)
		}
		if err != nil {
			j.Fail(err.Error(), now)
			return
		}
		j.Measured(p, j.spec.TRowsPerSecond, a)
	})
}

// confirmDelivery makes the last acknowledgements durable: a job that is done has nothing to deliver, whoever leads.
func (l *leader) confirmDelivery(j *job) error {
	if err := l.sync(l.ctx, true); err != nil {
		return err
	}
	l.happen(j.Confirmed)
	return nil
}

// storeNextGeneration stores the data of a further generation.
func (l *leader) storeNextGeneration(j *job) error {
	l.mu.Lock()
	g := j.generations[j.Preparing()]
	l.mu.Unlock()
	ops, err := storeGeneration(j, g)
	if err == nil {
		err = l.commitAll(l.ctx, ops)
	}
	l.happen(func(time.Time) {
		if err != nil {
			j.GenerationDropped()
		} else {
			j.GenerationStored(len(ops))
		}
	})
	return err
}

// commitState stores the state that follows, and then lets the job go on to it.
func (l *leader) commitState(j *job) error {
	err := l.writeState(l.ctx, j, true)
	l.happen(func(time.Time) {
		if err != nil {
			j.CommitFailed()
		} else {
			j.Committed()
		}
	})
	return err
}

// storeState stores where a job stands, unless that is stored.
func (l *leader) storeState(ctx context.Context, j *job) error {
	return l.writeState(ctx, j, false)
}

// writeState stores where a job stands, or where it is about to stand. One write at a time, so that the state that is
// stored last is the last one.
func (l *leader) writeState(ctx context.Context, j *job, next bool) error {
	j.storing.Lock()
	defer j.storing.Unlock()
	ops, ended, err := l.stateOps(j, next)
	if err == nil && ended { // nothing will be resumed from these
		ops = append(ops, store.DeletePrefix(record.Key(j.ID, "data/")), store.DeletePrefix(record.Key(j.ID, "e")),
			store.Delete(record.Key(j.ID, "ranks")))
	}
	if err == nil && len(ops) > 0 {
		err = l.commit(ctx, ops...)
	}
	if err != nil {
		l.mu.Lock()
		j.StoreFailed()
		l.mu.Unlock()
	}
	return err
}

// stateOps renders a job's state and decisions. There is nothing to write where a state is stored already, or the job is
// forgotten.
func (l *leader) stateOps(j *job, next bool) (ops []store.Op, ended bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs[j.ID] != j || !next && !j.Unwritten() {
		return nil, false, nil
	}
	s := j.Storing(time.Now())
	if next {
		s = j.StoringNext(time.Now())
	}
	state, err := put(record.Key(j.ID, "state"), s)
	if err != nil {
		return nil, false, err
	}
	ops = append(ops, state)
	if len(j.decisions) > 0 {
		list := make([]json.RawMessage, len(j.decisions))
		for i, d := range j.decisions {
			list[i] = d
		}
		decisions, err := put(record.Key(j.ID, "decisions"), list)
		if err != nil {
			return nil, false, err
		}
		ops = append(ops, decisions)
	}
	return ops, s.Phase.Ended(), nil
}

// loads says what every drive of which P is known holds of a generation. l.mu is held.
func (l *leader) loads(g *generation, p map[string]float64) []allocation.Worker {
	rows := map[string]int64{}
	var order []string
	for i, holders := range l.fleet.Holders(g.data.Manifest) {
		measured := int64(0)
		for _, h := range holders {
			if p[driveName(h)] > 0 {
				measured++
			}
		}
		for _, h := range holders {
			name := driveName(h)
			if p[name] <= 0 {
				continue
			}
			if _, ok := rows[name]; !ok {
				order = append(order, name)
			}
			rows[name] += g.data.Manifest.Partitions[i].Rows / measured
		}
	}
	list := make([]allocation.Worker, len(order))
	for i, name := range order {
		list[i] = allocation.Worker{Name: name, RowsPerSecond: p[name], Rows: rows[name]}
	}
	return list
}

// allocate decides how many drives a job starts with: ceil(T/P). l.mu is held.
func (l *leader) allocate(j *job, g *generation, p map[string]float64, t float64, now time.Time) (allocation.Allocation, error) {
	a, err := allocation.Allocate(t, l.loads(g, p), int(j.spec.MaxDrives))
	if err != nil {
		return a, err
	}
	l.logger.Info("allocated drives", "job", j.ID, "drives", a.Drives, "wanted", a.Wanted, "t_rows_per_second", t,
		"expected_stall_seconds", a.ExpectedStall.Seconds(), "note", a.Note)
	return a, l.allow(j, a.Drives, now)
}

// allow tells the ledger how many drives a job may run. l.mu is held.
func (l *leader) allow(j *job, drives int, now time.Time) error {
	j.allowedDrives = drives
	return l.ledger.Allocate(j.ID, drives, now)
}

// retire tells the nodes that a job has ended, and forgets old ones.
func (l *leader) retire(j *job) {
	ctx, cancel := context.WithTimeout(l.ctx, 2*nodeTime)
	defer cancel()
	for _, g := range j.generations {
		l.finishGeneration(ctx, j, g)
	}
	if err := l.forget(ctx, l.o.History); err != nil && ctx.Err() == nil {
		l.logger.Warn("forget old jobs", "error", err)
	}
}

// finishGeneration has nodes forget a generation, unless another job is of the same digest. A job that begins meanwhile
// waits, to be prepared again.
func (l *leader) finishGeneration(ctx context.Context, j *job, g *generation) {
	handing := l.handed(g.Digest)
	handing.Lock()
	defer handing.Unlock()
	l.mu.Lock()
	var nodes []string
	if !l.lives.Uses(g.Digest) {
		l.fleet.Live(func(s *apiv1.NodeStatus) {
			if a := l.nodes[s.Name]; a != nil && a.prepared[g.Digest] {
				nodes = append(nodes, s.Name)
				delete(a.prepared, g.Digest)
			}
		})
	}
	l.mu.Unlock()
	for _, n := range nodes {
		err := l.finishOn(ctx, n, g.Digest)
		if err != nil && ctx.Err() == nil {
			l.logger.Warn("finish a job on a node", "job", j.ID, "node", n, "error", err)
		}
	}
}

// handed is held, shared, while a job of the digest is handed to a node, and alone while one is taken back from nodes:
// two jobs may follow each other with one digest.
func (l *leader) handed(digest dataset.Digest) *sync.RWMutex {
	return &l.handing[digest[0]%byte(len(l.handing))]
}
