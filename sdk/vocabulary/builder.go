package vocabulary

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/internal/scratch"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/vocabulary/occurrence"
)

// DefaultMemory is the memory that a builder takes for keys if its options name none.
const DefaultMemory = 512 << 20

// BuilderOptions of a builder. The zero value works.
type BuilderOptions struct {
	// Folder is where runs are written; "" is the system's folder for temporary files. A builder makes a folder of its
	// own there when it first writes a run.
	Folder string
	// Partitions are those that the pass reads. The sidecar keeps their digests, so that none of them is counted again.
	Partitions []Counted
	// Memory bounds the bytes of keys in memory; 0 is DefaultMemory. Less than 1 MiB is taken as 1 MiB.
	Memory int64
	// Ready is called with what Finish has made before the vocabulary gets its name. If it fails, Finish fails and
	// nothing is replaced. nil: none.
	Ready func(*Built) error
}

// Counted is a partition whose rows a pass counts.
type Counted struct {
	Name   string
	Digest [32]byte // see dataset.Partition.Content
}

// Builder makes a vocabulary of the ids of a pass over a data set. It is safe for concurrent use.
type Builder struct {
	rules   Rules
	columns []Column
	tables  []*builderTable
	base    *generation // what an earlier generation left; nil: this is the first
	counted [][32]byte  // digests of the partitions of this pass

	ready  func(*Built) error // or nil
	parent string             // folder in which the builder makes its own
	memory int64
	hashed atomic.Int64  // keys in the hash tables of all tables
	dense  atomic.Int64  // bytes of the arrays of all tables
	rows   atomic.Uint64 // most rows seen

	mu     sync.Mutex // guards folder
	folder *scratch.Folder
}

// builderTable is one table in the making.
type builderTable struct {
	mu   sync.Mutex            // guards what follows
	seen *occurrence.Table     // seen has what came since the last run
	runs occurrence.SortedRuns // runs are sorted by key
	// elementBits is how many low bits of a position hold its place; the column is above them.
	elementBits int
}

// NewBuilder begins a vocabulary. The columns' tables follow from the rules: Column.Table is not used.
func NewBuilder(columns []Column, rules Rules, o BuilderOptions) (*Builder, error) {
	b := &Builder{rules: rules.Normalize(), parent: o.Folder, ready: o.Ready}
	for _, p := range o.Partitions {
		b.counted = append(b.counted, p.Digest)
	}
	for i, c := range columns {
		if c.Table = i; rules.Joint {
			c.Table = 0
		}
		b.columns = append(b.columns, c)
	}
	if _, err := checkedHeader(b.rules, b.columns); err != nil {
		return nil, err
	}
	memory := o.Memory
	if memory == 0 {
		memory = DefaultMemory
	}
	b.memory = max(memory, 1<<20)
	tables := countTables(b.columns)
	for range tables {
		table := &builderTable{elementBits: occurrence.PlaceBits, runs: b.noRuns(),
			seen: occurrence.NewTable(b.memory * 5 / 8 / int64(tables))}
		if rules.Joint {
			table.elementBits -= bits.Len(uint(len(columns) - 1))
		}
		b.tables = append(b.tables, table)
	}
	return b, nil
}

// mostHashed returns how many keys the hash tables hold before one of them is written to disk. Hash tables take half of
// the memory less what arrays take, and at least an eighth: arrays take up to five eighths, and a quarter is left for
// the sorting of a table. A key takes up to four slots when its hash table has just grown, and six while it grows.
func (b *Builder) mostHashed() int64 {
	return max(b.memory/2-b.dense.Load(), b.memory/8) / (6 * occurrence.EntrySize)
}

// mostOrdered returns how many entries are held in memory while they are brought in the order of ids.
func (b *Builder) mostOrdered() int {
	return int(min(b.memory/(12*occurrence.EntrySize), math.MaxInt32))
}

// RangeError says that a value has no position: its row lies too far behind the data set's first, or its list is too
// long.
type RangeError struct {
	Column string
	Row    uint64
	Length int64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("vocabulary: column %q: row %d has %d ids: more rows or longer lists than a vocabulary is made of",
		e.Column, e.Row, e.Length)
}

// Add folds the ids of consecutive rows of one column in. first is the first row's number in the data set, from 0.
// lengths are how many ids each row has; nil: one each. Rows may come in any order, and each once.
func (b *Builder) Add(column int, first uint64, ids []int64, lengths []int32) error {
	rows, err := b.checkRows(column, first, ids, lengths)
	if err != nil {
		return err
	}
	t := b.tables[b.columns[column].Table]
	first += b.rowsBefore()
	t.mu.Lock()
	defer t.mu.Unlock()
	place := uint64(0)
	if b.rules.Joint {
		place = uint64(column) << t.elementBits
	}
	hashed, dense := t.seen.Hashed(), t.seen.ArrayBytes()
	if lengths == nil {
		t.seen.AddColumn(ids, first<<occurrence.PlaceBits|place)
	} else {
		t.addLists(first, place, ids, lengths)
	}
	b.noteRowsBefore(first + rows)
	// The table that grows writes its keys to disk when all tables together hold too many, unless it is a small one.
	b.dense.Add(t.seen.ArrayBytes() - dense)
	if most := b.mostHashed(); b.hashed.Add(int64(t.seen.Hashed()-hashed)) > most &&
		int64(t.seen.Hashed()) >= most/int64(len(b.tables)) {
		return b.spillTable(t)
	}
	return nil
}

