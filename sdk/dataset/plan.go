package dataset

import (
	"errors"
	"fmt"
	"iter"
	"sort"
)

// ErrNumber says that the plan has no mini-batch, split or window of that number.
var ErrNumber = errors.New("dataset: not in the plan")

// MaxSplits is the most splits of a plan. For more, choose a larger batch or more mini-batches in a split.
const MaxSplits = 1<<31 - 1

// MiniBatch is one mini-batch of a plan.
type MiniBatch struct {
	Number    uint64 // its position in the plan
	Partition int    // index into the manifest
	First     int64  // its first row in the partition; of a selected plan, the number of its first passing row
	Rows      int    // how many rows from there
	Split     int    // position of its split in the plan
}

// Split is one split of a plan: consecutive mini-batches of one partition.
type Split struct {
	Position    int    // in this epoch's plan
	ID          int    // its position in dataset order, the same in every epoch
	Partition   int    // index into the manifest
	First       int64  // its first row in the partition; of a selected plan, the number of its first passing row
	Rows        int64  // how many rows from there, without a dropped tail
	FirstNumber uint64 // number of its first mini-batch
	MiniBatches int    // how many it has, at least 1
}

// String describes the split, for errors.
func (s Split) String() string {
	return fmt.Sprintf("split %d at position %d (rows %d+%d of partition %d, mini-batches %d+%d)",
		s.ID, s.Position, s.First, s.Rows, s.Partition, s.FirstNumber, s.MiniBatches)
}

// Plan is an epoch's plan. It holds at most three integers for each split, and no list of mini-batches.
type Plan struct {
	options      Options
	partitions   []int64  // rows of each
	firstSplitID []int    // by partition; one more at the end
	splitIDs     []uint32 // by position; nil in dataset order
	firstNumbers []uint64 // by position: the number of the split's first mini-batch; one more at the end
	rows         int64    // delivered
	leftOut      int64    // rows of dropped tails
}

// NewPlan cuts and orders a manifest's rows. Errors wrap ErrOptions or ErrManifest.
func NewPlan(m *Manifest, o Options) (*Plan, error) { return NewSelectedPlan(m, nil, o) }

// NewSelectedPlan cuts and orders the rows of a manifest that pass a filter: passing has their number in each
// partition, and nil means all rows. The plan counts passing rows only, as if the partitions had no others. Errors wrap
// ErrOptions or ErrManifest.
func NewSelectedPlan(m *Manifest, passing []int64, o Options) (*Plan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%w: there is none", ErrManifest)
	}
	if passing != nil && len(passing) != len(m.Partitions) {
		return nil, fmt.Errorf("%w: a selection of %d partitions for %d", ErrManifest, len(passing), len(m.Partitions))
	}
	p := &Plan{options: o, partitions: make([]int64, len(m.Partitions)), firstSplitID: make([]int, len(m.Partitions)+1)}
	for i := range m.Partitions {
		entry := &m.Partitions[i]
		if err := entry.validate(); err != nil {
			return nil, fmt.Errorf("%w: partition %q: %w", ErrManifest, entry.Name, err)
		}
		p.partitions[i] = entry.Rows
		if passing != nil {
			if passing[i] < 0 || passing[i] > entry.Rows {
				return nil, fmt.Errorf("%w: partition %q: %d of %d rows are selected", ErrManifest, entry.Name, passing[i],
					entry.Rows)
			}
			p.partitions[i] = passing[i]
		}
		batches, perSplit := p.countBatches(i), int64(o.SplitBatches)
		splits := batches / perSplit
		if batches%perSplit != 0 {
			splits++
		}
		if splits > MaxSplits-int64(p.firstSplitID[i]) {
			return nil, fmt.Errorf("%w: more than %d splits: raise batch or split_batches", ErrOptions,
				int64(MaxSplits))
		}
		p.firstSplitID[i+1] = p.firstSplitID[i] + int(splits)
	}
	splits := p.firstSplitID[len(m.Partitions)]
	if o.Shuffle != ShuffleNone {
		p.splitIDs = make([]uint32, splits)
		random := newGenerator(o.Seed, o.Epoch, uint64(DomainSplits))
		permute(&random, p.splitIDs)
	}
	p.firstNumbers = make([]uint64, splits+1)
	for position := range splits {
		s := p.splitOfID(p.splitID(position))
		p.firstNumbers[position+1] = p.firstNumbers[position] + uint64(s.MiniBatches)
		p.rows += s.Rows
	}
	p.leftOut = -p.rows
	for _, rows := range p.partitions {
		p.leftOut += rows
	}
	return p, nil
}

