package vocabulary

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

// MemoryBuilder makes a vocabulary for this process, without files: what a run needs that builds a vocabulary and
// applies it at once. The vocabulary is the one that a [Builder] writes, and has the same digest. It has no sidecar, so
// that no later generation can extend it.
//
// Where the rules are the order of first appearance without a least count, a MemoryBuilder gives keys their ids as they
// come, with neither positions nor counts nor a sort. Keys of 32 bits at most, one a row, wait for the end of the pass
// where half of the memory holds them, and all rows of a column get their ids then. A MemoryBuilder goes on as a
// Builder does, with runs on disk, for other rules, where memory is short, and where rows come in more than
// mostSequences sequences.
//
// It is safe for concurrent use.
type MemoryBuilder struct {
	builder *Builder // builder has the tables that need positions or counts
	tables  []memoryTable
	memory  *heldMemory  // memory holds the keys that wait for the end of the pass
	held    atomic.Int64 // bytes of the keys of all tables that wait for the end of the pass
	bytes   atomic.Int64 // bytes is what the generators of all tables use
	short   atomic.Bool  // memory is: every table moves to the builder

	partitions []PartitionRows // partitions are for KeepIDs
}

// memoryTable is one table of a MemoryBuilder.
type memoryTable struct {
	mu        sync.Mutex // guards what follows
	inBuilder bool
	column    int           // whose keys they are, if they are not in the builder
	held      heldColumn    // keys that are in no sequence yet
	sequences []keySequence // sequences hold rows that do not overlap
	cut       bool          // there were more keys than the rules allow
}

// keySequence is what was seen of rows that came in order and without a gap.
type keySequence struct {
	first, end uint64 // rows
	generator  *unit.Generator
}

// mostSequences bounds the sequences of a table, each of which has a table of its own.
const mostSequences = 8

// NewMemoryBuilder begins a vocabulary, as NewBuilder does.
func NewMemoryBuilder(columns []Column, rules Rules, o BuilderOptions) (*MemoryBuilder, error) {
	b, err := NewBuilder(columns, rules, o)
	if err != nil {
		return nil, err
	}
	m := &MemoryBuilder{builder: b, tables: make([]memoryTable, len(b.tables)), memory: newHeldMemory(b.memory / 2)}
	for i := range m.tables {
		m.tables[i].column = i
		// Rows of several columns in one table do not come in the order of their positions.
		m.tables[i].inBuilder = b.rules.Order != FirstSeen || b.rules.MinCount > 1 || b.rules.Joint && len(columns) > 1
	}
	return m, nil
}

// Add folds the ids of consecutive rows of one column in, as Builder.Add does.
func (m *MemoryBuilder) Add(column int, first uint64, ids []int64, lengths []int32) error {
	rows, err := m.builder.checkRows(column, first, ids, lengths)
	if err != nil {
		return err
	}
	index := m.builder.columns[column].Table
	t := &m.tables[index]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inBuilder {
		return m.builder.Add(column, first, ids, lengths)
	}
	if lengths == nil {
		more, held := t.held.holdKeys(m.memory, first, ids)
		if all := m.held.Add(more); held && all <= m.mostHeldBytes() {
			return nil
		} else if held {
			return m.releaseTable(index)
		}
	}
	if err := m.releaseTable(index); err != nil {
		return err
	}
	ready, err := m.makeRoom(index, first, len(ids))
	if err != nil {
		return err
	}
	if !ready {
		return m.builder.Add(column, first, ids, lengths)
	}
	generateIDs(m, t, first, rows, ids)
	return nil
}

// mostHeldBytes returns how many bytes of keys may wait for the end of the pass: half of the memory while that is all
// there is, and a quarter of it beside generators.
func (m *MemoryBuilder) mostHeldBytes() int64 {
	if m.bytes.Load() == 0 {
		return m.builder.memory / 2
	}
	return m.builder.memory / 4
}

// releaseTable gives the keys that a table holds to generators, or to the builder. The table is locked.
func (m *MemoryBuilder) releaseTable(index int) error {
	held := &m.tables[index].held
	if err := releaseKeys(m, index, &held.narrow); err != nil {
		return err
	}
	return releaseKeys(m, index, &held.wide)
}

