package reducer

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// folded is a vocabulary in the making.
type folded interface {
	passes.Reducer
	finish() error // finish sets what was built in the report.
	Close() error
}

// positions finds the first row of each mini-batch in the data set.
type positions struct {
	firstRows []int64 // firstRows is by mini-batch, without the rows that were dropped before it.
	next      uint64  // next is the number that follows if every mini-batch so far came in order.
	dropped   int64   // dropped counts the malformed rows of those that were not made.
	rows      []int64 // rows counts the rows of each partition that came.
}

func newPositions(plan *dataset.Plan, partitions int) (*positions, error) {
	p := &positions{firstRows: make([]int64, 0, plan.MiniBatches()), rows: make([]int64, partitions)}
	first := int64(0)
	for number := range plan.MiniBatches() {
		at, err := plan.Fragment(number)
		if err != nil {
			return nil, err
		}
		p.firstRows = append(p.firstRows, first)
		first += int64(at.Rows)
	}
	return p, nil
}

// add returns the first row of a mini-batch. Rows may be missing from mini-batches that come in order: of others it is
// not known how many were dropped before.
func (p *positions) add(at dataset.Fragment, mb *tensor.MiniBatch) (first uint64, err error) {
	inOrder := at.Number == p.next
	if mb.Rows > at.Rows || !inOrder && (p.dropped > 0 || mb.Rows < at.Rows) {
		return 0, fmt.Errorf("mini-batch %d came with %d rows, want %d", at.Number, mb.Rows, at.Rows)
	}
	first = uint64(p.firstRows[at.Number] - p.dropped)
	if p.next++; !inOrder {
		p.next = math.MaxUint64
	}
	p.dropped += int64(at.Rows - mb.Rows)
	p.rows[at.Partition] += int64(mb.Rows)
	return first, nil
}

// memoryFold is a vocabulary in memory.
type memoryFold struct {
	*reduction
	*vocabulary.MemoryBuilder
	*positions
	keepIDs bool
}

// Add implements passes.Reducer.
func (m *memoryFold) Add(at dataset.Fragment, mb *tensor.MiniBatch) error {
	first, err := m.positions.add(at, mb)
	if err != nil {
		return err
	}
	return m.AddMiniBatch(first, mb)
}

// finish implements folded.
func (m *memoryFold) finish() (err error) {
	if m.keepIDs {
		list := make([]vocabulary.PartitionRows, len(m.rows))
		for i, p := range m.data.Manifest.Partitions {
			list[i] = vocabulary.PartitionRows{Name: p.Name, Digest: p.Content, Rows: m.rows[i]}
		}
		m.MemoryBuilder.KeepIDs(list)
	}
	m.report.Vocabulary, err = m.Vocabulary()
	return err
}

// fileFold is a vocabulary that becomes a file.
type fileFold struct {
	*reduction
	*vocabulary.Builder
	*positions
	files map[string]*vocabulary.Counts // files are the parts of the work folder.
}

// Add implements passes.Reducer.
func (f *fileFold) Add(at dataset.Fragment, mb *tensor.MiniBatch) error {
	first, err := f.positions.add(at, mb)
	if err != nil {
		return err
	}
	return f.AddMiniBatch(first, mb)
}

// Keys returns how many keys were folded in: those in files count once in each.
func (f *fileFold) Keys() int64 { return f.keysInFiles() + f.Builder.Keys() }

func (f *fileFold) keysInFiles() (n int64) {
	for _, file := range f.files {
		n += file.Entries
	}
	return n
}

// Restore implements passes.Keeper.
func (f *fileFold) Restore(parts []string, _ []dataset.Range) (err error) {
	for _, path := range parts {
		if f.files[path], err = vocabulary.OpenPartial(path); err != nil {
			return err
		}
	}
	return nil
}

// Keep implements passes.Keeper.
func (f *fileFold) Keep(path string) (replaces bool, err error) {
	f.files[path], err = f.WritePartial(path)
	return false, err
}

// Full implements passes.Keeper: the builder has no more memory for keys.
func (f *fileFold) Full() bool { return f.Spilled() }

// Merge implements passes.Merger.
func (f *fileFold) Merge(path string, parts []string) (err error) {
	files := make([]*vocabulary.Counts, len(parts))
	for i, part := range parts {
		files[i] = f.files[part]
	}
	if f.files[path], err = vocabulary.MergePartials(path, files...); err != nil {
		return err
	}
	for _, part := range parts {
		delete(f.files, part)
	}
	return nil
}

// finish implements folded.
func (f *fileFold) finish() (err error) {
	if err := f.roomToFinish(); err != nil {
		return err
	}
	for _, path := range f.work.Parts() {
		if err := f.Take(f.files[path]); err != nil {
			return err
		}
	}
	_, err = f.Finish(f.Path)
	return f.work.DiskError(filepath.Dir(f.Path), "the vocabulary's file", err)
}

// Bytes of a key in the files that a pass ends with.
const (
	bytesInFile   = 8  // in the vocabulary
	bytesInCounts = 24 // in its sidecar, and in a run that is sorted by the order of ids
)

// roomToBegin returns a *passes.RoomError if the disk lacks room for a part and a merge of it. They take at most twice
// the memory for keys and, where no column holds lists, at most what the keys of all rows take.
func (f *fileFold) roomToBegin(run passes.Run, columns int) error {
	wanted, lists := 2*max(cmp.Or(f.Memory, vocabulary.DefaultMemory), 1<<20), false
	for _, key := range run.Schema().Keys {
		lists = lists || key.List
	}
	if !lists {
		wanted = min(wanted, 2*bytesInCounts*run.Plan().Rows()*int64(columns))
	}
	return f.work.WantRoom("", "parts of the pass", wanted)
}

// roomToFinish returns a *passes.RoomError if the disks have too little room for the file, its sidecar, and the runs in
// which the keys are brought in the order of their ids. Parts that share keys are merged first if that helps.
func (f *fileFold) roomToFinish() error {
	before := int64(0)
	if f.base != nil {
		before = f.base.Keys()
	}
	check := func() error {
		keys := f.Keys() + before
		err := f.work.WantRoom(f.Work, "the keys in the order of their ids", bytesInCounts*keys)
		if err == nil {
			err = f.work.WantRoom(filepath.Dir(f.Path), "the vocabulary's file and its counts",
				(bytesInFile+bytesInCounts)*keys)
		}
		return err
	}
	err := check()
	if err == nil || len(f.files) < 2 {
		return err
	}
	if err := f.work.MergeAll(f); err != nil {
		return err
	}
	return check()
}
