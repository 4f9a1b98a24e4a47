package dataset

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"sort"
)

// ErrNumber says that the plan has no mini-batch, fragment, split or window of that number.
var ErrNumber = errors.New("dataset: not in the plan")

// MaxSplits is the most splits of a plan. For more, choose a larger batch or more mini-batches in a split.
const MaxSplits = 1<<31 - 1

// MiniBatch is one mini-batch of a plan: its fragments, joined in their order.
type MiniBatch struct {
	Number        uint64 // its position in the plan
	Rows          int
	FirstFragment uint64 // number of its first fragment
	Fragments     int    // how many it has, at least 1
}

// Fragment is the rows of one mini-batch in one split. With BoundaryPartition every mini-batch has one fragment, of the
// same number.
type Fragment struct {
	Number    uint64 // its position among the fragments of the plan, in the order of the sequence
	MiniBatch uint64 // number of the mini-batch
	Offset    int    // rows of the mini-batch before this fragment
	Partition int    // index into the manifest
	First     int64  // its first row in the partition; of a selected plan, the number of its first passing row
	Rows      int    // how many rows from there
	Split     int    // position of its split in the plan
}

// Split is one split of a plan: consecutive rows of one partition, cut into fragments.
type Split struct {
	Position      int    // in this epoch's plan
	ID            int    // its position in dataset order, the same in every epoch
	Partition     int    // index into the manifest
	First         int64  // its first row in the partition; of a selected plan, the number of its first passing row
	Rows          int64  // how many rows from there, without a dropped tail
	FirstFragment uint64 // number of its first fragment
	Fragments     int    // how many it has, at least 1
	Before        int    // rows of its first mini-batch that lie in splits before it; 0 with BoundaryPartition
	FirstBatch    uint64 // number of its first mini-batch
}

// String describes the split, for errors.
func (s Split) String() string {
	return fmt.Sprintf("split %d at position %d (rows %d+%d of partition %d, fragments %d+%d)",
		s.ID, s.Position, s.First, s.Rows, s.Partition, s.FirstFragment, s.Fragments)
}

// Plan is an epoch's plan. It holds at most five integers for each split, and no list of mini-batches.
type Plan struct {
	options        Options
	partitions     []int64  // rows of each
	firstSplitID   []int    // by partition; one more at the end
	ends           []int64  // by ID: the row of the partition behind the split's last; nil with BoundaryPartition
	splitIDs       []uint32 // by position; nil in dataset order
	firstFragments []uint64 // by position: the number of the split's first fragment; one more at the end
	firstRows      []int64  // by position: its first row in the sequence; nil with BoundaryPartition; one more at the end
	rows           int64    // delivered
	leftOut        int64    // rows of dropped tails
}

// NewPlan cuts and orders a manifest's rows. Errors wrap ErrOptions or ErrManifest.
func NewPlan(m *Manifest, o Options) (*Plan, error) { return NewSelectedPlan(m, nil, o) }

// NewSelectedPlan cuts and orders the rows of a manifest that pass a filter: passing has their number in each
// partition, and nil means all rows. The plan counts passing rows only, as if the partitions had no others; it does not
// know in which row groups they are. Errors wrap ErrOptions or ErrManifest.
func NewSelectedPlan(m *Manifest, passing []int64, o Options) (*Plan, error) {
	p, all, err := cutManifest(m, passing, o, MaxSplits)
	if err != nil {
		return nil, err
	}
	if p.options.Shuffle != ShuffleNone {
		p.splitIDs = make([]uint32, p.firstSplitID[len(m.Partitions)])
		random := newGenerator(p.options.Seed, p.options.Epoch, uint64(DomainSplits))
		permute(&random, p.splitIDs)
	}
	if p.options.Boundary == BoundaryNone {
		p.numberSequence(all)
	} else {
		p.numberPartitions()
	}
	p.leftOut = all - p.rows
	return p, nil
}

// CheckSplits returns an error that wraps ErrOptions if a plan has more splits than most. It makes no plan: its memory
// is bounded by most, whatever a manifest says of its partitions. passing is that of NewSelectedPlan.
func CheckSplits(m *Manifest, passing []int64, o Options, most int) error {
	_, _, err := cutManifest(m, passing, o, most)
	return err
}

