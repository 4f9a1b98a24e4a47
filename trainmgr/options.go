package trainmgr

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/starvation"
)

var (
	// ErrOptions says that the options of a job contradict each other or are out of range.
	ErrOptions = errors.New("job options")
	// ErrClosed says that the job was closed.
	ErrClosed = errors.New("the job is closed")
	// ErrNothingLeft says that an iteration had no mini-batch to deliver, since every one had been acknowledged before.
	ErrNothingLeft = errors.New("no mini-batch is left")
)

// Recording configures where to keep Go execution traces of the seconds before the trainer starved.
type Recording = starvation.Recording

// DefaultQueueBytes bounds the input queue if QueueBytes is 0.
const DefaultQueueBytes = 256 << 20

// Options describe a job. Pipeline is required; the rest may be zero.
type Options struct {
	Pipeline *pipeline.Spec

	Batch        int // rows of a mini-batch; 0 takes the pipeline's, or dataset.DefaultBatch
	Boundary     dataset.Boundary
	Tail         dataset.Tail
	Shuffle      dataset.Shuffle
	Seed         uint64
	SplitBatches int // 0 means dataset.DefaultSplitBatches
	Window       int // The window of dataset.ShuffleRows is counted in fragments, which are mini-batches or parts of them.
	Epochs       int // 0 means 1
	// Share is the part of every epoch that the job delivers: one rank's of several. It is not part of the job's
	// digest.
	Share dataset.Share

	Order      dataset.Order
	QueueBytes int64 // bound of the input queue, 0 means DefaultQueueBytes
	MaxDrives  int   // upper bound of drives at once, 0 means none
	// AllDrives runs every drive that holds data and measures neither T nor P: for a launcher that wants the
	// mini-batches and trains nothing.
	AllDrives bool

	// Ranks are the steps to measure T with, one for each rank; empty if T is given or unknown.
	Ranks      []Step
	Throughput ThroughputOptions
	// RowsPerSecond is T if it is known; then T is not measured.
	RowsPerSecond float64

	// Resume continues where a token left off. The data, the pipeline and the options that shape the plan must be the
	// same.
	Resume *dataset.Token
	// ResumeStamps are the data set's stamps (api.Dataset) from when the token was kept. A file that was written since
	// is refused with an *api.ChangedSinceError. If nil, only the manifest is checked, which has samples of each file.
	ResumeStamps map[string]api.Stamp

	// Offload configures how the drives and the trainer's own CPUs share the splits.
	Offload Offload

	// Autoscale lets the number of drives that run at once follow the trainer.
	Autoscale Autoscale

	// Now is the clock that T, the elapsed time and the waits are measured on: that of drives with a modelled timing.
	// If nil, it is time.Now.
	Now func() time.Time
	// modelledClock is set if Now was given. The times of the drives' stages are not on that clock.
	modelledClock bool

	Recording Recording    // traces of moments in which the trainer starves
	Logger    *slog.Logger // nil discards the log
}

// planOptions returns the options of the plan of one epoch.
func (o *Options) planOptions(epoch uint64) dataset.Options {
	return dataset.Options{
		Batch: o.Batch, Boundary: o.Boundary, Tail: o.Tail, Shuffle: o.Shuffle, Seed: o.Seed, Epoch: epoch,
		SplitBatches: o.SplitBatches, Window: o.Window,
	}
}

// withDefaults replaces zeroes by their defaults and checks ranges.
func (o Options) withDefaults() (Options, error) {
	if o.Pipeline == nil {
		return o, fmt.Errorf("%w: no pipeline", ErrOptions)
	}
	if o.Batch == 0 {
		o.Batch = o.Pipeline.Batch
	}
	if o.Epochs == 0 {
		o.Epochs = 1
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = DefaultQueueBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.modelledClock = o.Now != nil; !o.modelledClock {
		o.Now = time.Now
	}
	if o.Throughput.Now == nil {
		o.Throughput.Now = o.Now
	}
	if err := o.Offload.check(&o); err != nil {
		return o, err
	}
	if err := o.Autoscale.check(&o); err != nil {
		return o, err
	}
	switch {
	case o.Epochs < 0:
		return o, fmt.Errorf("%w: %d epochs", ErrOptions, o.Epochs)
	case o.QueueBytes < 0:
		return o, fmt.Errorf("%w: a queue of %d bytes", ErrOptions, o.QueueBytes)
	case o.MaxDrives < 0:
		return o, fmt.Errorf("%w: at most %d drives", ErrOptions, o.MaxDrives)
	case o.AllDrives && (o.RowsPerSecond > 0 || len(o.Ranks) > 0):
		return o, fmt.Errorf("%w: AllDrives runs without T, but T or steps to measure it are given", ErrOptions)
	case slices.ContainsFunc(o.Ranks, func(s Step) bool { return s.Run == nil }):
		return o, fmt.Errorf("%w: a rank's step has no Run: give the function that trains one step", ErrOptions)
	case o.RowsPerSecond < 0:
		return o, fmt.Errorf("%w: T of %v rows/s", ErrOptions, o.RowsPerSecond)
	case o.Order > dataset.Deterministic:
		return o, fmt.Errorf("%w: order %d", ErrOptions, o.Order)
	}
	if err := o.planOptions(0).CheckWindow(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := o.Share.Check(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return o, nil
}
