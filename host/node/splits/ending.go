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

// Sweep closes runs that nobody asks of any more.
func (s *Table) Sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, p := range s.past {
		if now.Sub(p.ended) > s.o.Idle {
			delete(s.past, key)
		}
	}
	for _, r := range s.open {
		patience := s.o.Idle
		if len(r.conns) == 0 {
			patience = s.o.Abandoned
		}
		if len(r.waiting) == 0 && r.out == 0 && now.Sub(r.asked) > patience {
			s.o.Log.Info("split closed: nobody asks for it", "digest", host.ShortDigest(r.key.Job), "split", r.key.Place, "drive", r.key.Drive, "made", len(r.ready))
			s.end(r, ErrStopped)
		}
	}
}

// halt ends the runs that match, cuts off their responses, and waits for both, and for runs that ended before and still close their streams.
func (s *Table) halt(match func(Key) bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.open {
		if match(key) {
			s.end(r, err)
		}
	}
	for p := range s.out {
		if match(p.run.key) {
			p.abort()
		}
	}
	busy := func() bool {
		for p := range s.out {
			if match(p.run.key) {
				return true
			}
		}
		for r := range s.live {
			if match(r.key) {
				return true
			}
		}
		return false
	}
	for busy() {
		s.changed.Wait()
	}
}

// Finish refuses a job's splits and ends those that run; then f, which may close what they used; then the job may come back.
func (s *Table) Finish(job dataset.Digest, f func() error) error {
	s.mu.Lock()
	s.refused[job] = struct{}{}
	s.mu.Unlock()
	s.halt(func(k Key) bool { return k.Job == job }, fmt.Errorf("job %s: %w", job, api.ErrUnknownJob))
	err := f()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, job)
	for key := range s.past {
		if key.Job == job {
			delete(s.past, key)
		}
	}
	return err
}

// SendAway refuses a drive's splits, with why, and ends those that run. nil takes splits again.
func (s *Table) SendAway(drive string, why error) {
	s.mu.Lock()
	if why == nil {
		delete(s.away, drive)
		s.mu.Unlock()
		return
	}
	s.away[drive] = why
	s.mu.Unlock()
	if !errors.Is(why, ErrDraining) {
		s.halt(func(k Key) bool { return k.Drive == drive }, why)
	}
}

// Drain refuses new splits on the node, or takes them again.
func (s *Table) Drain(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = on
}

// Running is how many splits are open, on one drive or, with "", on all.
func (s *Table) Running(drive string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for key := range s.open {
		if drive == "" || key.Drive == drive {
			n++
		}
	}
	return n
}

// Holding is what is buffered.
func (s *Table) Holding() Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Settle waits until no split is open and no response is being written, or ctx ends.
func (s *Table) Settle(ctx context.Context) error { return s.SettleDrive(ctx, "") }

// SettleDrive is Settle for one drive.
func (s *Table) SettleDrive(ctx context.Context, drive string) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		n := 0
		for key := range s.open {
			if drive == "" || key.Drive == drive {
				n++
			}
		}
		for p := range s.out {
			if drive == "" || p.run.key.Drive == drive {
				n++
			}
		}
		switch {
		case n == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%d splits and responses still run: %w", n, context.Cause(ctx))
		}
		s.changed.Wait()
	}
}

// Close ends everything.
func (s *Table) Close() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.halt(func(Key) bool { return true }, ErrStopped)
}
