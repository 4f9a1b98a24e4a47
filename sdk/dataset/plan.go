package dataset

import (
	"errors"
	"fmt"
	"iter"
	"sort"
)

// ErrNumber says that a mini-batch number, a split or a window is not of the plan.
var ErrNumber = errors.New("dataset: not in the plan")

// MaxSplits is the most splits of a plan; above it choose a larger batch or more mini-batches a split.
const MaxSplits = 1<<31 - 1

// MiniBatch is one mini-batch of a plan.
type MiniBatch struct {
	Number    uint64 // its place in the plan
	Partition int    // index into the manifest
	First     int64  // its first row in the partition
	Rows      int    // how many rows from there
	Split     int    // place of its split in the plan
}

// Split is one split of a plan: consecutive mini-batches of one partition.
type Split struct {
	Position    int    // its place in this epoch's plan
	ID          int    // its place in dataset order, the same in every epoch
	Partition   int    // index into the manifest
	First       int64  // its first row in the partition
	Rows        int64  // how many rows from there, without a dropped tail
	FirstNumber uint64 // number of its first mini-batch
	MiniBatches int    // how many it has, at least 1
}

// Plan is an epoch's plan. It holds three integers a split at most, never a list of mini-batches.
type Plan struct {
	options    Options
	partitions []Partition
	firstID    []int    // of each partition: the ID of its first split; one more at the end
	order      []uint32 // split ID at each place; nil in dataset order
	numbers    []uint64 // of each place: its first mini-batch's number; one more at the end
	rows       int64    // delivered
}

// NewPlan cuts and orders a manifest's rows. Errors wrap ErrOptions or ErrManifest.
func NewPlan(m *Manifest, o Options) (*Plan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%w: there is none", ErrManifest)
	}
	p := &Plan{options: o, partitions: m.Partitions, firstID: make([]int, len(m.Partitions)+1)}
	for i := range m.Partitions {
		if err := m.Partitions[i].check(); err != nil {
			return nil, fmt.Errorf("%w: partition %q: %v", ErrManifest, m.Partitions[i].Name, err)
		}
		n := p.batchesOf(i)
		splits := (n + int64(o.SplitBatches) - 1) / int64(o.SplitBatches)
		if splits > MaxSplits-int64(p.firstID[i]) {
			return nil, fmt.Errorf("%w: more than %d splits: raise batch or split_batches", ErrOptions, int64(MaxSplits))
		}
		p.firstID[i+1] = p.firstID[i] + int(splits)
	}
	n := p.firstID[len(m.Partitions)]
	if o.Shuffle != ShuffleNone {
		p.order = make([]uint32, n)
		s := newStream(o.Seed, o.Epoch, domainSplits)
		permute(&s, p.order)
	}
	p.numbers = make([]uint64, n+1)
	for place := range n {
		s := p.byID(p.id(place))
		p.numbers[place+1] = p.numbers[place] + uint64(s.MiniBatches)
		p.rows += s.Rows
	}
	return p, nil
}

// batchesOf counts a partition's mini-batches.
func (p *Plan) batchesOf(partition int) int64 {
	rows, batch := p.partitions[partition].Rows, int64(p.options.Batch)
	n := rows / batch
	if rows%batch != 0 && p.options.Tail == KeepTail {
		n++
	}
	return n
}

// Options returns the options with their defaults filled in.
func (p *Plan) Options() Options { return p.options }

// MiniBatches returns how many mini-batches the plan has; they are numbered from 0.
func (p *Plan) MiniBatches() uint64 { return p.numbers[len(p.numbers)-1] }

// Splits returns how many splits the plan has; their places count from 0.
func (p *Plan) Splits() int { return len(p.numbers) - 1 }

// Rows returns the rows that the plan delivers: all but dropped tails.
func (p *Plan) Rows() int64 { return p.rows }

// String says in words what the plan does.
func (p *Plan) String() string {
	return fmt.Sprintf("%d rows of %d partitions in %d mini-batches of %d and %d splits of %d, shuffle %v, seed %d, epoch %d",
		p.rows, len(p.partitions), p.MiniBatches(), p.options.Batch, p.Splits(), p.options.SplitBatches, p.options.Shuffle, p.options.Seed, p.options.Epoch)
}

