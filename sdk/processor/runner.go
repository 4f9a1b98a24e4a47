package processor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// runner is the only implementation of Processor: its streams carry out slices on a target.
type runner struct {
	target   target.Target
	limits   target.Limits
	pipeline *preparedPipeline
	opts     Options
	memory   *memoryPool // The pool of the target's memory.
	streams  streamRegistry
	stats    counters
	// hostMemory holds mini-batches that are copied. They may outlive the runner.
	hostMemory hostMemory
	// tablesChecked says that the target verified the program's lookup tables in its memory.
	tablesChecked atomic.Bool
}

func startRunner(
	ctx context.Context, t target.Target, prog *program.Program, schema *tensor.Schema, opts Options,
) (*runner, error) {
	limits := t.Limits()
	if opts.FromHost && !limits.Host {
		return nil, errors.New("it takes no windows from the host")
	}
	pipeline, err := preparePipeline(prog, schema, limits)
	if err != nil {
		return nil, err
	}
	memory, err := newMemoryPool(limits.Memory, pipeline.program, opts)
	if err != nil {
		return nil, err
	}
	if err := t.Store(ctx, 0, pipeline.program.Image); err != nil {
		return nil, fmt.Errorf("store the program: %w", err)
	}
	if err := storeTables(ctx, t, pipeline.program); err != nil {
		return nil, err
	}
	return &runner{
		target: t, limits: limits, pipeline: pipeline, opts: opts, memory: memory,
		streams: streamRegistry{open: map[*stream]struct{}{}},
	}, nil
}

// Open implements Processor.
func (r *runner) Open(ctx context.Context, run Run) (Stream, error) {
	p := run.Partition
	switch {
	case p == nil:
		return nil, errors.New("open a stream: no partition")
	case run.Selected != nil:
		return nil, fmt.Errorf("%s: open a stream: it is over selected rows: use WithSelections", p.Name)
	case run.First < 0 || run.Rows < 1 || run.First > p.Rows || run.Rows > p.Rows-run.First:
		return nil, fmt.Errorf("%s: open a stream: rows %d+%d of %d", p.Name, run.First, run.Rows, p.Rows)
	case p.Source != r.pipeline.program.Source:
		return nil, fmt.Errorf("%s: open a stream: it is %v, the pipeline reads %v", p.Name, p.Source,
			r.pipeline.program.Source)
	}
	if err := run.checkBatches(); err != nil {
		return nil, err
	}
	share, err := r.memory.takeShare(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: open a stream: %w", p.Name, err)
	}
	s, err := r.streams.begin(ctx, r, share, run)
	if err != nil {
		r.memory.giveBack(share)
		return nil, err
	}
	return s, nil
}

// Stats implements Processor.
func (r *runner) Stats() Stats { return r.stats.snapshot() }

// Close implements Processor.
func (r *runner) Close() error { return r.streams.closeAll(r.target.Close) }