// cutManifest cuts the rows of a manifest into at most the given number of splits, which have no order yet. It returns
// the number of the rows.
func cutManifest(m *Manifest, passing []int64, o Options, most int) (p *Plan, all int64, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, 0, err
	}
	if m == nil {
		return nil, 0, fmt.Errorf("%w: there is none", ErrManifest)
	}
	if passing != nil && len(passing) != len(m.Partitions) {
		return nil, 0, fmt.Errorf("%w: a selection of %d partitions for %d", ErrManifest, len(passing), len(m.Partitions))
	}
	p = &Plan{options: o, partitions: make([]int64, len(m.Partitions)), firstSplitID: make([]int, len(m.Partitions)+1)}
	for i := range m.Partitions {
		entry := &m.Partitions[i]
		if err := entry.validate(); err != nil {
			return nil, 0, fmt.Errorf("%w: partition %q: %w", ErrManifest, entry.Name, err)
		}
		rows, groups := entry.Rows, entry.RowGroups
		if passing != nil {
			if rows, groups = passing[i], nil; rows < 0 || rows > entry.Rows {
				return nil, 0, fmt.Errorf("%w: partition %q: %d of %d rows are selected", ErrManifest, entry.Name, rows,
					entry.Rows)
			}
		}
		if rows > math.MaxInt64-all {
			return nil, 0, fmt.Errorf("%w: partition %q: the rows of all partitions pass 2^63", ErrManifest, entry.Name)
		}
		p.partitions[i] = rows
		all += rows
		if err := p.cutPartition(i, groups, most); err != nil {
			return nil, 0, err
		}
	}
	return p, all, nil
}

// cutPartition cuts a partition into splits, of which the plan has at most the given number.
func (p *Plan) cutPartition(i int, groups []int64, most int) (err error) {
	if p.options.Boundary == BoundaryNone {
		if p.ends, err = newCutter(p.options, most).cut(p.ends, p.partitions[i], groups); err != nil {
			return err
		}
		p.firstSplitID[i+1] = len(p.ends)
		return nil
	}
	batches, perSplit := p.countBatches(i), int64(p.options.SplitBatches)
	splits := batches / perSplit
	if batches%perSplit != 0 {
		splits++
	}
	if splits > int64(most-p.firstSplitID[i]) {
		return tooManySplits(most)
	}
	p.firstSplitID[i+1] = p.firstSplitID[i] + int(splits)
	return nil
}

// numberPartitions numbers the fragments of a plan in which mini-batches end where partitions do.
func (p *Plan) numberPartitions() {
	splits := p.firstSplitID[len(p.partitions)]
	p.firstFragments = make([]uint64, splits+1)
	for position := range splits {
		s := p.splitOfID(p.splitID(position))
		p.firstFragments[position+1] = p.firstFragments[position] + uint64(s.Fragments)
		p.rows += s.Rows
	}
}

// numberSequence numbers the fragments of a plan whose mini-batches are consecutive rows of the sequence. Splits behind
// the last mini-batch, whose rows are all left out, are not in the plan.
func (p *Plan) numberSequence(all int64) {
	batch := int64(p.options.Batch)
	if p.rows = all; p.options.Tail == DropTail {
		p.rows -= all % batch
	}
	splits := p.firstSplitID[len(p.partitions)]
	p.firstFragments, p.firstRows = make([]uint64, 1, splits+1), make([]int64, 1, splits+1)
	for position := 0; p.firstRows[position] < p.rows; position++ {
		first := p.firstRows[position]
		end := min(first+p.splitOfID(p.splitID(position)).Rows, p.rows)
		p.firstRows = append(p.firstRows, end)
		p.firstFragments = append(p.firstFragments, p.firstFragments[position]+uint64((end-1)/batch-first/batch+1))
	}
}

// countBatches counts a partition's mini-batches in a plan in which mini-batches end where partitions do.
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
func (p *Plan) MiniBatches() uint64 {
	if p.firstRows == nil {
		return p.Fragments()
	}
	batch := int64(p.options.Batch)
	n := p.rows / batch
	if p.rows%batch != 0 {
		n++
	}
	return uint64(n)
}

// ShortMiniBatches returns how many mini-batches have fewer than Batch rows.
func (p *Plan) ShortMiniBatches() (n uint64) {
	batch := int64(p.options.Batch)
	switch {
	case p.options.Tail == DropTail:
		return 0
	case p.options.Boundary == BoundaryNone:
		return uint64(min(p.rows%batch, 1))
	}
	for _, rows := range p.partitions {
		n += uint64(min(rows%batch, 1))
	}
	return n
}

// Fragments returns how many fragments the plan has; they are numbered from 0.
func (p *Plan) Fragments() uint64 { return p.firstFragments[len(p.firstFragments)-1] }

// Splits returns how many splits the plan has. Their positions count from 0.
func (p *Plan) Splits() int { return len(p.firstFragments) - 1 }

// Rows returns the rows that the plan delivers: all but dropped tails.
func (p *Plan) Rows() int64 { return p.rows }

// LeftOut returns the rows that the plan leaves out: those of dropped tails.
func (p *Plan) LeftOut() int64 { return p.leftOut }

