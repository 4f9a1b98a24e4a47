package processor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// maker makes the mini-batches of one stream: it carries out a slicer's steps on the target. It has one owner at a
// time: the stream's goroutine, or Next.
type maker struct {
	runner    *runner
	memory    *memoryShare
	slicer    *slicer.Slicer
	partition *partition.Partition
	run       Run

	// Memory that is used again for each step.
	execution target.Execution
	result    program.Result
	block     []byte // a result block that was loaded

	fedByHost bool // the host reads the windows and stores them in the device's memory
}

func newMaker(r *runner, m *memoryShare, run Run, learned *slicer.Learned) (*maker, error) {
	begun := &maker{
		runner: r, memory: m, partition: run.Partition, run: run, execution: target.Execution{Partition: run.Partition},
		fedByHost: r.opts.FromHost || r.limits.Feeds(run.Partition),
	}
	return begun, begun.beginAt(run.First, learned)
}

// beginAt makes the slicer of the run's rows from a row on, with which a mini-batch begins, in the maker's memory.
func (m *maker) beginAt(first int64, learned *slicer.Learned) error {
	r, buffers := m.runner, ringBuffers
	if r.opts.Copy {
		buffers = 1
	}
	m.memory.reclaimBuffers()
	s, err := slicer.New(slicer.Config{
		Program: r.pipeline.program, Limits: r.limits, Memory: m.memory.workspace, Learned: learned,
		Options: slicer.Options{
			Coalesce: r.opts.Coalesce, Gap: r.opts.Gap, Buffers: buffers, Direct: r.target.Direct(m.partition),
			FromHost: m.fedByHost,
		},
	}, m.partition, slicer.Rows{First: first, Count: m.run.First + m.run.Rows - first, Batch: m.run.Batch,
		FirstBatch: m.run.firstBatchAt(first)})
	if err == nil {
		m.slicer = s
	}
	return err
}

// makeNext makes one mini-batch, whose fetch may still be under way. It returns io.EOF after the last mini-batch. A
// mini-batch that does not fit in the memory that the stream used so far is begun again in the rest of the stream's
// share.
func (m *maker) makeNext(ctx context.Context) (*pendingBatch, error) {
	b, err := m.makeInMemory(ctx)
	for m.memory.rest != nil && errors.As(err, new(*slicer.MemoryError)) {
		first := m.slicer.FirstRow()
		m.memory = m.memory.rest
		if err = m.beginAt(first, m.slicer.Learned()); err == nil {
			b, err = m.makeInMemory(ctx)
		}
	}
	return b, m.runner.memory.scaleError(err)
}

// makeInMemory makes one mini-batch in the memory that the stream uses now. Its *slicer.MemoryError names that memory.
func (m *maker) makeInMemory(ctx context.Context) (*pendingBatch, error) {
	if !m.slicer.Ended() && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for {
		m.memory.reclaimBuffers()
		step, err := m.slicer.Next()
		if err != nil {
			return nil, err
		}
		switch step := step.(type) {
		case *slicer.ReadIndex:
			m.slicer.Index(m.partition.ReadPageIndex(step.RowGroup, step.Leaf, step.Row))
		case *slicer.Relocate:
			err = m.relocate(ctx, step)
		case *slicer.Execute:
			err = m.execute(ctx, step)
		case *slicer.Done:
			needed := int64(step.Needed)
			b, err := m.takeOutput(ctx, step)
			if err == nil {
				b.needed = needed
			}
			return b, err
		case *slicer.End:
			return nil, io.EOF
		}
		if err != nil {
			m.slicer.Abandon()
			return nil, err
		}
	}
}

// rowsInMaking names the rows of the mini-batch in the making.
func (m *maker) rowsInMaking() string {
	return fmt.Sprintf("rows %d+%d", m.slicer.FirstRow(), m.slicer.BatchRows())
}

// relocate copies a mini-batch in the making to a larger place.
func (m *maker) relocate(ctx context.Context, step *slicer.Relocate) error {
	parts := make([][]byte, len(step.Moves))
	for i, move := range step.Moves {
		parts[i] = alignedBytes(move.Len)
		if err := m.runner.target.Load(ctx, move.From, parts[i]); err != nil {
			return fmt.Errorf("%s: move a mini-batch to a larger place: %w", m.partition.Name, err)
		}
	}
	for i, move := range step.Moves {
		if err := m.runner.target.Store(ctx, move.To, parts[i]); err != nil {
			return fmt.Errorf("%s: move a mini-batch to a larger place: %w", m.partition.Name, err)
		}
	}
	return nil
}