// checkRows checks the rows of a call of Add, and returns how many they are.
func (b *Builder) checkRows(column int, first uint64, ids []int64, lengths []int32) (rows uint64, err error) {
	if column < 0 || column >= len(b.columns) {
		return 0, fmt.Errorf("vocabulary: column %d of %d", column, len(b.columns))
	}
	c := &b.columns[column]
	rows = uint64(len(ids))
	if lengths != nil {
		rows = uint64(len(lengths))
	}
	first += b.rowsBefore()
	if first > MaxRows-rows || first+rows > MaxRows {
		return 0, &RangeError{Column: c.Name, Row: first, Length: int64(rows)}
	}
	if lengths == nil {
		return rows, nil
	}
	longest, left := int64(1)<<b.tables[c.Table].elementBits, int64(len(ids))
	for i, n := range lengths {
		if n < 0 || int64(n) > left {
			return 0, fmt.Errorf("vocabulary: column %q: a row of %d ids, and %d are left", c.Name, n, left)
		}
		if int64(n) > longest {
			return 0, &RangeError{Column: c.Name, Row: first + uint64(i), Length: int64(n)}
		}
		left -= int64(n)
	}
	if left > 0 {
		return 0, fmt.Errorf("vocabulary: column %q: %d ids of no row", c.Name, left)
	}
	return rows, nil
}

// noteRowsBefore notes that rows before end were added.
func (b *Builder) noteRowsBefore(end uint64) {
	for {
		now := b.rows.Load()
		if end <= now || b.rows.CompareAndSwap(now, end) {
			return
		}
	}
}

// addLists folds rows in that were checked.
func (t *builderTable) addLists(first, place uint64, ids []int64, lengths []int32) {
	for i, n := range lengths {
		t.seen.AddList(ids[:n], (first+uint64(i))<<occurrence.PlaceBits|place)
		ids = ids[n:]
	}
}

// spillTable writes the keys of a table's hash table to disk. The table is locked.
func (b *Builder) spillTable(t *builderTable) error {
	sorted := t.seen.TakeHashed()
	b.hashed.Add(-int64(len(sorted)))
	return t.runs.Write(sorted)
}

// takeAll takes all entries of a table from memory, sorted by key. The table is locked.
func (b *Builder) takeAll(t *builderTable) []occurrence.Entry {
	b.hashed.Add(-int64(t.seen.Hashed()))
	b.dense.Add(-t.seen.ArrayBytes())
	return t.seen.TakeAll()
}

// noRuns returns runs without any. The first one gets a folder in that of the builder.
func (b *Builder) noRuns() occurrence.SortedRuns {
	return occurrence.SortedRuns{MakeFolder: b.makeFolder}
}

// makeFolder makes a folder for runs.
func (b *Builder) makeFolder() (_ string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.folder == nil {
		if b.folder, err = scratch.Make(b.parent, "millrace-vocabulary-"); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(b.folder.Path, "runs-*")
}

// Keys returns how many keys all tables have so far. It is exact as long as they fit into the builder's memory. A key
// that was written to disk and is seen again counts once more until the files are merged.
func (b *Builder) Keys() (keys int64) {
	for _, t := range b.tables {
		t.mu.Lock()
		keys += int64(t.seen.Keys()) + t.runs.Entries()
		t.mu.Unlock()
	}
	return keys
}

// Close removes the runs. The builder must not be used after it.
func (b *Builder) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.folder == nil {
		return nil
	}
	folder := b.folder
	b.folder = nil
	return folder.Close()
}

// Built is what a builder made.
type Built struct {
	Digest Digest
	Bytes  int64
	Tables []BuiltTable
}

// BuiltTable is one table that a builder made.
type BuiltTable struct {
	Keys     int64 // Keys counts the keys that have ids
	Seen     int64 // different keys
	Appended int64 // keys that the generation before had no ids for
}

