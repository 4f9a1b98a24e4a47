package processor

import (
	"context"
	"crypto/sha256"
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
	// Stats tells what all streams did so far.
	Stats() Stats
	// Close ends all streams and gives the device's memory back. Lent mini-batches are invalid after it.
	Close() error
}

// Stream yields the mini-batches of a run, in order. It has one consumer.
type Stream interface {
	// Next returns the next mini-batch, io.EOF behind the last. The caller releases it. When Next's own ctx ends first it
	// returns ctx's error and the stream goes on; any other error is the stream's end, and is returned again. A panic on the way is a *PanicError: it
	// ends the stream, and the processor opens no other; those that are open go on.
	Next(ctx context.Context) (*tensor.MiniBatch, error)
	// Close ends the stream and waits for its work to end. Mini-batches that were handed out stay valid.
	Close() error
}

// Options of a processor. The zero value works.
type Options struct {
	// SLM is how many bytes of the device's memory to use; 0 is all of it.
	SLM uint64
	// Streams is how many streams may be open at once, each with an equal part of the memory. 0 is two, or one where that
	// would leave a stream less than MinStreamMemory.
	Streams int
	// Coalesce is the largest read, in bytes, that joins neighbouring column chunks; 0 is DefaultCoalesce. A drive with a
	// dear seek wants more (DPP: 1.25 MiB).
	Coalesce uint64
	// Gap is how many bytes between two chunks a joined read may bring in vain.
	Gap uint64
	// Copy never lends the device's memory: every mini-batch has its own.
	Copy bool
	// Sync computes a mini-batch only when Next asks for it, instead of one ahead.
	Sync bool
}

// Bounds of Options.
const (
	// MinStreamMemory is the least memory of a stream for two of them to share a device by default.
	MinStreamMemory = 128 << 20
	// DefaultCoalesce suits flash, where a second read costs little.
	DefaultCoalesce = 64 << 10
)

const (
	lentSlots  = 2 // mini-batches lent at most by one stream
	freeSlots  = 2 // output slots that stay free when one is lent
	ringSlots  = lentSlots + freeSlots
	sliceTasks = 1024     // most tasks of a slice
	sliceBytes = 64 << 20 // most window bytes of a slice of more than one task: a command takes well under a second
)

// runner is the one Processor: it plans slices for a target.
type runner struct {
	target target.Target
	lim    target.Limits
	prog   *program.Program
	schema *tensor.Schema
	opts   Options
	digest [32]byte
	length uint64 // of the marshalled program
	memory uint64 // bytes in use
	tasks  int    // most tasks of a slice

	lanes  chan *lane // free ones
	shares int        // number of lanes
	stats  counters

	mu      sync.Mutex // guards what follows
	learned []learned  // by program column
	streams map[*stream]struct{}
	closed  bool
	end     error
	broken  error // a stream panicked
}

// learned is what was seen of a column so far: a guess for chunks not yet looked at.
type learned struct {
	page uint64 // bytes of a page in the file
	rows int64  // rows of a page
	room uint64 // most bytes of an unpacked page
	dict uint64 // most bytes of a decoded dictionary
	ask  bool   // memory is short: a room that is not known is asked for, not guessed
}

// Start makes a processor of a target, which it owns from then on, also when it fails: Close closes it. The program is
// written to the target's memory once. schema describes the mini-batches and must agree with the program's output.
//
// Drives have NewProcessor; other engines call this.
func Start(ctx context.Context, t target.Target, prog *program.Program, schema *tensor.Schema, opts Options) (Processor, error) {
	r, err := start(ctx, t, prog, schema, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a processor on %s: %w", t.Limits().Engine, err), t.Close())
	}
	return r, nil
}

func start(ctx context.Context, t target.Target, prog *program.Program, schema *tensor.Schema, opts Options) (*runner, error) {
	if err := prog.Validate(); err != nil {
		return nil, err
	}
	if err := agree(prog.Output, schema); err != nil {
		return nil, err
	}
	prog = separate(prog)
	image := prog.Marshal()
	r := &runner{
		target: t, lim: t.Limits(), prog: prog, schema: schema, opts: opts,
		digest: sha256.Sum256(image), length: uint64(len(image)),
		learned: make([]learned, len(prog.Columns)), streams: map[*stream]struct{}{},
		tasks: min(sliceTasks, 2*len(prog.Columns)+16),
	}
	if r.lim.Tasks > 0 {
		r.tasks = min(r.tasks, r.lim.Tasks)
	}
	if prog.Source != program.Parquet {
		r.tasks = 1
	}
	if r.opts.Coalesce == 0 {
		r.opts.Coalesce = DefaultCoalesce
	}
	r.memory = down(r.lim.Memory)
	if opts.SLM > 0 {
		r.memory = down(min(r.memory, opts.SLM))
	}
	head := up(r.length)
	r.shares = opts.Streams
	if r.shares <= 0 {
		r.shares = 1
		if r.memory > head && (r.memory-head)/2 >= MinStreamMemory {
			r.shares = 2
		}
	}
	for i := range prog.Columns {
		if n := prog.Parts(i); n > r.tasks {
			return nil, fmt.Errorf("%s takes %d tasks a slice: column %q is of a map, which wants %d together", r.lim.Engine, r.tasks, prog.Columns[i].Name, n)
		}
	}
	result := up(uint64(program.ResultSize(r.tasks)))
	if least := head + uint64(r.shares)*(result+grain); r.memory < least {
		return nil, &slicer.MemoryError{Partition: "program", RowGroup: -1, Need: least, Have: r.memory, Streams: r.shares}
	}
	share := down((r.memory - head) / uint64(r.shares))
	r.lanes = make(chan *lane, r.shares)
	for i := range r.shares {
		base := head + uint64(i)*share
		r.lanes <- &lane{base: base, end: base + share, result: target.Span{Addr: base, Len: result}}
	}
	if err := t.Store(ctx, 0, image); err != nil {
		return nil, fmt.Errorf("store the program: %w", err)
	}
	return r, nil
}