// releaseKeys is releaseTable of keys of one width.
func releaseKeys[K unit.EncodedKey](m *MemoryBuilder, index int, h *heldKeys[K]) error {
	t := &m.tables[index]
	h.sortSequences()
	for i := range h.sequences {
		s := &h.sequences[i]
		row := s.first
		for j, block := range s.blocks {
			ready, err := m.makeRoom(index, row, len(block))
			if err != nil {
				return err
			}
			if ready {
				generateIDs(m, t, row, uint64(len(block)), block)
			} else if err := addHeld(m.builder, t.column, row, block); err != nil {
				return err
			}
			row += uint64(len(block))
			t.held.keys -= len(block)
			m.held.Add(-heldKeyBytes[K]() * int64(len(block)))
			returnBlock(m.memory, block)
			s.blocks[j] = nil
		}
	}
	h.sequences = nil
	return nil
}

// addHeld gives a block of keys to the builder.
func addHeld[K unit.EncodedKey](b *Builder, column int, first uint64, block []K) error {
	var wide [1024]int64
	for len(block) > 0 {
		part := block[:min(len(block), len(wide))]
		for i, key := range part {
			wide[i] = int64(key)
		}
		if err := b.Add(column, first, wide[:len(part)], nil); err != nil {
			return err
		}
		first += uint64(len(part))
		block = block[len(part):]
	}
	return nil
}

// makeRoom prepares a table for so many keys of rows from one on. It reports whether a generator takes them; the
// builder takes them otherwise. The table is locked.
func (m *MemoryBuilder) makeRoom(index int, first uint64, keys int) (ready bool, err error) {
	t := &m.tables[index]
	if t.inBuilder {
		return false, nil
	}
	sequence := t.sequenceOf(first)
	if sequence != nil && !m.short.Load() && len(sequence.generator.Keys())+keys <= unit.MaxKeys {
		return true, nil
	}
	return false, m.moveToBuilder(index)
}

// generateIDs gives keys to the generator of the rows before them.
func generateIDs[K unit.Key](m *MemoryBuilder, t *memoryTable, first, rows uint64, keys []K) {
	sequence := t.sequenceOf(first)
	before := sequence.generator.Bytes()
	unit.Generate(sequence.generator, keys)
	sequence.end += rows
	most := min(m.builder.memory*3/4, m.builder.memory-m.held.Load())
	if m.bytes.Add(sequence.generator.Bytes()-before) > most {
		m.short.Store(true)
	}
}

// sequenceOf returns the sequence that a block of rows continues. If there is none, sequenceOf begins one, or returns
// nil where there are too many.
func (t *memoryTable) sequenceOf(first uint64) *keySequence {
	for i := range t.sequences {
		if s := &t.sequences[i]; s.end == first {
			return s
		}
	}
	if t.inBuilder || len(t.sequences) == mostSequences {
		return nil
	}
	t.sequences = append(t.sequences, keySequence{first: first, end: first, generator: unit.NewGenerator(math.MaxInt64)})
	return &t.sequences[len(t.sequences)-1]
}

// moveToBuilder gives the keys of a table to the builder, as runs on disk. The table is locked. The builder folds
// positions by their minimum, so that a key's position may be any number that keeps the order: that of the sequence's
// first row, and the key's place in the sequence. It is not greater than where the key was seen first.
func (m *MemoryBuilder) moveToBuilder(index int) error {
	t, to := &m.tables[index], m.builder.tables[index]
	t.inBuilder = true
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, s := range t.sequences {
		keys := s.generator.Keys()
		m.bytes.Add(-s.generator.Bytes())
		s.generator = nil
		for begin := 0; begin < len(keys); begin += m.builder.mostOrdered() {
			part := keys[begin:min(len(keys), begin+m.builder.mostOrdered())]
			sorted := make([]occurrence.Entry, len(part))
			for i, key := range part {
				sorted[i] = occurrence.Entry{Key: key, Position: s.first<<occurrence.PlaceBits + uint64(begin+i), Count: 1}
			}
			occurrence.SortByKey(sorted)
			if err := to.runs.Write(sorted); err != nil {
				return err
			}
		}
		m.builder.noteRowsBefore(s.end)
	}
	t.sequences = nil
	return nil
}

// AddMiniBatch adds a mini-batch as Builder.AddMiniBatch does.
func (m *MemoryBuilder) AddMiniBatch(first uint64, mb *tensor.MiniBatch) error {
	return addMiniBatch(m.Add, len(m.builder.columns), first, mb)
}

// Keys returns how many keys all tables have so far, without those that wait for the end of the pass. It is exact as
// long as rows come in one sequence and keys fit into the builder's memory: a key counts once in each sequence, and see
// Builder.Keys.
func (m *MemoryBuilder) Keys() int64 {
	keys := m.builder.Keys()
	for i := range m.tables {
		t := &m.tables[i]
		t.mu.Lock()
		for _, s := range t.sequences {
			keys += int64(len(s.generator.Keys()))
		}
		t.mu.Unlock()
	}
	return keys
}