// countBatches counts a partition's mini-batches.
func (p *Plan) countBatches(partition int) int64 {
	rows, batch := p.partitions[partition], int64(p.options.Batch)
	n := rows / batch
	if rows%batch != 0 && p.options.Tail == KeepTail {
		n++
	}
	return n
}

// Options returns the options with their defaults filled in.
func (p *Plan) Options() Options { return p.options }

// MiniBatches returns how many mini-batches the plan has; they are numbered from 0.
func (p *Plan) MiniBatches() uint64 { return p.firstNumbers[len(p.firstNumbers)-1] }

// Splits returns how many splits the plan has. Their positions count from 0.
func (p *Plan) Splits() int { return len(p.firstNumbers) - 1 }

// Rows returns the rows that the plan delivers: all but dropped tails.
func (p *Plan) Rows() int64 { return p.rows }

// LeftOut returns the rows that the plan leaves out: those of dropped tails.
func (p *Plan) LeftOut() int64 { return p.leftOut }

// rowsFrom returns the rows of the mini-batches from a number on.
func (p *Plan) rowsFrom(number uint64) (rows int64) {
	for position := p.Splits() - 1; position >= 0 && p.firstNumbers[position+1] > number; position-- {
		s := p.splitAt(position)
		rows += s.Rows - int64(max(number, s.FirstNumber)-s.FirstNumber)*int64(p.options.Batch)
	}
	return rows
}

// String describes the plan in words.
func (p *Plan) String() string {
	return fmt.Sprintf("%d rows of %d partitions in %d mini-batches of %d and %d splits of %d, "+
		"shuffle %v, seed %d, epoch %d",
		p.rows, len(p.partitions), p.MiniBatches(), p.options.Batch, p.Splits(), p.options.SplitBatches,
		p.options.Shuffle, p.options.Seed, p.options.Epoch)
}

// MiniBatch returns the mini-batch of a number, in time logarithmic in the number of splits. The error wraps ErrNumber.
func (p *Plan) MiniBatch(number uint64) (MiniBatch, error) {
	if number >= p.MiniBatches() {
		return MiniBatch{}, fmt.Errorf("%w: mini-batch %d of %d", ErrNumber, number, p.MiniBatches())
	}
	position := sort.Search(p.Splits(), func(i int) bool { return p.firstNumbers[i+1] > number })
	s, err := p.Split(position)
	if err != nil {
		return MiniBatch{}, err
	}
	return s.MiniBatch(p.options.Batch, int(number-s.FirstNumber)), nil
}

// Split returns the split at a position of the plan. The error wraps ErrNumber.
func (p *Plan) Split(position int) (Split, error) {
	if position < 0 || position >= p.Splits() {
		return Split{}, fmt.Errorf("%w: split %d of %d", ErrNumber, position, p.Splits())
	}
	return p.splitAt(position), nil
}

// All yields every split in the plan's order.
func (p *Plan) All() iter.Seq[Split] {
	return func(yield func(Split) bool) {
		for position := range p.Splits() {
			if !yield(p.splitAt(position)) {
				return
			}
		}
	}
}

