package remote

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote/profile"
)

// ProfileStatus describes a rank's profile.
type ProfileStatus = profile.Status

// noteTaken counts a mini-batch that the trainer takes.
func (r *rank) noteTaken(mb *tensor.MiniBatch) {
	if !r.profiler.NoteTaken(mb) {
		return
	}
	_, result, took := r.profiler.Ended()
	if r.profiler.Status().LeftOut {
		r.client.options.Logger.Info("no profile: the job takes less than five times as long", "job", r.id,
			"rank", r.options.Rank)
		return
	}
	if result == nil {
		r.client.options.Logger.Info("no profile: one side made too few mini-batches", "job", r.id,
			"rank", r.options.Rank, "took_seconds", took.Seconds())
		return
	}
	r.client.options.Logger.Info("profile", "job", r.id, "rank", r.options.Rank, "took_seconds", took.Seconds(),
		"gthp", result.Gthp, "lthp", result.Lthp, "pcycle", result.Pcycle, "rthp", result.Rthp, "ocycle", result.Ocycle,
		"tcycle", result.Tcycle, "cores", result.Cores)
	r.stored.put(r, result)
}

// sample returns the rank's counters.
func (r *rank) sample() profile.Sample {
	s := profile.Sample{At: time.Now(), CPU: processors.Time()}
	r.mu.Lock()
	l := r.leases
	r.mu.Unlock()
	if l != nil {
		queue := l.delivery.Status().Queue
		s.Stall, s.Queued = queue.Stall, queue.MiniBatches
	}
	return s
}

// measuredStep returns a step that adds up the rows and the CPU time of its runs.
func measuredStep(step trainmgr.Step, rows *int64, cpu *time.Duration) trainmgr.Step {
	run := step.Run
	if run != nil {
		step.Run = func(ctx context.Context, mb *tensor.MiniBatch) error {
			before := processors.Time()
			err := run(ctx, mb)
			*cpu += processors.Time() - before
			*rows += int64(mb.Rows)
			return err
		}
	}
	return step
}