// rowsFrom returns the rows of the mini-batches from a number on.
func (p *Plan) rowsFrom(number uint64) (rows int64) {
	for position := p.Splits() - 1; position >= 0; position-- {
		s := p.splitAt(position)
		if s.FirstBatch >= number {
			rows += s.Rows
			continue
		}
		if before := int64(number-s.FirstBatch)*int64(p.options.Batch) - int64(s.Before); before < s.Rows {
			rows += s.Rows - before
		}
		break
	}
	return rows
}

// String describes the plan in words.
func (p *Plan) String() string {
	across := ""
	if p.options.Boundary == BoundaryNone {
		across = " across partitions"
	}
	return fmt.Sprintf("%d rows of %d partitions in %d mini-batches of %d%s and %d splits of %d, "+
		"shuffle %v, seed %d, epoch %d",
		p.rows, len(p.partitions), p.MiniBatches(), p.options.Batch, across, p.Splits(), p.options.SplitBatches,
		p.options.Shuffle, p.options.Seed, p.options.Epoch)
}

// MiniBatch returns the mini-batch of a number, in time logarithmic in the number of splits. The error wraps ErrNumber.
func (p *Plan) MiniBatch(number uint64) (MiniBatch, error) {
	if number >= p.MiniBatches() {
		return MiniBatch{}, fmt.Errorf("%w: mini-batch %d of %d", ErrNumber, number, p.MiniBatches())
	}
	if p.firstRows == nil {
		f, err := p.Fragment(number)
		return MiniBatch{Number: number, Rows: f.Rows, FirstFragment: number, Fragments: 1}, err
	}
	rows := min(int64(p.options.Batch), p.rows-int64(number)*int64(p.options.Batch))
	first := p.firstFragmentOf(number)
	return MiniBatch{Number: number, Rows: int(rows), FirstFragment: first,
		Fragments: int(p.firstFragmentOf(number+1) - first)}, nil
}

// firstFragmentOf returns the number of a mini-batch's first fragment; that of Fragments for the number behind the last
// mini-batch.
func (p *Plan) firstFragmentOf(number uint64) uint64 {
	switch {
	case p.firstRows == nil:
		return min(number, p.Fragments())
	case number >= p.MiniBatches():
		return p.Fragments()
	}
	row := int64(number) * int64(p.options.Batch)
	position := sort.Search(p.Splits(), func(i int) bool { return p.firstRows[i+1] > row })
	s := p.splitAt(position)
	return s.FirstFragment + (number - s.FirstBatch)
}

// FragmentsOf returns the fragments of a range of mini-batches, which may end at MiniBatches.
func (p *Plan) FragmentsOf(miniBatches Range) Range {
	return Range{From: p.firstFragmentOf(miniBatches.From), To: p.firstFragmentOf(miniBatches.To)}
}

// MiniBatchesOf returns the mini-batches of which all fragments are in a range of fragments, which may end at
// Fragments. The range is empty if there is none.
func (p *Plan) MiniBatchesOf(fragments Range) Range {
	r := Range{From: p.miniBatchAt(fragments.From), To: p.miniBatchAt(fragments.To)}
	if p.firstFragmentOf(r.From) < fragments.From {
		r.From++
	}
	r.To = max(r.To, r.From)
	return r
}

// miniBatchAt returns the mini-batch that a fragment belongs to; that of MiniBatches for the number behind the last
// fragment.
func (p *Plan) miniBatchAt(fragment uint64) uint64 {
	f, err := p.Fragment(fragment)
	if err != nil {
		return p.MiniBatches()
	}
	return f.MiniBatch
}

// Fragment returns the fragment of a number, in time logarithmic in the number of splits. The error wraps ErrNumber.
func (p *Plan) Fragment(number uint64) (Fragment, error) {
	if number >= p.Fragments() {
		return Fragment{}, fmt.Errorf("%w: fragment %d of %d", ErrNumber, number, p.Fragments())
	}
	position := sort.Search(p.Splits(), func(i int) bool { return p.firstFragments[i+1] > number })
	s := p.splitAt(position)
	return s.Fragment(p.options.Batch, int(number-s.FirstFragment)), nil
}

// FragmentAt returns the fragment of an index, counted from 0, of a mini-batch. The error wraps ErrNumber.
func (p *Plan) FragmentAt(miniBatch uint64, index int) (Fragment, error) {
	mb, err := p.MiniBatch(miniBatch)
	if err != nil {
		return Fragment{}, err
	}
	if index < 0 || index >= mb.Fragments {
		return Fragment{}, fmt.Errorf("%w: fragment %d of the %d of mini-batch %d", ErrNumber, index, mb.Fragments,
			miniBatch)
	}
	return p.Fragment(mb.FirstFragment + uint64(index))
}

