package target

import (
	"context"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
)

// Span is a run of bytes of a target's memory. Addresses count from the start of the memory that the target gives to
// the processor, not from the start of a drive's local memory.
type Span struct{ Addr, Len uint64 }

// End returns the address behind the span.
func (s Span) End() uint64 { return s.Addr + s.Len }

// The memory ranges of an execution, in the order in which the stock program takes them.
const (
	RangeProgram = iota
	RangeInput
	RangeDict
	RangeScratch
	RangeOutput
	RangeResult
	Ranges // the number of ranges
)

// Source says where a move takes its bytes from.
type Source uint8

// The sources of a move.
const (
	FromPartition Source = iota // the partition; with Limits.Device the flash of the drive that the partition lies on
	FromMemory                  // the target's own memory
)

// String names the source.
func (s Source) String() string {
	if s == FromMemory {
		return "memory"
	}
	return "flash"
}

// Move brings bytes into memory before an execution.
type Move struct {
	Source Source
	// From is a byte of the partition. With Limits.Device it is a byte of the drive's flash and a multiple of
	// Limits.Block. Of a move from memory it is an address.
	From uint64
	Len  uint64 // a multiple of Limits.Block
	To   uint64 // the address that the first byte goes to
}

// Execution is one slice: moves, performed in order, and then the program over the ranges.
type Execution struct {
	Partition *partition.Partition
	Moves     []Move
	Ranges    [Ranges]Span // disjoint; where Direct holds, the input range is the partition itself and is empty here
	Args      []byte       // a marshalled program.Slice
}

// Outcome says how an execution ended.
type Outcome struct {
	State   program.State
	Wait    time.Duration // for an engine thread, if the result block does not say it
	Move    time.Duration // in moves, if the result block does not say it
	Execute time.Duration // all the rest
}

// Limits says what a target can do.
type Limits struct {
	Engine string // the engine's name in reports: drive, cpu, reference
	Memory uint64 // bytes of memory for programs, windows, tensors and all else
	Block  uint64 // granularity of a move in bytes, a power of two; 0 means 1
	Moves  int    // most moves of one execution; 0 means no limit
	Device bool   // moves name bytes of the drive that the partition lies on, so that the partition needs extents
	Tasks  int    // most tasks of one execution; 0 means no limit
}

// Target is memory with an engine behind it. A drive is a target, and so is a CPU with its own memory (package cpu).
// Methods are safe for concurrent use. Executions that run at the same time share no memory but the program.
type Target interface {
	Limits() Limits
	// Direct reports whether the engine reads the partition where it lies, so that nothing is moved and the input range
	// is the whole partition.
	Direct(p *partition.Partition) bool
	// Store writes memory.
	Store(ctx context.Context, addr uint64, b []byte) error
	// Load reads memory.
	Load(ctx context.Context, addr uint64, b []byte) error
	// View returns the memory itself, where it is mapped into this process. The view stays valid until Close.
	View(s Span) ([]byte, bool)
	// Execute runs one slice. A slice that the engine ends with a state other than Done is no error: the result block
	// in memory says more. An error means a failed move, a failed command, or the end of ctx; the slice's memory is
	// then undefined.
	Execute(ctx context.Context, x *Execution) (Outcome, error)
	// Close ends the target. No method may be called after it.
	Close() error
}
