package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// Run is a run of rows of one partition, cut into mini-batches of Batch rows; the last may be short.
type Run struct {
	Partition   *partition.Partition
	First, Rows int64 // rows [First, First+Rows); Rows must be at least 1
	Batch       int
}

// Processor runs one lowered pipeline on one device. It is safe for concurrent use.
type Processor interface {
	// Open begins a stream. It waits until fewer than Options.Streams are open, or ctx ends. The stream ends with ctx.
	Open(ctx context.Context, run Run) (Stream, error)
	// Stats returns the counters of all streams so far.
	Stats() Stats
	// Close ends all streams and gives the device's memory back. Lent mini-batches are invalid after it.
	Close() error
}

// Stream yields the mini-batches of a run, in order. It has one consumer.
type Stream interface {
	// Next returns the next mini-batch, or io.EOF after the last. The caller releases the mini-batch. If Next's own ctx
	// ends first, Next returns ctx's error and the stream goes on. Any other error ends the stream, and later calls
	// return it again. A panic while the mini-batch is made is a *PanicError: it ends the stream, and the processor
	// opens no other stream; streams that are open go on.
	Next(ctx context.Context) (*tensor.MiniBatch, error)
	// Close ends the stream and waits for its work to end. Mini-batches that were handed out stay valid.
	Close() error
}

// Options of a processor. The zero value works.
type Options struct {
	// SLM is how many bytes of the device's memory to use; 0 is all of it.
	SLM uint64
	// Streams is how many streams may be open at once, each with an equal part of the memory. 0 is two, or one where
	// that would leave a stream less than MinStreamMemory.
	Streams int
	// StreamMemory is how many bytes of its part of the memory a stream uses as long as mini-batches and pages fit in
	// them. A stream that needs more goes on in the rest of its part. So memory that a device touches only when it is
	// used stays small. 0, and more than half of a part, is all of the part.
	StreamMemory uint64
	// Coalesce is the largest read, in bytes, that joins neighbouring column chunks; 0 is slicer.DefaultCoalesce. A
	// drive with an expensive seek wants more (DPP: 1.25 MiB).
	Coalesce uint64
	// Gap is the number of unneeded bytes that a joined read may read between two chunks.
	Gap uint64
	// FromHost makes this host read the windows of every partition and store them in the device's memory; the
	// partitions' extents are then those of another drive. Without FromHost the host does so only for partitions
	// without extents.
	FromHost bool
	// Copy never lends the device's memory: every mini-batch has its own.
	Copy bool
	// Sync computes a mini-batch only when Next asks for it, instead of one ahead.
	Sync bool
}

// MinStreamMemory is the least memory of a stream for two of them to share a device by default.
const MinStreamMemory = 128 << 20

const (
	lentBuffers = 2 // mini-batches lent at most by one stream
	freeBuffers = 2 // output buffers that stay free when one is lent
	ringBuffers = lentBuffers + freeBuffers
)

// runner is the only implementation of Processor: its streams carry out slices on a target.
type runner struct {
	target  target.Target
	limits  target.Limits
	program *slicer.Program
	schema  *tensor.Schema
	opts    Options
	columns []string // paths of the leaves that the program reads

	memory       uint64            // bytes in use
	initialBytes uint64            // bytes of a share that its stream uses before the rest; 0: all of them
	idleShares   chan *memoryShare // shares that no stream has
	streams      int               // most streams at once
	stats        counters

	mu          sync.Mutex // guards what follows
	learned     slicer.Learned
	openStreams map[*stream]struct{}
	closed      bool
	closeErr    error
	panicErr    error // a stream panicked
}

// Start makes a processor of a target. The processor owns the target: Close closes it. If Start fails, it closes the
// target itself. The program is written to the target's memory once. schema describes the mini-batches and must
// agree with the program's output.
//
// Drives have NewProcessor; other engines call this.
func Start(
	ctx context.Context, t target.Target, prog *program.Program, schema *tensor.Schema, opts Options,
) (Processor, error) {
	r, err := startRunner(ctx, t, prog, schema, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a processor on %s: %w", t.Limits().Engine, err), t.Close())
	}
	return r, nil
}

