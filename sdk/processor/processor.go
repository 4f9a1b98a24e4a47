package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/tensor"
)

// Run is a run of rows of one partition, cut into mini-batches of Batch rows. The last may be short, and the first one
// if FirstBatch says so.
type Run struct {
	Partition   *partition.Partition
	First, Rows int64 // rows [First, First+Rows); Rows must be at least 1
	Batch       int
	// FirstBatch is the rows of the run's first mini-batch, at most Batch; 0 means Batch. A run whose rows end before has
	// that mini-batch only.
	FirstBatch int
	// Selected says which rows of the partition there are; First and Rows then count those. nil: all rows. Only a
	// processor of WithSelections takes it.
	Selected *selection.Rows
}

// batchAt returns the rows of the mini-batch that begins at a row of the run.
func (r *Run) batchAt(row int64) int {
	rows := r.Batch
	if r.FirstBatch > 0 && row == r.First {
		rows = r.FirstBatch
	}
	return int(min(int64(rows), r.First+r.Rows-row))
}

// firstBatchAt returns FirstBatch for the part of the run from a row on, at which a mini-batch begins.
func (r *Run) firstBatchAt(row int64) int {
	if row != r.First {
		return 0
	}
	return r.FirstBatch
}

// checkBatches returns an error if the sizes of the run's mini-batches are out of range. It wraps ErrFirstBatch if that
// of the first is.
func (r *Run) checkBatches() error {
	switch {
	case r.Batch < 1 || r.Batch > tensor.MaxRows:
		return fmt.Errorf("%s: open a stream: a batch of %d rows, want 1 to %d", r.Partition.Name, r.Batch, tensor.MaxRows)
	case r.FirstBatch < 0 || r.FirstBatch > r.Batch:
		return fmt.Errorf("%s: open a stream: %w: %d rows, want 0 to the batch of %d", r.Partition.Name, ErrFirstBatch,
			r.FirstBatch, r.Batch)
	}
	return nil
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
