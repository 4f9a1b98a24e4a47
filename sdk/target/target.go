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
	RangeTables // empty for a program without lookup tables
	Ranges      // the number of ranges
)

// Source says where a move takes its bytes from.
type Source uint8

// The sources of a move.
const (
	FromPartition Source = iota // the partition; with Limits.Device the flash of the drive that the partition lies on
	FromMemory                  // the target's own memory
	FromHost                    // the partition as the host reads it: the host stores the bytes in the target's memory
)

// String names the source.
func (s Source) String() string {
	switch s {
	case FromMemory:
		return "memory"
	case FromHost:
		return "host"
	}
	return "flash"
}

// Move brings bytes into memory before an execution.
type Move struct {
	Source Source
	// From is a byte of the partition. With Limits.Device it is a byte of the drive's flash and a multiple of
	// Limits.Block, except of a move from the host, which names a byte of the partition that is a multiple of
	// Limits.HostBlock. Of a move from memory it is an address.
	From uint64
	// Len is a multiple of Limits.Block, of a move from the host a multiple of Limits.HostBlock: the last block of a
	// partition may reach beyond its end, and is then filled with zeros.
	Len uint64
	To  uint64 // the address that the first byte goes to
}

// Execution is one slice: moves, performed in order, and then the program over the ranges.
type Execution struct {
	Partition *partition.Partition
	Moves     []Move
	// Ahead are moves from the host for later slices. They may be performed while the slice executes: they write memory
	// that the slice neither reads nor writes. All are done when Execute returns.
	Ahead  []Move
	Ranges [Ranges]Span // disjoint; where Direct holds, the input range is the partition itself and is empty here
	Args   []byte       // a marshalled program.Slice
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

	// Host reports whether the target performs moves from the host, so that with Device it also takes partitions
	// without extents, which do not lie on the drive.
	Host      bool
	HostBlock uint64 // granularity of a move from the host in bytes, a power of two of at most 64; 0 means 1
}

// Feeds reports whether the windows of a partition come from the host: the partition does not lie on the drive.
func (l Limits) Feeds(p *partition.Partition) bool {
	return l.Device && l.Host && len(p.Extents) == 0
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
	// Execute runs one slice. A slice that the engine ends with a state other than Done is not an error: the result block
	// in memory says more. An error means a failed move, a failed command, or the end of ctx; the slice's memory is
	// then undefined.
	Execute(ctx context.Context, x *Execution) (Outcome, error)
	// Close ends the target. No method may be called after it.
	Close() error
}