func startRunner(
	ctx context.Context, t target.Target, prog *program.Program, schema *tensor.Schema, opts Options,
) (*runner, error) {
	limits := t.Limits()
	if opts.FromHost && !limits.Host {
		return nil, errors.New("it takes no windows from the host")
	}
	prepared, err := slicer.Prepare(prog, limits)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(prog.Output, schema); err != nil {
		return nil, err
	}
	r := &runner{
		target: t, limits: limits, program: prepared, schema: schema, opts: opts, openStreams: map[*stream]struct{}{},
	}
	for i := range prog.Columns {
		r.columns = append(r.columns, prog.Columns[i].Name)
	}
	if err := r.shareMemory(); err != nil {
		return nil, err
	}
	if err := t.Store(ctx, 0, prepared.Image); err != nil {
		return nil, fmt.Errorf("store the program: %w", err)
	}
	return r, nil
}

// shareMemory divides the memory behind the program among streams.
func (r *runner) shareMemory() error {
	r.memory = alignDown(r.limits.Memory)
	if r.opts.SLM > 0 {
		r.memory = alignDown(min(r.memory, r.opts.SLM))
	}
	head := r.program.ImageSpan().Len
	r.streams = r.opts.Streams
	if r.streams <= 0 {
		r.streams = 1
		if r.memory > head && (r.memory-head)/2 >= MinStreamMemory {
			r.streams = 2
		}
	}
	n := uint64(r.streams)
	if least := head + n*slicer.LeastWorkspace(r.program.MaxTasks); r.memory < least {
		return &slicer.MemoryError{Partition: "program", RowGroup: -1, Need: least, Have: r.memory, Streams: r.streams}
	}
	share := alignDown((r.memory - head) / n)
	r.idleShares = make(chan *memoryShare, r.streams)
	if n := alignDown(r.opts.StreamMemory); n >= slicer.LeastWorkspace(r.program.MaxTasks) && n <= share/2 {
		r.initialBytes = n
	}
	for i := range n {
		r.idleShares <- r.newShare(target.Span{Addr: head + i*share, Len: share})
	}
	return nil
}

// newShare makes the share of one stream in a span of memory.
func (r *runner) newShare(span target.Span) *memoryShare {
	if r.initialBytes == 0 {
		return &memoryShare{workspace: slicer.NewWorkspace(span, r.program.MaxTasks)}
	}
	rest := target.Span{Addr: span.Addr + r.initialBytes, Len: span.Len - r.initialBytes}
	span.Len = r.initialBytes
	return &memoryShare{
		workspace: slicer.NewWorkspace(span, r.program.MaxTasks),
		rest:      &memoryShare{workspace: slicer.NewWorkspace(rest, r.program.MaxTasks)},
	}
}

// alignDown rounds n down to the alignment of tensors.
func alignDown(n uint64) uint64 { return n &^ (program.Align - 1) }

// scaleMemory makes a *slicer.MemoryError name the memory of all streams and the program instead of one stream's. A
// stream fails for want of memory in the rest of its share only.
func (r *runner) scaleMemory(err error) error {
	if err == nil {
		return nil // before anything is allocated
	}
	if e := (*slicer.MemoryError)(nil); errors.As(err, &e) {
		e.Need, e.Have, e.Streams = r.program.ImageSpan().Len+uint64(r.streams)*(r.initialBytes+e.Need), r.memory, r.streams
	}
	return err
}

