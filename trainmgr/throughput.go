package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/sdk/tensor"
)

// Step is one training step with which T is measured. Run must return when the step has finished (a GPU's queue
// included). Run must not harm the model: it works on a copy of the model, or Snapshot is set.
type Step struct {
	Run func(ctx context.Context, mb *tensor.MiniBatch) error
	// Snapshot saves the model, its optimiser and its random state before the first step. restore brings them back
	// after the last step, also if a step failed. Snapshot is nil if Run works on a copy.
	Snapshot func() (restore func() error, err error)
}

// ThroughputOptions bound the measurement of T. The zero value measures at least 2 s and at least 5 steps, after 2
// steps that do not count.
type ThroughputOptions struct {
	Time   time.Duration // least time to measure, 0 means 2 s
	Steps  int           // least number of steps, 0 means 5
	Warmup int           // steps that do not count, 0 means 2; negative means none

	Now func() time.Time // the clock that is measured on; nil: time.Now
}

// Throughput measures T, the highest throughput of training in rows per second: it runs the step on one dummy
// mini-batch again and again (PreSto IV-B). With several ranks it takes the step of each rank. The ranks run at the
// same time, as in training, and T is the slowest rank's.
func Throughput(ctx context.Context, dummy *tensor.MiniBatch, o ThroughputOptions, ranks ...Step) (float64, error) {
	if len(ranks) == 0 {
		return 0, fmt.Errorf("%w: no step to measure T with", ErrOptions)
	}
	for i, r := range ranks {
		if r.Run == nil {
			return 0, fmt.Errorf("%w: the step of rank %d has no Run: give the function that trains one step",
				ErrOptions, i)
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
	if o.Now == nil {
		o.Now = time.Now
	}
	type result struct {
		rowsPerSecond float64
		err           error
	}
	results := make(chan result, len(ranks))
	for i, step := range ranks {
		go func() {
			rowsPerSecond, err := rankThroughput(ctx, dummy, o, step)
			if err != nil {
				err = fmt.Errorf("measure T of rank %d: %w", i, err)
			}
			results <- result{rowsPerSecond, err}
		}()
	}
	slowest := 0.0
	var errs error
	for range ranks {
		r := <-results
		errs = errors.Join(errs, r.err)
		if slowest == 0 || r.rowsPerSecond < slowest {
			slowest = r.rowsPerSecond
		}
	}
	if errs != nil {
		return 0, errs
	}
	return slowest, nil
}

// rankThroughput times the steps of one rank.
func rankThroughput(ctx context.Context, dummy *tensor.MiniBatch, o ThroughputOptions,
	step Step) (rowsPerSecond float64, err error) {
	if step.Snapshot != nil {
		restore, err := step.Snapshot()
		if err != nil {
			return 0, fmt.Errorf("snapshot: %w", err)
		}
		defer func() {
			if restoreErr := restore(); restoreErr != nil {
				rowsPerSecond, err = 0, errors.Join(err, fmt.Errorf("restore: %w", restoreErr))
			}
		}()
	}
	for range max(o.Warmup, 0) {
		if err := step.Run(ctx, dummy); err != nil {
			return 0, err
		}
	}
	begin := o.Now()
	for steps := 1; ; steps++ {
		if err := step.Run(ctx, dummy); err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if elapsed := o.Now().Sub(begin); steps >= o.Steps && elapsed >= o.Time {
			return float64(steps) * float64(dummy.Rows) / elapsed.Seconds(), nil
		}
	}
}

// Dummy makes a mini-batch of the schema's shape without any data: labels 0 and 1 in turn, small dense values, ids
// spread over each key's embeddings, and lists of the mean length that meanLength gives for their key, or 1.
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
	for i := range mb.Dense16 {
		mb.Dense16[i] = uint16(math.Float32bits(float32(i%17)/16) >> 16) // exact: five bits of fraction
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
	if mb, err = mb.Deduplicate(); err != nil {
		return nil, fmt.Errorf("dummy mini-batch: %w", err)
	}
	return mb, nil
}
