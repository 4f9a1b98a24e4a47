package vocabulary

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	unit "github.com/millrace/millrace/fpga/unit/vocabulary"
	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/sdk/tensor"
)

// MemoryBuilder makes a vocabulary for this process, without files: what a run needs that builds a vocabulary and
// applies it at once. The vocabulary is the one that a [Builder] writes, and has the same digest. It has no sidecar, so
// that no later generation can extend it.
//
// Where the rules are the order of first appearance without a least count, a MemoryBuilder gives keys their ids as they
// come, with neither positions nor counts nor a sort. It goes on as a Builder does, with runs on disk, for other rules,
// where memory is short, and where rows come in more than mostSequences sequences.
//
// It is safe for concurrent use.
type MemoryBuilder struct {
	builder *Builder // of the tables that need positions or counts
	tables  []memoryTable
	bytes   atomic.Int64 // of the generators of all tables
	short   atomic.Bool  // memory is: every table moves to the builder
}

// memoryTable is one table of a MemoryBuilder.
type memoryTable struct {
	mu        sync.Mutex // guards what follows
	inBuilder bool
	sequences []keySequence // of rows that do not overlap
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
	m := &MemoryBuilder{builder: b, tables: make([]memoryTable, len(b.tables))}
	for i := range m.tables {
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
	sequence := t.sequenceOf(first)
	if !t.inBuilder && (sequence == nil || m.short.Load() || len(sequence.generator.Keys())+len(ids) > unit.MaxKeys) {
		if err := m.move(index); err != nil {
			return err
		}
	}
	if t.inBuilder {
		return m.builder.Add(column, first, ids, lengths)
	}
	before := sequence.generator.Bytes()
	unit.Generate(sequence.generator, ids)
	sequence.end += rows
	if m.bytes.Add(sequence.generator.Bytes()-before) > m.builder.memory*3/4 {
		m.short.Store(true)
	}
	return nil
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

// move gives the keys of a table to the builder, as runs on disk. The table is locked. The builder folds positions by
// their minimum, so that a key's position may be any number that keeps the order: that of the sequence's first row, and
// the key's place in the sequence. It is not greater than where the key was seen first.
func (m *MemoryBuilder) move(index int) error {
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
			sorted := make([]entry, len(part))
			for i, key := range part {
				sorted[i] = entry{key: key, position: s.first<<placeBits + uint64(begin+i), count: 1}
			}
			sortByKey(sorted)
			if err := m.builder.makeFolder(to); err != nil {
				return err
			}
			if err := to.runs.add(entriesOf(sorted)); err != nil {
				return err
			}
		}
		m.builder.sawRows(s.end)
	}
	t.sequences = nil
	return nil
}

// AddMiniBatch adds a mini-batch as Builder.AddMiniBatch does.
func (m *MemoryBuilder) AddMiniBatch(first uint64, mb *tensor.MiniBatch) error {
	return addMiniBatch(m.Add, len(m.builder.columns), first, mb)
}

// Keys returns how many keys all tables have so far. It is exact as long as rows come in one sequence and keys fit into
// the builder's memory: a key counts once in each sequence, and see Builder.Keys.
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

// Vocabulary returns the vocabulary of all rows. The builder takes no ids after it.
func (m *MemoryBuilder) Vocabulary() (*Vocabulary, error) {
	for i := range m.tables {
		if m.tables[i].inBuilder {
			return m.throughFile()
		}
	}
	b := m.builder
	v := &Vocabulary{Rules: b.rules, Columns: slices.Clone(b.columns)}
	most := b.rules.mostKeys()
	for i := range m.tables {
		keys, table := m.tables[i].merge()
		if int64(len(keys)) > most {
			if b.rules.MaxSize == 0 {
				return nil, fmt.Errorf("table %d: %w", i, tooManyKeys(most))
			}
			keys, table = keys[:most], nil
		}
		if table == nil {
			var err error
			if table, err = unit.NewTable(keys); err != nil {
				return nil, err
			}
		}
		v.Tables, v.prepared = append(v.Tables, keys), append(v.prepared, table)
	}
	v.Digest = digestOf(fileHeader(v.Rules, v.Columns), v.Tables)
	return v, nil
}

// merge returns the keys of all sequences in the order of their rows, and their table.
func (t *memoryTable) merge() ([]int64, *unit.Table) {
	if len(t.sequences) == 0 {
		return nil, nil
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

// throughFile returns the vocabulary of tables that the builder has. The others move there first.
func (m *MemoryBuilder) throughFile() (_ *Vocabulary, err error) {
	for i := range m.tables {
		if !m.tables[i].inBuilder {
			if err := m.move(i); err != nil {
				return nil, err
			}
		}
	}
	folder, err := os.MkdirTemp(m.builder.parent, "millrace-vocabulary-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "whole")
	if _, err := m.builder.Finish(path); err != nil {
		return nil, err
	}
	return Load(path)
}

// digestOf returns the digest of the file that has a header and tables.
func digestOf(header []byte, tables [][]int64) Digest {
	sum, crc := sha256.New(), uint32(0)
	add := func(b []byte) {
		crc = crc32c.Update(crc, b)
		_, _ = sum.Write(b) // it never fails
	}
	add(header)
	var sizes []byte
	buffer := make([]byte, 0, 32<<10)
	for _, keys := range tables {
		sizes = binary.LittleEndian.AppendUint64(sizes, uint64(len(keys)))
		for len(keys) > 0 {
			part := keys[:min(len(keys), cap(buffer)/8)]
			keys = keys[len(part):]
			buffer = buffer[:8*len(part)]
			for i, key := range part {
				binary.LittleEndian.PutUint64(buffer[8*i:], uint64(key))
			}
			add(buffer)
		}
	}
	add(sizes)
	_, _ = sum.Write(binary.LittleEndian.AppendUint32(nil, crc))
	return Digest(sum.Sum(nil))
}
