package dataset

import (
	"errors"
	"fmt"
)

// ErrOptions says that a plan's options are out of range.
var ErrOptions = errors.New("dataset: options")

// Defaults and bounds of Options.
const (
	DefaultBatch        = 8192 // rows; PreSto, table I
	DefaultSplitBatches = 16   // mini-batches
	DefaultWindow       = 4    // mini-batches
	MaxBatch            = 1 << 24
	MaxSplitBatches     = 1 << 20
	MaxWindowRows       = 1<<31 - 1 // rows of a window, which RowPermutation lists
)

// Tail says what becomes of the last mini-batch, of each partition or with BoundaryNone of the epoch, if it is short.
type Tail uint8

// The tails.
const (
	KeepTail Tail = iota // deliver it with fewer rows (the default)
	DropTail             // leave its rows out
)

// String returns keep or drop.
func (t Tail) String() string { return nameOf(uint8(t), tailNames[:]) }

// MarshalText returns keep or drop.
func (t Tail) MarshalText() ([]byte, error) { return marshalName(uint8(t), tailNames[:], "tail") }

// UnmarshalText reads keep or drop.
func (t *Tail) UnmarshalText(b []byte) error {
	v, err := parseName(b, tailNames[:], "tail")
	*t = Tail(v)
	return err
}

var tailNames = [...]string{"keep", "drop"}

// Shuffle says what changes from epoch to epoch and from seed to seed.
type Shuffle uint8

// The shuffles; the package comment defines them to the bit.
const (
	ShuffleSplits Shuffle = iota // the order of splits (the default)
	ShuffleNone                  // nothing: dataset order
	ShuffleRows                  // the order of splits, and of the rows inside a window of a split
)

// String returns splits, none or rows.
func (s Shuffle) String() string { return nameOf(uint8(s), shuffleNames[:]) }

// MarshalText returns splits, none or rows.
func (s Shuffle) MarshalText() ([]byte, error) {
	return marshalName(uint8(s), shuffleNames[:], "shuffle")
}

// UnmarshalText reads splits, none or rows.
func (s *Shuffle) UnmarshalText(b []byte) error {
	v, err := parseName(b, shuffleNames[:], "shuffle")
	*s = Shuffle(v)
	return err
}

var shuffleNames = [...]string{"splits", "none", "rows"}

// Boundary says where mini-batches end early.
type Boundary uint8

// The boundaries; the package comment defines them.
const (
	BoundaryPartition Boundary = iota // Mini-batches end at the end of a partition (the default).
	BoundaryNone                      // A mini-batch is consecutive rows of the sequence, across splits and partitions.
)

// String returns partition or none.
func (b Boundary) String() string { return nameOf(uint8(b), boundaryNames[:]) }

// MarshalText returns partition or none.
func (b Boundary) MarshalText() ([]byte, error) {
	return marshalName(uint8(b), boundaryNames[:], "boundary")
}

// UnmarshalText reads partition or none.
func (b *Boundary) UnmarshalText(text []byte) error {
	v, err := parseName(text, boundaryNames[:], "boundary")
	*b = Boundary(v)
	return err
}

var boundaryNames = [...]string{"partition", "none"}

// Options say how a data set is cut and ordered. The zero value means mini-batches of 8,192 rows that end where
// partitions do, short tails kept, splits of 16 mini-batches shuffled by seed 0, and epoch 0.
type Options struct {
	Batch        int      // rows of a mini-batch, 1..MaxBatch; 0 means DefaultBatch
	Boundary     Boundary // where mini-batches end early
	Tail         Tail     // what becomes of short mini-batches
	Shuffle      Shuffle  // what is mixed
	Seed         uint64   // The seed of the shuffle.
	Epoch        uint64   // counted from 0
	SplitBatches int      // mini-batches of a split, 1..MaxSplitBatches; 0 means DefaultSplitBatches
	// fragments of a window of ShuffleRows, 1..SplitBatches; 0 means DefaultWindow, or SplitBatches if that is less
	Window int
}

// CheckWindow returns an error that wraps ErrOptions if a window is given that the shuffle does not use. A plan ignores
// such a window. Check the options that a user gave: those of a plan always have a window.
func (o Options) CheckWindow() error {
	if o.Window == 0 || o.Shuffle == ShuffleRows {
		return nil
	}
	return fmt.Errorf("%w: window %d is for shuffle rows, and the shuffle is %v: leave the window out", ErrOptions,
		o.Window, o.Shuffle)
}

// withDefaults replaces zeroes by their defaults and checks ranges.
func (o Options) withDefaults() (Options, error) {
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.SplitBatches == 0 {
		o.SplitBatches = DefaultSplitBatches
	}
	if o.Window == 0 {
		o.Window = min(DefaultWindow, o.SplitBatches)
	}
	switch {
	case o.Batch < 1 || o.Batch > MaxBatch:
		return o, fmt.Errorf("%w: batch %d, want 1 to %d rows", ErrOptions, o.Batch, MaxBatch)
	case o.SplitBatches < 1 || o.SplitBatches > MaxSplitBatches:
		return o, fmt.Errorf("%w: split_batches %d, want 1 to %d", ErrOptions, o.SplitBatches, MaxSplitBatches)
	case int(o.Tail) >= len(tailNames):
		return o, fmt.Errorf("%w: tail %d", ErrOptions, o.Tail)
	case int(o.Boundary) >= len(boundaryNames):
		return o, fmt.Errorf("%w: boundary %d", ErrOptions, o.Boundary)
	case int(o.Shuffle) >= len(shuffleNames):
		return o, fmt.Errorf("%w: shuffle %d", ErrOptions, o.Shuffle)
	case o.Window < 1 || o.Window > o.SplitBatches:
		return o, fmt.Errorf("%w: window %d, want 1 to split_batches (%d)", ErrOptions, o.Window, o.SplitBatches)
	case o.Shuffle == ShuffleRows && int64(o.Window)*int64(o.Batch) > MaxWindowRows:
		return o, fmt.Errorf("%w: a window of %d mini-batches of %d rows, at most %d rows", ErrOptions, o.Window,
			o.Batch, int64(MaxWindowRows))
	}
	return o, nil
}

// nameOf returns the name of a value.
func nameOf(v uint8, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown(%d)", v)
}

// marshalName returns the name of a value. what says which option it is.
func marshalName(v uint8, names []string, what string) ([]byte, error) {
	if int(v) >= len(names) {
		return nil, fmt.Errorf("%w: %s %d", ErrOptions, what, v)
	}
	return []byte(names[v]), nil
}

// parseName returns the value of a name.
func parseName(b []byte, names []string, what string) (uint8, error) {
	for i, n := range names {
		if string(b) == n {
			return uint8(i), nil
		}
	}
	return 0, fmt.Errorf("%w: %s %q, want one of %v", ErrOptions, what, b, names)
}