// separate gives every key of an output with lengths a column of its own: a column that feeds several would have to be
// done in one task, since one key's values lie behind all of the other's, and a mini-batch may cross row groups.
func separate(prog *program.Program) *program.Program {
	if prog.Output.Fixed || prog.Source != program.Parquet {
		return prog
	}
	p := *prog
	p.Columns = nil
	for _, col := range prog.Columns {
		if col.Part != program.NoPart {
			p.Columns = append(p.Columns, col) // the engine puts all of a map's features in order itself
			continue
		}
		rest := col
		rest.Sinks = nil
		var apart []program.Column
		keys := 0
		for _, s := range col.Sinks {
			if s.To == program.ToSparse {
				if keys++; keys > 1 {
					one := col
					one.Sinks = []program.Sink{s}
					apart = append(apart, one)
					continue
				}
			}
			rest.Sinks = append(rest.Sinks, s)
		}
		p.Columns = append(append(p.Columns, rest), apart...)
	}
	return &p
}

// agree checks that a schema describes a program's output.
func agree(out program.Output, s *tensor.Schema) error {
	if err := s.Validate(); err != nil {
		return err
	}
	ids := tensor.Int64
	if out.IDs == program.IDs32 {
		ids = tensor.Int32
	}
	switch {
	case out.Label != s.Label, int(out.Dense) != len(s.Dense), int(out.Keys) != len(s.Keys), out.Weights != s.Weights,
		out.Keys > 0 && (ids != s.IDs || out.Fixed != s.Fixed()):
		return fmt.Errorf("%w: the program's output (label %t, %d dense, %d keys of %v, fixed %t) is not the schema's (label %t, %d dense, %d keys of %v, fixed %t)",
			tensor.ErrShape, out.Label, out.Dense, out.Keys, out.IDs, out.Fixed, s.Label, len(s.Dense), len(s.Keys), s.IDs, s.Fixed())
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
	case p.Source != r.prog.Source:
		return nil, fmt.Errorf("%s: open a stream: it is %v, the pipeline reads %v", p.Name, p.Source, r.prog.Source)
	}
	var l *lane
	select {
	case l = <-r.lanes:
	default:
		select {
		case l = <-r.lanes:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: open a stream: wait for one of %d to end: %w", p.Name, r.shares, context.Cause(ctx))
		}
	}
	w, err := newWorker(r, l, run)
	if err != nil {
		r.lanes <- l
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.lanes <- l
		return nil, fmt.Errorf("%s: open a stream: %w", p.Name, ErrClosed)
	}
	if r.broken != nil {
		r.lanes <- l
		return nil, fmt.Errorf("%s: open a stream: start a new processor, since of this one: %w", p.Name, r.broken)
	}
	copy(w.learned, r.learned)
	s := newStream(ctx, w)
	r.streams[s] = struct{}{}
	return s, nil
}

// fail keeps streams from being opened.
func (r *runner) fail(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil {
		r.broken = why
	}
}

// done takes back what a stream held.
func (r *runner) done(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.streams, s)
	for i, k := range s.w.learned {
		l := &r.learned[i]
		l.page, l.rows, l.room, l.dict = k.page, k.rows, max(l.room, k.room), max(l.dict, k.dict)
	}
	r.lanes <- s.w.lane
}

// Stats implements Processor.
func (r *runner) Stats() Stats { return r.stats.snapshot() }

// Close implements Processor.
func (r *runner) Close() error {
	r.mu.Lock()
	if r.closed {
		defer r.mu.Unlock()
		return r.end
	}
	r.closed = true
	var open []*stream
	for s := range r.streams {
		open = append(open, s)
	}
	r.mu.Unlock()
	for _, s := range open {
		_ = s.Close()
	}
	err := r.target.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = err
	return err
}
