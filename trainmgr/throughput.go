package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/sdk/tensor"
)

// Step is one training step as T is measured with it. Run must return when the step has finished (a GPU's queue
// included), and must not harm the model: it works on a copy of it, or Snapshot is set.
type Step struct {
	Run func(ctx context.Context, mb *tensor.MiniBatch) error
	// Snapshot saves the model, its optimiser and its random state before the first step; restore brings them back after the last, also
	// when a step failed. Nil if Run works on a copy.
	Snapshot func() (restore func() error, err error)
}

// ThroughputOptions bound the measuring. The zero value is 2 s, at least 5 steps, after 2 that do not count.
type ThroughputOptions struct {
	Time   time.Duration // measure at least so long, 0 means 2 s
	Steps  int           // and at least so many steps, 0 means 5
	Warmup int           // steps that do not count, 0 means 2; negative means none
}

// Throughput measures T, the highest throughput of training in rows per second, by running the step on one dummy
// mini-batch again and again (PreSto IV-B). With several ranks give each its step: they run at the same time, as in training, and T
// is the slowest rank's.
func Throughput(ctx context.Context, dummy *tensor.MiniBatch, o ThroughputOptions, ranks ...Step) (float64, error) {
	if len(ranks) == 0 {
		return 0, fmt.Errorf("%w: no step to measure T with", ErrOptions)
	}
	for i, r := range ranks {
		if r.Run == nil {
			return 0, fmt.Errorf("%w: the step of rank %d has no Run: give the function that trains one step", ErrOptions, i)
		}
	}
	if o.Time <= 0 {
		o.Time = 2 * time.Second
	}
	if o.Steps <= 0 {
		o.Steps = 5
	}
	if o.Warmup == 0 {
		o.Warmup = 2
	}
	type result struct {
		t   float64
		err error
	}
	results := make(chan result, len(ranks))
	for i, r := range ranks {
		go func() {
			t, err := rankThroughput(ctx, dummy, o, r)
			if err != nil {
				err = fmt.Errorf("measure T of rank %d: %w", i, err)
			}
			results <- result{t, err}
		}()
	}
	slowest := 0.0
	var errs error
	for range ranks {
		r := <-results
		errs = errors.Join(errs, r.err)
		if slowest == 0 || r.t < slowest {
			slowest = r.t
		}
	}
	if errs != nil {
		return 0, errs
	}
	return slowest, nil
}

// rankThroughput times one rank's steps.
func rankThroughput(ctx context.Context, dummy *tensor.MiniBatch, o ThroughputOptions, s Step) (t float64, err error) {
	if s.Snapshot != nil {
		restore, err := s.Snapshot()
		if err != nil {
			return 0, fmt.Errorf("snapshot: %w", err)
		}
		defer func() {
			if rerr := restore(); rerr != nil {
				t, err = 0, errors.Join(err, fmt.Errorf("restore: %w", rerr))
			}
		}()
	}
	for range max(o.Warmup, 0) {
		if err := s.Run(ctx, dummy); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	for steps := 1; ; steps++ {
		if err := s.Run(ctx, dummy); err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if elapsed := time.Since(begin); steps >= o.Steps && elapsed >= o.Time {
			return float64(steps) * float64(dummy.Rows) / elapsed.Seconds(), nil
		}
	}
}

// Dummy makes a mini-batch of the schema's shape from nothing: labels 0 and 1 in turn, small dense values, ids spread
// over each key's embeddings, and lists of the given mean length (by key; 1 where there is none).
func Dummy(schema *tensor.Schema, rows int, meanLength map[string]float64) (*tensor.MiniBatch, error) {
	lengths := make([]int, len(schema.Keys))
	values := 0
	for f, k := range schema.Keys {
		lengths[f] = 1
		if k.List && meanLength[k.Name] > 0 {
			lengths[f] = int(meanLength[k.Name] + 0.5)
		}
		values += lengths[f] * rows
	}
	mb, err := tensor.Make(schema, rows, values)
	if err != nil {
		return nil, fmt.Errorf("dummy mini-batch: %w", err)
	}
	for i := range mb.Label {
		mb.Label[i] = float32(i & 1)
	}
	for i := range mb.Dense {
		mb.Dense[i] = float32(i%17) / 16
	}
	at := 0
	for f, k := range schema.Keys {
		n := k.NumEmbeddings
		if n <= 0 {
			n = 1
		}
		for i := range lengths[f] * rows {
			id := int64(i) * 2654435761 % n
			if schema.IDs == tensor.Int32 {
				mb.Values32[at] = int32(id)
			} else {
				mb.Values64[at] = id
			}
			at++
		}
		if mb.Lengths != nil {
			for r := range rows {
				mb.Lengths[f*rows+r] = int32(lengths[f])
			}
		}
	}
	for i := range mb.Weights {
		mb.Weights[i] = 1
	}
	return mb, nil
}