// Close removes the runs. The builder must not be used after it.
func (m *MemoryBuilder) Close() error { return m.builder.Close() }

// KeepIDs has the vocabulary keep the ids of all rows, so that an Applier takes them instead of keys. It comes before
// Vocabulary, and partitions are all those that had rows, in the order of the data set. The vocabulary keeps no ids if
// memory did not hold the keys until the end of the pass.
func (m *MemoryBuilder) KeepIDs(partitions []PartitionRows) { m.partitions = partitions }

// Vocabulary returns the vocabulary of all rows. The builder takes no ids after it.
func (m *MemoryBuilder) Vocabulary() (*Vocabulary, error) {
	inBuilder := false
	for i := range m.tables {
		t := &m.tables[i]
		if len(t.sequences) > 0 { // the keys that are held come behind keys that were not
			if err := m.releaseTable(i); err != nil {
				return nil, err
			}
		}
		inBuilder = inBuilder || t.inBuilder
	}
	if inBuilder {
		return m.finishThroughFile()
	}
	b := m.builder
	v := &Vocabulary{Rules: b.rules, Columns: slices.Clone(b.columns), Tables: make([][]int64, len(m.tables)),
		prepared: make([]preparedTable, len(m.tables))}
	sum := newDigestWriter(fileHeader(v.Rules, v.Columns))
	errs := make([]error, len(m.tables))
	made := make([]chan struct{}, len(m.tables)) // closed when a table is made
	next := make(chan int, len(m.tables))
	for i := range m.tables {
		made[i] = make(chan struct{})
		next <- i
	}
	close(next)
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(m.tables)) {
		group.Go(func() {
			var encoder unit.Encoder
			for i := range next {
				errs[i] = m.makeTable(v, i, &encoder)
				close(made[i])
			}
		})
	}
	for i := range made {
		<-made[i]
		sum.writeKeys(v.Tables[i])
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, keys := range v.Tables {
		sum.writeUint64(uint64(len(keys)))
	}
	sum.writeChecksum()
	v.Digest, v.kept = Digest(sum.sum.Sum(nil)), m.keptIDs()
	return v, nil
}

// keptIDs returns the ids of all rows if KeepIDs was called and every row has one.
func (m *MemoryBuilder) keptIDs() *keptIDs {
	if m.partitions == nil {
		return nil
	}
	columns := make([]heldColumn, len(m.tables))
	for i := range m.tables {
		if m.tables[i].cut {
			return nil
		}
		columns[i] = m.tables[i].held
	}
	return newKeptIDs(columns, m.partitions)
}

// makeTable makes one table of a vocabulary.
func (m *MemoryBuilder) makeTable(v *Vocabulary, index int, encoder *unit.Encoder) error {
	t := &m.tables[index]
	keys, table := t.mergeSequences(encoder)
	if most := m.builder.rules.mostKeys(); int64(len(keys)) > most {
		if m.builder.rules.MaxSize == 0 {
			return fmt.Errorf("table %d: %w", index, tooManyKeys(most))
		}
		keys, table, t.cut = keys[:most], nil, true
	}
	v.Tables[index], v.prepared[index] = keys, prepareTable(keys, table)
	return nil
}

// mergeSequences returns the keys of all sequences in the order of their rows, and their table if there is one.
func (t *memoryTable) mergeSequences(encoder *unit.Encoder) ([]int64, *unit.Table) {
	if len(t.sequences) == 0 {
		return t.held.encodeKeys(encoder), nil
	}
	slices.SortFunc(t.sequences, func(a, b keySequence) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	all := t.sequences[0].generator
	for _, s := range t.sequences[1:] {
		all.Append(s.generator)
	}
	t.sequences = nil
	return all.Keys(), all.Table()
}

// finishThroughFile returns the vocabulary of tables that the builder has. The others move there first.
func (m *MemoryBuilder) finishThroughFile() (_ *Vocabulary, err error) {
	for i := range m.tables {
		if err := m.releaseTable(i); err != nil {
			return nil, err
		}
		if !m.tables[i].inBuilder {
			if err := m.moveToBuilder(i); err != nil {
				return nil, err
			}
		}
	}
	folder, err := scratch.Make(m.builder.parent, "millrace-vocabulary-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	path := filepath.Join(folder.Path, "whole")
	if _, err := m.builder.Finish(path); err != nil {
		return nil, err
	}
	return Load(path)
}
