package cpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/hugepages"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// DefaultMemory is the memory of a processor a thread: half as much as a drive in process has for one thread, because
// partitions are read where they lie. With less, several threads' mini-batches would be copied for want of room to lend
// them. Memory that is never used is never touched.
const DefaultMemory = 512 << 20

// maxDefaultMemory bounds the default memory of many threads: as much as a drive that is served has.
const maxDefaultMemory = 4 << 30

// Options of a CPU processor. The zero value works.
type Options struct {
	// Threads is how many slices run at once; 0 is 1.
	Threads int
	// Processor are the processor's options. SLM is the bytes of memory for windows, dictionaries, unpacked pages and
	// tensors (DefaultMemory a thread, up to 4 GiB, if 0); Streams is Threads if 0.
	Processor processor.Options
	// Modules are the WebAssembly modules that programs may name; nil: those of the program that New is given.
	Modules program.Modules
}

// New returns a processor that runs a lowered pipeline on this machine's CPU.
func New(ctx context.Context, prog *program.Program, schema *tensor.Schema, o Options) (processor.Processor, error) {
	if o.Processor.Streams <= 0 {
		o.Processor.Streams = max(o.Threads, 1)
	}
	if o.Modules == nil {
		o.Modules = prog.Modules
	}
	return processor.Start(ctx, NewTarget(o), prog, schema, o.Processor)
}

// NewTarget returns what New runs on: this process's memory with the engine behind it. Use it to wrap the target before
// processor.Start, to count, delay or break what is executed.
func NewTarget(o Options) target.Target {
	memory := memoryOf(o)
	// A Go allocation of this size begins at a page of the machine, so that addresses which the slicer aligns are
	// aligned. A slice looks values up all over the dictionaries of its columns, which together are larger than what the
	// processor keeps of the translation of pages of 4 KiB.
	return &memoryTarget{
		memory:  hugepages.Make(max(memory, 64<<10))[:memory],
		engine:  engine.New(engine.Options{Modules: o.Modules}),
		threads: make(chan struct{}, max(o.Threads, 1)),
	}
}

// memoryOf returns the bytes of memory that options ask for.
func memoryOf(o Options) uint64 {
	if o.Processor.SLM > 0 {
		return o.Processor.SLM
	}
	return DefaultMemory * uint64(min(max(o.Threads, 1), maxDefaultMemory/DefaultMemory))
}

// memoryTarget is process memory with the engine behind it.
type memoryTarget struct {
	memory  []byte
	engine  *engine.Engine
	threads chan struct{} // one token a slice that may run
}

// Limits implements target.Target.
func (t *memoryTarget) Limits() target.Limits {
	return target.Limits{Engine: "cpu", Memory: uint64(len(t.memory))}
}

// Direct implements target.Target: a partition in memory is read where it lies.
func (t *memoryTarget) Direct(p *partition.Partition) bool { return p.Bytes() != nil }

// Store implements target.Target.
func (t *memoryTarget) Store(_ context.Context, addr uint64, b []byte) error {
	at, err := t.span(target.Span{Addr: addr, Len: uint64(len(b))})
	if err == nil {
		copy(at, b)
	}
	return err
}

// Load implements target.Target.
func (t *memoryTarget) Load(_ context.Context, addr uint64, b []byte) error {
	at, err := t.span(target.Span{Addr: addr, Len: uint64(len(b))})
	if err == nil {
		copy(b, at)
	}
	return err
}

// View implements target.Target.
func (t *memoryTarget) View(s target.Span) ([]byte, bool) {
	b, err := t.span(s)
	return b, err == nil
}

func (t *memoryTarget) span(s target.Span) ([]byte, error) {
	if n := uint64(len(t.memory)); s.Addr > n || s.Len > n-s.Addr {
		return nil, fmt.Errorf("cpu: bytes %d+%d of %d of memory", s.Addr, s.Len, n)
	}
	return t.memory[s.Addr:s.End():s.End()], nil
}

// Execute implements target.Target.
func (t *memoryTarget) Execute(ctx context.Context, x *target.Execution) (target.Outcome, error) {
	var o target.Outcome
	came := time.Now()
	// Windows are read before the slice takes a thread, so that a partition far away keeps no thread waiting.
	prepareMoves(x)
	if err := t.moveAll(ctx, x); err != nil {
		return o, err
	}
	read := time.Now()
	o.Move = read.Sub(came)
	select {
	case t.threads <- struct{}{}:
		defer func() { <-t.threads }()
	case <-ctx.Done():
		return o, context.Cause(ctx)
	}
	moved := time.Now()
	o.Wait = moved.Sub(read)
	var mem [target.Ranges][]byte
	for i, s := range x.Ranges {
		var err error
		if mem[i], err = t.span(s); err != nil {
			return o, err
		}
	}
	if t.Direct(x.Partition) {
		mem[target.RangeInput] = x.Partition.Bytes()
	}
	o.State = t.engine.Execute(ctx, engine.Memory{
		Program: mem[target.RangeProgram], Input: mem[target.RangeInput], Dict: mem[target.RangeDict],
		Scratch: mem[target.RangeScratch], Output: mem[target.RangeOutput], Result: mem[target.RangeResult],
		Tables: mem[target.RangeTables],
	}, x.Args)
	o.Execute = time.Since(moved)
	return o, nil
}

// prepareMoves announces the bytes that an execution moves to a reader that reads ahead, so that they come by joined
// requests.
func prepareMoves(x *target.Execution) {
	r, ok := x.Partition.AheadReader()
	if !ok {
		return
	}
	runs := make([]partition.Run, len(x.Moves))
	for i, m := range x.Moves {
		runs[i] = partition.Run{From: m.From, Len: m.Len}
	}
	r.Prepare(runs)
}

// readsAtOnce is how many windows of a slice are read at once from a partition that is far away.
const readsAtOnce = 8

// moveAll carries out the moves of a slice. Those of a partition that is far away are carried out at the same time:
// they go to different memory, and each waits for the network.
func (t *memoryTarget) moveAll(ctx context.Context, x *target.Execution) error {
	if len(x.Moves) < 2 || !x.Partition.Remote() {
		for _, m := range x.Moves {
			if err := t.move(ctx, x.Partition, m); err != nil {
				return err
			}
		}
		return nil
	}
	var reads sync.WaitGroup
	errs := make([]error, len(x.Moves))
	places := make(chan struct{}, readsAtOnce)
	for i, m := range x.Moves {
		places <- struct{}{}
		reads.Go(func() {
			defer func() { <-places }()
			defer processor.Contain("read a window", &errs[i])
			errs[i] = t.move(ctx, x.Partition, m)
		})
	}
	reads.Wait()
	for _, err := range errs {
		if err != nil {
			return err // the others may have failed because of it
		}
	}
	return nil
}

// move reads bytes of the partition into memory.
func (t *memoryTarget) move(ctx context.Context, p *partition.Partition, m target.Move) error {
	b, err := t.span(target.Span{Addr: m.To, Len: m.Len})
	if err != nil {
		return err
	}
	n, err := p.ReadAtContext(ctx, b, int64(m.From))
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read bytes %d+%d: %w", m.From, m.Len, err)
}

// Close implements target.Target.
func (t *memoryTarget) Close() error { return nil }
