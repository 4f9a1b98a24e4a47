package cpu

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/tensor"
)

// DefaultMemory is the memory of a processor a thread: as much as a drive in process has, whose one thread it is for. With less, several
// threads' mini-batches would be copied for want of room to lend them. What is never used is never touched.
const DefaultMemory = 512 << 20

// mostMemory bounds what many threads have by default: as much as a drive that is served.
const mostMemory = 4 << 30

// Options of a CPU processor. The zero value works.
type Options struct {
	// Threads is how many slices run at once; 0 is 1.
	Threads int
	// Processor are the planner's options. SLM is the bytes of memory for windows, dictionaries, unpacked pages and
	// tensors (DefaultMemory a thread, up to 4 GiB, if 0); Streams is Threads if 0.
	Processor sdk.Options
}

// New returns a processor that runs a lowered pipeline on this machine's CPU.
func New(ctx context.Context, prog *program.Program, schema *tensor.Schema, o Options) (sdk.Processor, error) {
	if o.Processor.Streams <= 0 {
		o.Processor.Streams = max(o.Threads, 1)
	}
	return sdk.Start(ctx, NewTarget(o), prog, schema, o.Processor)
}

// NewTarget returns what New runs on: this process's memory with the engine behind it. It is for those who put something
// around a target before they call sdk.Start, to count, to delay or to break.
func NewTarget(o Options) sdk.Target {
	memory := memoryOf(o)
	// A Go allocation of this size begins at a page of the machine, so that what the planner aligns is aligned.
	return &target{
		memory: make([]byte, max(memory, 64<<10))[:memory], engine: engine.New(engine.Options{}), threads: make(chan struct{}, max(o.Threads, 1)),
	}
}

// memoryOf returns the bytes of memory that options ask for.
func memoryOf(o Options) uint64 {
	if o.Processor.SLM > 0 {
		return o.Processor.SLM
	}
	return DefaultMemory * uint64(min(max(o.Threads, 1), mostMemory/DefaultMemory))
}

// target is process memory with the engine behind it.
type target struct {
	memory  []byte
	engine  *engine.Engine
	threads chan struct{} // one token a slice that may run
}

// Limits implements sdk.Target.
func (t *target) Limits() sdk.Limits { return sdk.Limits{Engine: "cpu", Memory: uint64(len(t.memory))} }

// Direct implements sdk.Target: what is in memory is read there.
func (t *target) Direct(p *sdk.Partition) bool { return p.Bytes() != nil }

// Store implements sdk.Target.
func (t *target) Store(_ context.Context, addr uint64, b []byte) error {
	at, err := t.span(sdk.Span{Addr: addr, Len: uint64(len(b))})
	if err == nil {
		copy(at, b)
	}
	return err
}

// Load implements sdk.Target.
func (t *target) Load(_ context.Context, addr uint64, b []byte) error {
	at, err := t.span(sdk.Span{Addr: addr, Len: uint64(len(b))})
	if err == nil {
		copy(b, at)
	}
	return err
}

// View implements sdk.Target.
func (t *target) View(s sdk.Span) ([]byte, bool) {
	b, err := t.span(s)
	return b, err == nil
}

func (t *target) span(s sdk.Span) ([]byte, error) {
	if n := uint64(len(t.memory)); s.Addr > n || s.Len > n-s.Addr {
		return nil, fmt.Errorf("cpu: bytes %d+%d of %d of memory", s.Addr, s.Len, n)
	}
	return t.memory[s.Addr:s.End():s.End()], nil
}

// Execute implements sdk.Target.
func (t *target) Execute(ctx context.Context, x *sdk.Execution) (sdk.Outcome, error) {
	var o sdk.Outcome
	came := time.Now()
	select {
	case t.threads <- struct{}{}:
		defer func() { <-t.threads }()
	case <-ctx.Done():
		return o, context.Cause(ctx)
	}
	start := time.Now()
	o.Wait = start.Sub(came)
	for _, m := range x.Moves {
		if err := t.move(x.Partition, m); err != nil {
			return o, err
		}
	}
	moved := time.Now()
	o.Move = moved.Sub(start)
	var mem [sdk.Ranges][]byte
	for i, s := range x.Ranges {
		var err error
		if mem[i], err = t.span(s); err != nil {
			return o, err
		}
	}
	if t.Direct(x.Partition) {
		mem[sdk.RangeInput] = x.Partition.Bytes()
	}
	o.State = t.engine.Execute(ctx, engine.Memory{
		Program: mem[sdk.RangeProgram], Input: mem[sdk.RangeInput], Dict: mem[sdk.RangeDict],
		Scratch: mem[sdk.RangeScratch], Output: mem[sdk.RangeOutput], Result: mem[sdk.RangeResult],
	}, x.Args)
	o.Execute = time.Since(moved)
	return o, nil
}

// move reads bytes of the partition into memory.
func (t *target) move(p *sdk.Partition, m sdk.Move) error {
	b, err := t.span(sdk.Span{Addr: m.To, Len: m.Len})
	if err != nil {
		return err
	}
	n, err := p.ReadAt(b, int64(m.From))
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read bytes %d+%d: %w", m.From, m.Len, err)
}

// Close implements sdk.Target.
func (t *target) Close() error { return nil }