// checkSchema checks that a schema describes a program's output.
func checkSchema(out program.Output, s *tensor.Schema) error {
	if err := s.Validate(); err != nil {
		return err
	}
	ids := tensor.Int64
	if out.IDs == program.IDs32 {
		ids = tensor.Int32
	}
	dense := tensor.Float32
	if out.DenseType == program.DenseBFloat16 {
		dense = tensor.BFloat16
	}
	switch {
	case out.Dense > 0 && dense != s.DenseDType():
		return fmt.Errorf("%w: the program's dense is %v, the schema's is %v", tensor.ErrShape, dense, s.DenseDType())
	case out.Label != s.Label, int(out.Dense) != len(s.Dense), int(out.Keys) != len(s.Keys), out.Weights != s.Weights,
		out.Keys > 0 && (ids != s.IDs || out.Fixed != s.Fixed()):
		return fmt.Errorf("%w: the program's output (label %t, %d dense, %d keys of %v, fixed %t) "+
			"is not the schema's (label %t, %d dense, %d keys of %v, fixed %t)",
			tensor.ErrShape, out.Label, out.Dense, out.Keys, out.IDs, out.Fixed,
			s.Label, len(s.Dense), len(s.Keys), s.IDs, s.Fixed())
	}
	return nil
}

// Open implements Processor.
func (r *runner) Open(ctx context.Context, run Run) (Stream, error) {
	p := run.Partition
	switch {
	case p == nil:
		return nil, errors.New("open a stream: no partition")
	case run.Batch < 1 || run.Batch > tensor.MaxRows:
		return nil, fmt.Errorf("%s: open a stream: a batch of %d rows, want 1 to %d", p.Name, run.Batch, tensor.MaxRows)
	case run.First < 0 || run.Rows < 1 || run.First > p.Rows || run.Rows > p.Rows-run.First:
		return nil, fmt.Errorf("%s: open a stream: rows %d+%d of %d", p.Name, run.First, run.Rows, p.Rows)
	case p.Source != r.program.Source:
		return nil, fmt.Errorf("%s: open a stream: it is %v, the pipeline reads %v", p.Name, p.Source, r.program.Source)
	}
	var share *memoryShare
	select {
	case share = <-r.idleShares:
	default:
		select {
		case share = <-r.idleShares:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: open a stream: wait for one of %d to end: %w", p.Name, r.streams, context.Cause(ctx))
		}
	}
	s, err := r.beginStream(ctx, share, run)
	if err != nil {
		r.idleShares <- share
		return nil, err
	}
	return s, nil
}

// beginStream begins a stream in a share of the memory.
func (r *runner) beginStream(ctx context.Context, share *memoryShare, run Run) (Stream, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, err := newMaker(r, share, run, &r.learned)
	if err != nil {
		return nil, err
	}
	if r.closed {
		return nil, fmt.Errorf("%s: open a stream: %w", run.Partition.Name, ErrClosed)
	}
	if r.panicErr != nil {
		return nil, fmt.Errorf("%s: open a stream: start a new processor, since of this one: %w",
			run.Partition.Name, r.panicErr)
	}
	s := newStream(ctx, m, run.Partition.Expect(r.columns, run.First, run.Rows))
	r.openStreams[s] = struct{}{}
	return s, nil
}

// refuseStreams makes every later Open fail with an error.
func (r *runner) refuseStreams(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.panicErr == nil {
		r.panicErr = why
	}
}

// removeStream takes back the memory that a stream held.
func (r *runner) removeStream(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.openStreams, s)
	r.learned.Merge(s.maker.slicer.Learned())
	r.idleShares <- s.maker.memory
}

// Stats implements Processor.
func (r *runner) Stats() Stats { return r.stats.snapshot() }

// Close implements Processor.
func (r *runner) Close() error {
	r.mu.Lock()
	if r.closed {
		defer r.mu.Unlock()
		return r.closeErr
	}
	r.closed = true
	var open []*stream
	for s := range r.openStreams {
		open = append(open, s)
	}
	r.mu.Unlock()
	for _, s := range open {
		_ = s.Close()
	}
	err := r.target.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeErr = err
	return err
}
