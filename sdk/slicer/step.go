package slicer

import (
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/target"
)

// Step is the next action of a slicer's owner: *ReadIndex, *Relocate, *Execute, *Done or *End. A step is valid until
// the next call of Next.
type Step interface{ isStep() }

// Execute asks for the moves, in order, and then for the execution of the slice. Its result goes to Slicer.Result.
type Execute struct {
	Moves []target.Move
	// Ahead are moves from the host for later slices, into memory that this slice does not touch: they may be performed
	// while it executes, and must be done when the result is handed in.
	Ahead   []target.Move
	Ranges  [target.Ranges]target.Span
	Slice   *program.Slice
	Traffic Traffic
}

// Columns returns the columns of the program that the slice reads, each once, in the order of its tasks.
func (x *Execute) Columns() (list []int) {
	for i := range x.Slice.Tasks {
		if column := int(x.Slice.Tasks[i].Column); !slices.Contains(list, column) {
			list = append(list, column)
		}
	}
	return list
}

// Traffic counts the bytes that the moves of a slice bring, those ahead included.
type Traffic struct {
	Planned uint64 // in all
	Ahead   uint64 // Bytes for later slices.
	Reread  uint64 // Bytes that were brought before.
}

// Relocate asks its caller to copy the written part of the mini-batch in the making to a larger buffer. The places may
// overlap: all moves, which are from memory, are read before the first is written.
type Relocate struct{ Moves []target.Move }

// ReadIndex asks for the page index of a column chunk, which goes to Slicer.Index; see partition.ReadPageIndex. The
// owner does not answer if the chunk has none.
type ReadIndex struct {
	RowGroup int
	Leaf     *format.Leaf
	Row      int64 // row of the row group that the stream begins at
}

// Done says that a mini-batch is whole. Its buffer stays its own until Workspace.Release.
type Done struct {
	Buffer *Buffer
	Rows   uint32
	Layout program.OutputLayout // Where the buffer holds the tensors.
	Values uint64               // The length of kjt.values.
	// Needed is how many bytes of the partition the mini-batch needs: the sum over its column chunks. Of a chunk of n rows
	// and b bytes, page headers and dictionary included, rows [i, j) need floor(b*j/n) - floor(b*i/n) bytes. So all rows
	// of a chunk need all its bytes, each once, whichever mini-batches they are in. The partition is the only chunk of a
	// text. Needed is 0 where the engine reads the partition where it lies, because nothing is moved.
	Needed uint64
}

// End says that all mini-batches are done.
type End struct{}

func (*Execute) isStep()   {}
func (*Relocate) isStep()  {}
func (*ReadIndex) isStep() {}
func (*Done) isStep()      {}
func (*End) isStep()       {}