// execute lets the target execute a slice, and hands the result to the slicer.
func (m *maker) execute(ctx context.Context, step *slicer.Execute) error {
	x, stats := &m.execution, &m.runner.stats
	step.Slice.TablesChecked = m.runner.tablesChecked.Load()
	x.Moves, x.Ahead, x.Ranges, x.Args = step.Moves, step.Ahead, step.Ranges, wire.AppendSlice(x.Args[:0], step.Slice)
	outcome, err := m.runner.target.Execute(ctx, x)
	stats.countTraffic(step.Traffic, m.fedByHost)
	if err != nil {
		where := ""
		if u := (*target.UnreadBlockError)(nil); errors.As(err, &u) {
			if where = m.slicer.ColumnsAt(u.Device); where != "" {
				where = ": " + where
			}
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s%s: %s: %w", m.partition.Name, where, m.rowsInMaking(), err)
	}
	start := time.Now()
	if err := m.readResult(ctx, step.Ranges[target.RangeResult], len(step.Slice.Tasks), outcome.State); err != nil {
		return err
	}
	stats.fetch.Add(int64(time.Since(start)))
	stats.countResult(outcome, &m.result)
	if m.result.State == program.Idle && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if m.result.AbsentKey.Given && m.result.State == program.BadData {
		return m.absentKey()
	}
	if len(m.runner.pipeline.program.LookupTables) > 0 && m.result.State < program.BadSlice &&
		m.result.State != program.Idle {
		m.runner.tablesChecked.Store(true)
	}
	return m.slicer.Result(&m.result)
}

// readResult reads the result block. A slice that failed has one too.
func (m *maker) readResult(ctx context.Context, at target.Span, tasks int, state program.State) error {
	size := uint64(wire.ResultSize(tasks))
	b, ok := m.runner.target.View(target.Span{Addr: at.Addr, Len: size})
	if !ok {
		if uint64(cap(m.block)) < at.Len {
			m.block = make([]byte, at.Len)
		}
		b = m.block[:size]
		if err := m.runner.target.Load(ctx, at.Addr, b); err != nil {
			return fmt.Errorf("%s: read a result: %w", m.partition.Name, err)
		}
	}
	fail := func(format string, args ...any) error {
		return &target.EngineError{Partition: m.partition.Name, State: state, Message: fmt.Sprintf(format, args...)}
	}
	if err := wire.DecodeResult(&m.result, b); err != nil {
		return fail("%v", err)
	}
	if m.result.State != state || len(m.result.Tasks) != tasks && state < program.BadSlice {
		return fail("the result says %v and has %d tasks, want %d", m.result.State, len(m.result.Tasks), tasks)
	}
	return nil
}

// takeOutput turns a buffer into a mini-batch. The mini-batch is lent if the memory is mapped and buffers stay free,
// and copied otherwise. If the host reads the partition's windows, windows and tensors share one link. A mini-batch
// is then fetched while the slices of the next one execute, as long as buffers stay free.
func (m *maker) takeOutput(ctx context.Context, done *slicer.Done) (*pendingBatch, error) {
	r, out := m.runner, &m.runner.pipeline.program.Output
	size := max(out.Size(done.Rows, done.Values), program.Align)
	extent := size
	if out.Weights {
		extent = done.Layout.Weights + 4*done.Values
	}
	view, mapped := r.target.View(target.Span{Addr: done.Buffer.Span.Addr, Len: extent})
	if mapped && !r.opts.Copy && m.memory.mayLend() {
		memory, buffer := m.memory, done.Buffer
		b := tensor.New(r.pipeline.schema, int(done.Rows), func() { memory.returnBuffer(buffer) })
		setTensors(b, done.Layout, done.Values, view)
		r.stats.bytesLent.Add(b.Bytes())
		return &pendingBatch{batch: b}, nil
	}
	memory := r.hostMemory.get(size)
	own := memory[:size]
	at, _ := out.LayoutIn(done.Rows, size)
	b := tensor.NewRecycled(r.pipeline.schema, int(done.Rows), func() { r.hostMemory.put(memory) })
	setTensors(b, at, done.Values, own)
	f := &fetch{
		target: r.target, stats: &r.stats, buffer: done.Buffer, runs: bufferRuns(out, done, at, size), to: own,
		place: fmt.Sprintf("%s: rows %d+%d", m.partition.Name, m.slicer.FirstRow()-int64(done.Rows), done.Rows),
	}
	if mapped {
		f.from = view
	}
	if m.fedByHost && !mapped && !r.opts.Sync && m.memory.mayLend() {
		return f.startCopying(ctx, b, m.memory), nil
	}
	defer m.memory.workspace.Release(done.Buffer)
	if err := f.copyRuns(ctx); err != nil {
		return nil, err
	}
	return &pendingBatch{batch: b}, nil
}