// Finish writes the vocabulary and its sidecar to path and path + CountsSuffix. A vocabulary that is there is replaced.
// Until the vocabulary has its name, the sidecar has another one, which OpenCounts knows: whenever the process ends,
// the vocabulary at path has its own sidecar. The builder takes no ids after Finish.
func (b *Builder) Finish(path string) (*Built, error) {
	header, err := checkedHeader(b.rules, b.columns)
	if err != nil {
		return nil, err
	}
	w, err := createFile(path)
	if err != nil {
		return nil, err
	}
	w.sum = sha256.New()
	counts, err := newCountsWriter(path+nextCountsSuffix, len(b.tables), max(b.rows.Load(), b.rowsBefore()))
	if err != nil {
		return nil, errors.Join(err, w.abandonFile())
	}
	w.writeBytes(header)
	built := &Built{Bytes: int64(len(header)) + 4}
	for i := range b.tables {
		made, err := b.finishTable(i, w, counts)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("table %d: %w", i, err), w.abandonFile(), counts.file.abandonFile())
		}
		built.Bytes += 8 * (made.Keys + 1)
		built.Tables = append(built.Tables, made)
	}
	for _, made := range built.Tables {
		w.writeUint64(uint64(made.Keys))
	}
	// The sidecar names the vocabulary, whose digest is known only now.
	if built.Digest, err = w.sealFile(); err != nil {
		return nil, errors.Join(err, counts.file.abandonFile())
	}
	if b.ready != nil {
		err = b.ready(built)
	}
	if err = errors.Join(err, CompleteCounts(path)); err != nil {
		return nil, errors.Join(err, removeFile(w.file.Name()), counts.file.abandonFile())
	}
	counted := b.counted
	if b.base != nil {
		counted = slices.Concat(b.base.counts.Counted, counted)
	}
	if err := counts.commitSidecar(built.Digest, counted); err != nil {
		return nil, errors.Join(err, removeFile(w.file.Name()))
	}
	if err := w.renameToFinal(); err != nil {
		return nil, err // the sidecar stays: the vocabulary may have its name
	}
	return built, wholefile.Rename(path+nextCountsSuffix, path+CountsSuffix)
}

// rowsBefore returns the rows of earlier generations.
func (b *Builder) rowsBefore() uint64 {
	if b.base == nil {
		return 0
	}
	return b.base.rows
}

// finishTable merges the runs of a table, and writes its keys and counts.
func (b *Builder) finishTable(index int, w *fileWriter, counts *countsWriter) (made BuiltTable, err error) {
	t := b.tables[index]
	t.mu.Lock()
	defer t.mu.Unlock()
	sorted := b.takeAll(t)
	if b.base == nil && t.runs.Entries() == 0 && len(sorted) <= b.mostOrdered() {
		return b.finishInMemory(sorted, w, counts)
	}
	var had *oldKeys
	if b.base != nil {
		had = newOldKeys(b.base.vocabulary.Tables[index])
		t.runs.Add(b.base.counts.tables[index])
		w.writeKeys(b.base.vocabulary.Tables[index])
		made.Keys = int64(len(b.base.vocabulary.Tables[index]))
	}
	kept := &orderedKeys{runs: b.noRuns(), order: b.rules.Order, most: b.mostOrdered()}
	kept.runs.Compare = b.rules.Order.compareEntries()
	counts.beginTable()
	for e, err := range t.runs.Merged(sorted) {
		if err != nil {
			return made, err
		}
		made.Seen++
		counts.appendEntry(e)
		if had.includesNext(e.Key) || e.Count < b.rules.MinCount {
			continue
		}
		if err := kept.addEntry(e); err != nil {
			return made, err
		}
	}
	if err := had.checkAllAsked(); err != nil {
		return made, err
	}
	most := b.rules.mostKeys()
	for e, err := range kept.allInOrder() {
		if err != nil {
			return made, err
		}
		if made.Keys >= most {
			if b.rules.MaxSize == 0 {
				return made, tooManyKeys(most)
			}
			break
		}
		w.writeUint64(uint64(e.Key))
		made.Keys++
		made.Appended++
	}
	return made, w.err
}

func tooManyKeys(most int64) error {
	return fmt.Errorf("vocabulary: more than %d keys: give min_count or max_size", most)
}

// finishInMemory writes the keys and counts of a table, whose entries are sorted by key and are all in memory. It
// brings them in the order of ids where they are.
func (b *Builder) finishInMemory(
	sorted []occurrence.Entry, w *fileWriter, counts *countsWriter,
) (made BuiltTable, err error) {
	made.Seen = int64(len(sorted))
	counts.beginTable()
	for _, e := range sorted {
		counts.appendEntry(e)
	}
	if b.rules.MinCount > 1 {
		sorted = slices.DeleteFunc(sorted, func(e occurrence.Entry) bool { return e.Count < b.rules.MinCount })
	}
	b.rules.Order.sortEntries(sorted)
	// A list in memory is shorter than the most keys that a table without a largest size may have.
	sorted = sorted[:min(int64(len(sorted)), b.rules.mostKeys())]
	for i := range sorted {
		w.writeUint64(uint64(sorted[i].Key))
	}
	made.Keys = int64(len(sorted))
	made.Appended = made.Keys
	return made, w.err
}

// orderedKeys sorts the entries that get ids, on disk where memory is short.
type orderedKeys struct {
	runs   occurrence.SortedRuns
	order  Order
	memory []occurrence.Entry
	most   int // entries in memory
}

func (k *orderedKeys) addEntry(e occurrence.Entry) error {
	k.memory = append(k.memory, e)
	if len(k.memory) < k.most {
		return nil
	}
	k.order.sortEntries(k.memory)
	err := k.runs.Write(k.memory)
	k.memory = k.memory[:0]
	return err
}

// allInOrder returns all entries in order.
func (k *orderedKeys) allInOrder() iter.Seq2[occurrence.Entry, error] {
	k.order.sortEntries(k.memory)
	return k.runs.Merged(k.memory)
}