// MiniBatch returns the mini-batch of an index in the split, counted from 0. batch is the rows of a mini-batch.
func (s Split) MiniBatch(batch, index int) MiniBatch {
	first := int64(index) * int64(batch)
	return MiniBatch{
		Number:    s.FirstNumber + uint64(index),
		Partition: s.Partition,
		First:     s.First + first,
		Rows:      int(min(int64(batch), s.Rows-first)),
		Split:     s.Position,
	}
}

// splitID returns the ID of the split at a position.
func (p *Plan) splitID(position int) int {
	if p.splitIDs == nil {
		return position
	}
	return int(p.splitIDs[position])
}

// splitAt returns the split at a position, which must be in the plan.
func (p *Plan) splitAt(position int) Split {
	s := p.splitOfID(p.splitID(position))
	s.Position, s.FirstNumber = position, p.firstNumbers[position]
	return s
}

// splitOfID returns the split of an ID without its position and its first number.
func (p *Plan) splitOfID(id int) Split {
	partition := sort.Search(len(p.partitions), func(i int) bool { return p.firstSplitID[i+1] > id })
	batch, splitBatches := int64(p.options.Batch), int64(p.options.SplitBatches)
	firstBatch := int64(id-p.firstSplitID[partition]) * splitBatches // of the partition's mini-batches
	batches := min(splitBatches, p.countBatches(partition)-firstBatch)
	firstRow := firstBatch * batch
	return Split{
		ID:          id,
		Partition:   partition,
		First:       firstRow,
		Rows:        min(batches*batch, p.partitions[partition]-firstRow),
		MiniBatches: int(batches),
	}
}

// Window is consecutive mini-batches of one split whose rows ShuffleRows mixes.
type Window struct {
	Split       int    // position of its split in the plan
	Index       int    // The number of the window in the split, from 0.
	FirstNumber uint64 // number of its first mini-batch
	MiniBatches int
	Rows        int // The rows of all its mini-batches.
}

// String describes the window, for errors.
func (w Window) String() string {
	return fmt.Sprintf("window %d of the split at position %d (%d rows, mini-batches %d+%d)",
		w.Index, w.Split, w.Rows, w.FirstNumber, w.MiniBatches)
}

// Window returns the window of a mini-batch. Without ShuffleRows the window is the mini-batch alone. The error wraps
// ErrNumber.
func (p *Plan) Window(number uint64) (Window, error) {
	mb, err := p.MiniBatch(number)
	if err != nil {
		return Window{}, err
	}
	s, err := p.Split(mb.Split)
	if err != nil {
		return Window{}, err
	}
	windowBatches := 1
	if p.options.Shuffle == ShuffleRows {
		windowBatches = p.options.Window
	}
	w := Window{Split: s.Position, Index: int(number-s.FirstNumber) / windowBatches}
	firstBatch := w.Index * windowBatches // of the split's mini-batches
	w.FirstNumber = s.FirstNumber + uint64(firstBatch)
	w.MiniBatches = min(windowBatches, s.MiniBatches-firstBatch)
	firstRow := int64(firstBatch) * int64(p.options.Batch)
	w.Rows = int(min(int64(w.MiniBatches)*int64(p.options.Batch), s.Rows-firstRow))
	return w, nil
}

// RowPermutation returns the order of a window's rows: row i of the window as delivered is row permutation[i] of the
// window as cut. Without ShuffleRows it returns nil, since the rows keep their order. The error wraps ErrNumber.
func (p *Plan) RowPermutation(w Window) ([]uint32, error) {
	if p.options.Shuffle != ShuffleRows {
		return nil, nil
	}
	planned, err := p.Window(w.FirstNumber)
	if err != nil {
		return nil, err
	}
	if planned != w {
		return nil, fmt.Errorf("%w: %v was asked for, and the plan has %v", ErrNumber, w, planned)
	}
	permutation := make([]uint32, w.Rows)
	random := newGenerator(p.options.Seed, p.options.Epoch, uint64(DomainRows), uint64(p.splitID(w.Split)),
		uint64(w.Index))
	permute(&random, permutation)
	return permutation, nil
}
