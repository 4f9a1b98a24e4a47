package control

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/control/record"
	"github.com/millrace/millrace/trainmgr/control/store"
)

// run takes a job from where it stands to its end. One goroutine a job.
func (l *leader) run(j *job) {
	defer l.wg.Done()
	if err := l.startJob(j); err != nil {
		if l.ctx.Err() != nil {
			return // the next leader begins again
		}
		l.mu.Lock()
		l.end(j, record.Failed, err.Error(), time.Now())
		l.mu.Unlock()
	}
	ticker := time.NewTicker(l.o.ScaleEvery)
	defer ticker.Stop()
	for {
		if l.step(j) {
			l.finish(j)
			return
		}
		select {
		case <-ticker.C:
			l.scale(j)
			l.measureJoined(j)
		case <-j.wake:
		case <-l.ctx.Done():
			return
		}
	}
}

// step does what is due of a job that was started; true when it has ended.
func (l *leader) step(j *job) bool {
	l.mu.Lock()
	finished, over := j.finished, j.Phase.Ended()
	l.mu.Unlock()
	if finished && !over {
		if err := l.epochsDone(j); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("the job's end could not be stored; trying again", "job", j.ID, "error", err)
		}
	}
	l.mu.Lock()
	due := j.dirty && (j.urgent || time.Since(j.stored) >= time.Second)
	l.mu.Unlock()
	if due {
		if err := l.storeState(l.ctx, j); err != nil && l.ctx.Err() == nil {
			l.logger.Warn("the job's state was not stored", "job", j.ID, "error", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.dirty && !j.Phase.Ended() { // too soon: look again when a second has gone by
		time.AfterFunc(time.Second, j.poke)
	}
	return j.Phase.Ended() && (!j.dirty || l.ctx.Err() != nil)
}

// startJob prepares, measures and allocates, unless an earlier leader did.
func (l *leader) startJob(j *job) error {
	l.mu.Lock()
	at, g := j.Phase, j.latest()
	l.mu.Unlock()
	if at != record.Preparing {
		return nil
	}
	if err := l.prepareAll(j, g); err != nil {
		return err
	}
	l.mu.Lock()
	if j.Phase.Ended() {
		l.mu.Unlock()
		return nil
	}
	l.set(j, record.Measuring, "")
	l.mu.Unlock()
	if err := l.storeState(l.ctx, j); err != nil {
		l.logger.Warn("the job's state was not stored", "job", j.ID, "error", err)
	}
	var p map[string]float64
	err := l.patiently(j, func() (err error) {
		p, err = l.measureAll(j, g)
		return err
	})
	if err != nil {
		return err
	}
	now := time.Now()
	l.mu.Lock()
	j.P, j.T = p, j.spec.TRowsPerSecond
	err = l.allocate(j, g, now)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	// That it runs is durable before a rank can acknowledge anything: a leader that found it being measured would begin
	// with nothing delivered.
	for {
		if err = l.storeAs(l.ctx, j, func(s *record.State) { s.Phase = record.Running }); err == nil || l.ctx.Err() != nil {
			break
		}
		l.logger.Warn("the job's state was not stored; trying again", "job", j.ID, "error", err)
		sleep(l.ctx, l.o.ScaleEvery)
	}
	if err != nil {
		return err
	}
	now = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if j.Phase.Ended() {
		return nil
	}
	if err := l.begin(j, j.first(), now); err != nil {
		return err
	}
	l.set(j, record.Running, "")
	l.ready(now)
	return nil
}

// loads says what every drive that was measured holds of a generation. l.mu is held.
func (l *leader) loads(j *job, g *generation) []allocation.Worker {
	rows := map[string]int64{}
	var order []string
	for i, holders := range l.fleet.Holders(g.data.Manifest) {
		n := int64(0)
		for _, h := range holders {
			if j.P[driveName(h)] > 0 {
				n++
			}
		}
		for _, h := range holders {
			name := driveName(h)
			if j.P[name] <= 0 {
				continue
			}
			if _, ok := rows[name]; !ok {
				order = append(order, name)
			}
			rows[name] += g.data.Manifest.Partitions[i].Rows / n
		}
	}
	list := make([]allocation.Worker, len(order))
	for i, name := range order {
		list[i] = allocation.Worker{Name: name, RowsPerSecond: j.P[name], Rows: rows[name]}
	}
	return list
}

// allocate decides how many drives a job starts with: ceil(T/P). l.mu is held.
func (l *leader) allocate(j *job, g *generation, now time.Time) error {
	a, err := allocation.Allocate(j.T, l.loads(j, g), int(j.spec.MaxDrives))
	if err != nil {
		return err
	}
	j.Allocation, j.dirty = a, true
	l.logger.Info("allocated drives", "job", j.ID, "drives", a.Drives, "wanted", a.Wanted, "t_rows_per_second", j.T, "expected_stall_seconds", a.ExpectedStall.Seconds(), "note", a.Note)
	return l.allow(j, a.Drives, now)
}

// allow tells the ledger how many drives a job may run. l.mu is held.
func (l *leader) allow(j *job, drives int, now time.Time) error {
	j.scaled = drives
	return l.ledger.Allocate(j.ID, drives, now)
}

// storeState stores where a job stands.
func (l *leader) storeState(ctx context.Context, j *job) error { return l.storeAs(ctx, j, nil) }

// storeAs stores where a job stands, or, with change, where it is about to stand; then a job that has ended meanwhile stays ended.
// One at a time, so that what is stored last is what was so last.
func (l *leader) storeAs(ctx context.Context, j *job, change func(*record.State)) error {
	j.storing.Lock()
	defer j.storing.Unlock()
	l.mu.Lock()
	if l.jobs[j.ID] != j || change == nil && !j.dirty {
		l.mu.Unlock()
		return nil // forgotten, or somebody else has stored it
	}
	j.Stays, j.Runs = j.staying(), j.runs()
	next := j.State
	if change != nil && !next.Phase.Ended() {
		change(&next)
	}
	over := next.Phase.Ended()
	state, err := put(record.Key(j.ID, "state"), next)
	ops := []store.Op{state}
	if err == nil && len(j.decisions) > 0 {
		list := make([]json.RawMessage, len(j.decisions))
		for i, d := range j.decisions {
			list[i] = d
		}
		var decisions store.Op
		decisions, err = put(record.Key(j.ID, "decisions"), list)
		ops = append(ops, decisions)
	}
	j.dirty, j.urgent, j.stored = false, false, time.Now()
	l.mu.Unlock()
	if err == nil {
		if over { // nothing will be resumed from these
			ops = append(ops, store.DeletePrefix(record.Key(j.ID, "data/")), store.DeletePrefix(record.Key(j.ID, "e")), store.Delete(record.Key(j.ID, "ranks")))
		}
		err = l.commit(ctx, ops...)
	}
	if err != nil {
		l.mu.Lock()
		j.dirty, j.urgent = true, over
		l.mu.Unlock()
	}
	return err
}

// finish tells the nodes that a job has ended, and forgets old ones.
func (l *leader) finish(j *job) {
	ctx, cancel := context.WithTimeout(l.ctx, 2*nodeTime)
	defer cancel()
	for _, g := range j.generations {
		l.finishGeneration(ctx, j, g)
	}
	if err := l.forget(ctx, l.o.History); err != nil && ctx.Err() == nil {
		l.logger.Warn("forget old jobs", "error", err)
	}
}

// finishGeneration has nodes forget a generation, unless another job is of the same digest. A job that begins meanwhile waits, to be prepared anew.
func (l *leader) finishGeneration(ctx context.Context, j *job, g *generation) {
	handing := l.handed(g.Digest)
	handing.Lock()
	defer handing.Unlock()
	l.mu.Lock()
	var nodes []string
	if !l.inUse(g.Digest) {
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

// handed is held, shared, while a job of the digest is handed to a node, and alone while one is taken back from nodes: two jobs
// may follow each other with one digest.
func (l *leader) handed(digest dataset.Digest) *sync.RWMutex {
	return &l.handing[digest[0]%byte(len(l.handing))]
}

// inUse reports whether a job that runs has the digest: two of one pipeline, data and options share it. l.mu is held.
func (l *leader) inUse(digest dataset.Digest) bool {
	for _, j := range l.jobs {
		if j.Phase.Ended() {
			continue
		}
		for _, g := range j.generations {
			if g.Digest == digest {
				return true
			}
		}
		if j.coming != nil && j.coming.Digest == digest {
			return true
		}
	}
	return false
}
