package sdk

import (
	"context"
	"time"

	"github.com/millrace/millrace/fpga/program"
)

// Span is a run of bytes of a target's memory. Addresses count from the start of the memory that the target gives to
// the processor, not from the start of a drive's SLM.
type Span struct{ Addr, Len uint64 }

// End returns the address behind the span.
func (s Span) End() uint64 { return s.Addr + s.Len }

// The memory ranges of an execution, in the order that the stock program takes them.
const (
	RangeProgram = iota
	RangeInput
	RangeDict
	RangeScratch
	RangeOutput
	RangeResult
	Ranges // their number
)

// Move brings bytes of a partition into memory before an execution.
type Move struct {
	From uint64 // byte of the partition; with Limits.Device: byte of the drive's flash, a multiple of Limits.Block
	Len  uint64 // a multiple of Limits.Block
	To   uint64 // address
}

// Execution is one slice: moves, performed in order, and then the program over the ranges.
type Execution struct {
	Partition *Partition
	Moves     []Move
	Ranges    [Ranges]Span // disjoint; with Limits.Direct the input range is the partition itself and empty here
	Args      []byte       // a marshalled program.Slice
}

// Outcome is how an execution ended.
type Outcome struct {
	State   program.State
	Wait    time.Duration // for an engine thread, if the result block does not say it
	Move    time.Duration // in moves, if the result block does not say it
	Execute time.Duration // all the rest
}

// Limits says what a target is.
type Limits struct {
	Engine string // what a report calls it: drive, cpu, reference
	Memory uint64 // bytes of memory for programs, windows, tensors and all else
	Block  uint64 // granularity of a move in bytes, a power of two; 0 is 1
	Moves  int    // most moves of one execution; 0 is no limit
	Device bool   // moves name bytes of the drive that the partition lies on, so that it needs Extents
	Tasks  int    // most tasks of one execution; 0 is no limit
}

// Target is memory with an engine behind it: what a processor plans slices for. A drive is one, and so is a CPU with
// its own memory (package cpu). Methods are safe for concurrent use; executions at once never share memory but the
// program.
type Target interface {
	Limits() Limits
	// Direct tells that the engine reads the partition where it lies, so that nothing is moved and the input range is the
	// whole partition.
	Direct(p *Partition) bool
	// Store writes memory.
	Store(ctx context.Context, addr uint64, b []byte) error
	// Load reads memory.
	Load(ctx context.Context, addr uint64, b []byte) error
	// View returns the memory itself, where it is mapped into this process. It stays valid until Close.
	View(s Span) ([]byte, bool)
	// Execute runs one slice. A slice that the engine ends with a state other than Done is no error: the result block in
	// memory says more. An error is a failed move, a failed command, or ctx's end; the slice's memory is then undefined.
	Execute(ctx context.Context, x *Execution) (Outcome, error)
	// Close ends the target. No method may be called after it.
	Close() error
}