// Place returns the index, counted from 0, of a fragment of the plan among the fragments of its mini-batch, and their
// number. Both are 0 if the fragment is the whole mini-batch.
func (p *Plan) Place(f Fragment) (index, of int) {
	all := p.FragmentsOf(Range{From: f.MiniBatch, To: f.MiniBatch + 1})
	if of = int(all.To - all.From); of <= 1 {
		return 0, 0
	}
	return int(f.Number - all.From), of
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

// End returns the number behind that of the split's last fragment.
func (s Split) End() uint64 { return s.FirstFragment + uint64(s.Fragments) }

// RowsBefore returns the rows of the split before the fragment of an index, counted from 0. The index may be that
// behind the last fragment. batch is the rows of a mini-batch.
func (s Split) RowsBefore(batch, index int) int64 {
	if index == 0 {
		return 0
	}
	return min(int64(index)*int64(batch)-int64(s.Before), s.Rows)
}

// Fragment returns the fragment of an index in the split, counted from 0. batch is the rows of a mini-batch.
func (s Split) Fragment(batch, index int) Fragment {
	before := s.RowsBefore(batch, index)
	f := Fragment{
		Number:    s.FirstFragment + uint64(index),
		MiniBatch: s.FirstBatch + uint64(index),
		Partition: s.Partition,
		First:     s.First + before,
		Rows:      int(s.RowsBefore(batch, index+1) - before),
		Split:     s.Position,
	}
	if index == 0 {
		f.Offset = s.Before
	}
	return f
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
	s.Position, s.FirstFragment = position, p.firstFragments[position]
	s.FirstBatch = s.FirstFragment
	if p.firstRows != nil {
		batch, first := int64(p.options.Batch), p.firstRows[position]
		s.Rows = p.firstRows[position+1] - first
		s.Fragments = int(p.firstFragments[position+1] - s.FirstFragment)
		s.Before, s.FirstBatch = int(first%batch), uint64(first/batch)
	}
	return s
}

// splitOfID returns the split of an ID without what depends on its position.
func (p *Plan) splitOfID(id int) Split {
	partition := sort.Search(len(p.partitions), func(i int) bool { return p.firstSplitID[i+1] > id })
	s := Split{ID: id, Partition: partition}
	if p.options.Boundary == BoundaryNone {
		if id > p.firstSplitID[partition] {
			s.First = p.ends[id-1]
		}
		s.Rows = p.ends[id] - s.First
		return s
	}
	batch, splitBatches := int64(p.options.Batch), int64(p.options.SplitBatches)
	firstBatch := int64(id-p.firstSplitID[partition]) * splitBatches // of the partition's mini-batches
	batches := min(splitBatches, p.countBatches(partition)-firstBatch)
	s.First = firstBatch * batch
	s.Rows = min(batches*batch, p.partitions[partition]-s.First)
	s.Fragments = int(batches)
	return s
}

// Window is consecutive fragments of one split whose rows ShuffleRows mixes.
type Window struct {
	Split         int    // position of its split in the plan
	Index         int    // The number of the window in the split, from 0.
	FirstFragment uint64 // number of its first fragment
	Fragments     int
	Rows          int // The rows of all its fragments.
}

// String describes the window, for errors.
func (w Window) String() string {
	return fmt.Sprintf("window %d of the split at position %d (%d rows, fragments %d+%d)",
		w.Index, w.Split, w.Rows, w.FirstFragment, w.Fragments)
}

// Window returns the window of a fragment. Without ShuffleRows the window is the fragment alone. The error wraps
// ErrNumber.
func (p *Plan) Window(fragment uint64) (Window, error) {
	f, err := p.Fragment(fragment)
	if err != nil {
		return Window{}, err
	}
	s := p.splitAt(f.Split)
	size := 1 // fragments
	if p.options.Shuffle == ShuffleRows {
		size = p.options.Window
	}
	w := Window{Split: s.Position, Index: int(fragment-s.FirstFragment) / size}
	first := w.Index * size // of the split's fragments
	w.FirstFragment = s.FirstFragment + uint64(first)
	w.Fragments = min(size, s.Fragments-first)
	w.Rows = int(s.RowsBefore(p.options.Batch, first+w.Fragments) - s.RowsBefore(p.options.Batch, first))
	return w, nil
}

// RowPermutation returns the order of a window's rows: row i of the window as delivered is row permutation[i] of the
// window as cut. Without ShuffleRows it returns nil, since the rows keep their order. The error wraps ErrNumber.
func (p *Plan) RowPermutation(w Window) ([]uint32, error) {
	if p.options.Shuffle != ShuffleRows {
		return nil, nil
	}
	planned, err := p.Window(w.FirstFragment)
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
