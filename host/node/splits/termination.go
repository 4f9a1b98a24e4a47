package splits

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
)

// Sweep closes splits that no client requests any more.
func (t *Table) Sweep(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, h := range t.history {
		if now.Sub(h.ended) > t.o.Idle {
			delete(t.history, key)
		}
	}
	for _, s := range t.open {
		patience := t.o.Idle
		if len(s.peers) == 0 {
			patience = t.o.Abandoned
		}
		if len(s.waiting) == 0 && s.lent == 0 && now.Sub(s.lastRequest) > patience {
			t.o.Log.Info("split closed: nobody asks for it", "digest", host.ShortDigest(s.key.Job),
				"split", s.key.Place,
				"drive", s.key.Drive, "made", len(s.ready))
			t.end(s, ErrStopped)
		}
	}
}

// endAll ends the splits that match and cuts off their responses. It returns when both have ended, and when splits that
// had ended before have closed their streams.
func (t *Table) endAll(match func(Key) bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, s := range t.open {
		if match(key) {
			t.end(s, err)
		}
	}
	for r := range t.responses {
		if match(r.split.key) {
			r.abort()
		}
	}
	for t.unfinishedWork(match) {
		t.changed.Wait()
	}
}

// unfinishedWork reports whether a response of a split that matches is being written, or its goroutine runs. mu is
// held.
func (t *Table) unfinishedWork(match func(Key) bool) bool {
	for r := range t.responses {
		if match(r.split.key) {
			return true
		}
	}
	for s := range t.unfinished {
		if match(s.key) {
			return true
		}
	}
	return false
}

// Finish refuses the splits of a job and ends those that are open. Then it calls f, which may close the processors
// that they used. After that the job may come back.
func (t *Table) Finish(job dataset.Digest, f func() error) error {
	t.mu.Lock()
	t.refusedJobs[job] = struct{}{}
	t.mu.Unlock()
	t.endAll(func(k Key) bool { return k.Job == job }, fmt.Errorf("job %s: %w", job, api.ErrUnknownJob))
	err := f()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.refusedJobs, job)
	for key := range t.history {
		if key.Job == job {
			delete(t.history, key)
		}
	}
	return err
}

// RefuseDrive refuses a drive's splits, with a reason, and ends those that are open. With a reason that wraps
// ErrDraining the open splits go on. A nil reason takes splits again.
func (t *Table) RefuseDrive(drive string, reason error) {
	t.mu.Lock()
	if reason == nil {
		delete(t.refusedDrives, drive)
		t.mu.Unlock()
		return
	}
	t.refusedDrives[drive] = reason
	t.mu.Unlock()
	if !errors.Is(reason, ErrDraining) {
		t.endAll(func(k Key) bool { return k.Drive == drive }, reason)
	}
}

// Drain refuses new splits on the node, or takes them again.
func (t *Table) Drain(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draining = on
}

// Running returns how many splits are open, on one drive or, with "", on all.
func (t *Table) Running(drive string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for key := range t.open {
		if drive == "" || key.Drive == drive {
			n++
		}
	}
	return n
}

// Holding returns the number and the bytes of the fragments that were made and not given back.
func (t *Table) Holding() Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.accounts.total
}

// Settle waits until no split is open and no response is being written, or ctx ends.
func (t *Table) Settle(ctx context.Context) error { return t.SettleDrive(ctx, "") }

// SettleDrive is Settle for one drive.
func (t *Table) SettleDrive(ctx context.Context, drive string) error {
	stop := context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.changed.Broadcast()
	})
	defer stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		n := 0
		for key := range t.open {
			if drive == "" || key.Drive == drive {
				n++
			}
		}
		for r := range t.responses {
			if drive == "" || r.split.key.Drive == drive {
				n++
			}
		}
		switch {
		case n == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%d splits and responses still run: %w", n, context.Cause(ctx))
		}
		t.changed.Wait()
	}
}

// Close ends everything.
func (t *Table) Close() {
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	t.endAll(func(Key) bool { return true }, ErrStopped)
}