// MiniBatch returns mini-batch number, in time logarithmic in the splits. The error wraps ErrNumber.
func (p *Plan) MiniBatch(number uint64) (MiniBatch, error) {
	if number >= p.MiniBatches() {
		return MiniBatch{}, fmt.Errorf("%w: mini-batch %d of %d", ErrNumber, number, p.MiniBatches())
	}
	place := sort.Search(p.Splits(), func(i int) bool { return p.numbers[i+1] > number })
	s, err := p.Split(place)
	if err != nil {
		return MiniBatch{}, err
	}
	return s.MiniBatch(p.options.Batch, int(number-s.FirstNumber)), nil
}

// Split returns the split at a place of the plan. The error wraps ErrNumber.
func (p *Plan) Split(place int) (Split, error) {
	if place < 0 || place >= p.Splits() {
		return Split{}, fmt.Errorf("%w: split %d of %d", ErrNumber, place, p.Splits())
	}
	s := p.byID(p.id(place))
	s.Position, s.FirstNumber = place, p.numbers[place]
	return s, nil
}

// All yields every split in the plan's order.
func (p *Plan) All() iter.Seq[Split] {
	return func(yield func(Split) bool) {
		for place := range p.Splits() {
			s := p.byID(p.id(place))
			s.Position, s.FirstNumber = place, p.numbers[place]
			if !yield(s) {
				return
			}
		}
	}
}

// MiniBatch returns mini-batch i of the split, counted from 0, cut in mini-batches of batch rows.
func (s Split) MiniBatch(batch, i int) MiniBatch {
	first := int64(i) * int64(batch)
	return MiniBatch{
		Number:    s.FirstNumber + uint64(i),
		Partition: s.Partition,
		First:     s.First + first,
		Rows:      int(min(int64(batch), s.Rows-first)),
		Split:     s.Position,
	}
}

func (p *Plan) id(place int) int {
	if p.order == nil {
		return place
	}
	return int(p.order[place])
}

// byID fills in everything but the place and the numbers.
func (p *Plan) byID(id int) Split {
	part := sort.Search(len(p.partitions), func(i int) bool { return p.firstID[i+1] > id })
	o := &p.options
	k := int64(id - p.firstID[part]) // the split's place among its partition's
	per := int64(o.SplitBatches)
	n := min(per, p.batchesOf(part)-k*per)
	first := k * per * int64(o.Batch)
	return Split{
		ID:          id,
		Partition:   part,
		First:       first,
		Rows:        min(n*int64(o.Batch), p.partitions[part].Rows-first),
		MiniBatches: int(n),
	}
}

// Window is a run of mini-batches of one split whose rows ShuffleRows mixes.
type Window struct {
	Split       int    // place of its split in the plan
	Index       int    // which window of the split, from 0
	FirstNumber uint64 // number of its first mini-batch
	MiniBatches int
	Rows        int // of all its mini-batches
}

// Window returns the window that mini-batch number belongs to. Without ShuffleRows that is the mini-batch alone.
// The error wraps ErrNumber.
func (p *Plan) Window(number uint64) (Window, error) {
	mb, err := p.MiniBatch(number)
	if err != nil {
		return Window{}, err
	}
	s, err := p.Split(mb.Split)
	if err != nil {
		return Window{}, err
	}
	k := 1
	if p.options.Shuffle == ShuffleRows {
		k = p.options.Window
	}
	w := Window{Split: s.Position, Index: int(number-s.FirstNumber) / k}
	from := w.Index * k
	w.FirstNumber = s.FirstNumber + uint64(from)
	w.MiniBatches = min(k, s.MiniBatches-from)
	firstRow := int64(from) * int64(p.options.Batch)
	w.Rows = int(min(int64(w.MiniBatches)*int64(p.options.Batch), s.Rows-firstRow))
	return w, nil
}

// RowPermutation returns the order of a window's rows: row i of the window as delivered is row perm[i] of the window
// as cut. Without ShuffleRows it is nil: the rows stay as they are. The error wraps ErrNumber.
func (p *Plan) RowPermutation(w Window) ([]uint32, error) {
	if p.options.Shuffle != ShuffleRows {
		return nil, nil
	}
	own, err := p.Window(w.FirstNumber)
	if err != nil {
		return nil, err
	}
	if own != w {
		return nil, fmt.Errorf("%w: window %+v, the plan has %+v", ErrNumber, w, own)
	}
	perm := make([]uint32, w.Rows)
	s := newStream(p.options.Seed, p.options.Epoch, domainRows, uint64(p.id(w.Split)), uint64(w.Index))
	permute(&s, perm)
	return perm, nil
}
