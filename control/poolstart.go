package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/control/hook"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
)

// joinPatience is how long a worker that was started may take to join before another one is started in its place.
const joinPatience = 2 * time.Minute

// recordWrites is the number of records that one transaction writes at most.
const recordWrites = 100

// expectedWorker is a worker that the leader has not heard from yet: the hook was called to start the worker, or an
// earlier leader knew it. An expected worker counts as one that is starting.
type expectedWorker struct {
	until   time.Time // when the leader gives the worker up
	workers int       // workers of any reach of its node
	jobs    []string  // ids of the jobs that wanted the worker
	kept    bool      // the worker has a record in the store, until it joins or is given up
	started bool      // the hook has succeeded
	again   bool      // an earlier leader called the hook and did not see it succeed
}

// restore reads the workers that earlier leaders started, drained or knew. Nothing else runs yet.
func (p *pool) restore() error {
	ctx, cancel := context.WithTimeout(p.ctx, nodeTime)
	defer cancel()
	now := time.Now()
	p.heard, p.adopted = now.Add(p.o.DeadAfter), now
	for _, j := range p.jobs {
		if !j.Phase().Ended() {
			p.adopted = now.Add(p.o.SessionTTL)
		}
	}
	err := p.term.Scan(ctx, record.PoolPrefix, func(key string, value []byte) error {
		name := strings.TrimPrefix(key, record.PoolPrefix)
		var w record.PooledWorker
		err := json.Unmarshal(value, &w)
		if err == nil && !strings.HasPrefix(name, poolPrefix) {
			err = errors.New("it is not a name that the control plane gives")
		}
		if err != nil {
			p.logger.Warn("a stored worker cannot be read and is passed over", "key", key, "error", err)
			return nil
		}
		until := now.Add(min(max(w.Until.Sub(now), p.o.DeadAfter), joinPatience)) // clocks of members differ
		p.starting[name] = expectedWorker{until: until, workers: 1, jobs: w.Jobs, kept: true, started: w.Started,
			again: !w.Started}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range p.fleet.Records(now, false) {
		name, workers := r.Status.Name, sharedWorkers(r.Status)
		_, expected := p.starting[name]
		switch {
		case p.fleet.Alive(name) || workers == 0:
		case p.fleet.Asked(name):
			if strings.HasPrefix(name, poolPrefix) {
				p.stopping[name] = false
			}
		case !expected:
			p.starting[name] = expectedWorker{until: p.heard, workers: workers}
		}
	}
	return nil
}

// reviewExpected forgets expected workers that have joined, and gives up those that took too long. p.mu is held.
func (p *pool) reviewExpected(now time.Time) {
	var settled []string
	for name, w := range p.starting {
		switch {
		case p.fleet.Alive(name):
		case now.After(w.until):
			if w.kept {
				p.logger.Warn("a worker that was started has not joined", "node", name, "waited", joinPatience)
			}
		default:
			continue
		}
		delete(p.starting, name)
		if w.kept {
			settled = append(settled, name)
		}
	}
	if len(settled) > 0 {
		p.wg.Go(func() {
			if err := p.storeWorkers(settled); err != nil && p.ctx.Err() == nil {
				p.logger.Warn("not stored", "what", "workers that have joined", "error", err)
			}
		})
	}
}

// startAgain calls the hook for workers that an earlier leader was starting when it ended. The hook gets the same
// names, so that no second worker is started if the earlier call succeeded. p.mu is held.
func (p *pool) startAgain(now time.Time) {
	if now.Before(p.heard) {
		return // a worker that runs joins before
	}
	var names, jobs []string
	for name, w := range p.starting {
		if w.again {
			w.again, w.until = false, now.Add(joinPatience)
			p.starting[name] = w
			names, jobs = append(names, name), append(jobs, w.jobs...)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	slices.Sort(jobs)
	jobs = slices.Compact(jobs)
	p.logger.Info("workers are started again: an earlier leader did not see the hook succeed", "names", names)
	p.wg.Go(func() { p.callStart(names, jobs) })
}

// callStart stores the names of workers and then calls the hook to start them. If a leader ends meanwhile, the next
// leader finds the names.
func (p *pool) callStart(names, jobs []string) {
	err := p.storeWorkers(names)
	if err == nil {
		err = p.hook.Run(p.ctx, hook.Call{Action: hook.Start, Names: names, Jobs: jobs, Control: p.s.url})
	}
	if p.ctx.Err() != nil {
		return
	}
	if err != nil {
		p.logger.Error("start workers", "names", names, "error", err)
	}
	p.mu.Lock()
	for _, name := range names {
		if w, expected := p.starting[name]; expected && err == nil {
			w.started = true
			p.starting[name] = w
		} else {
			delete(p.starting, name) // autoscale.DecidePool decides again
		}
	}
	p.mu.Unlock()
	if err := p.storeWorkers(names); err != nil && p.ctx.Err() == nil {
		p.logger.Warn("not stored", "what", "workers that were started", "error", err)
	}
}

// storeWorkers writes the records of workers as they are now: a worker that is not expected any more has none.
func (p *pool) storeWorkers(names []string) error {
	p.recording.Lock()
	defer p.recording.Unlock()
	for part := range slices.Chunk(names, recordWrites) {
		ops := make([]store.Op, 0, len(part))
		p.mu.Lock()
		for _, name := range part {
			w, expected := p.starting[name]
			if !expected {
				ops = append(ops, store.Delete(record.PoolPrefix+name))
				continue
			}
			b, err := json.Marshal(record.PooledWorker{Started: w.started, Until: w.until, Jobs: w.jobs})
			if err != nil {
				p.mu.Unlock()
				return fmt.Errorf("worker %s: %w", name, err)
			}
			ops = append(ops, store.Put(record.PoolPrefix+name, b))
		}
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(p.ctx, nodeTime)
		err := p.commit(ctx, ops...)
		cancel()
		if err != nil {
			return fmt.Errorf("store the names of workers: %w", err)
		}
	}
	return nil
}
