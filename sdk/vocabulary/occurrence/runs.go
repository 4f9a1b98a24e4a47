package occurrence

import (
	"bufio"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/internal/crc32c"
)

// MaxOpenRuns is how many runs are merged at once, each with a buffer of runBuffer bytes.
const (
	MaxOpenRuns = 64
	runBuffer   = 128 << 10
)

// SortedRuns are sorted lists of entries on disk, and one in memory. Entries that compare as equal are folded into one.
type SortedRuns struct {
	// Compare is the order of the entries; nil: by their keys.
	Compare func(a, b Entry) int
	// MakeFolder makes the folder of the runs. It is called before the first run is written.
	MakeFolder func() (string, error)

	folder string
	runs   []ownedRun
	made   int // names given so far
}

// SortedRun is one sorted list on disk.
type SortedRun struct {
	Path    string
	Offset  int64 // Offset is where its first entry lies in the file
	Entries int64
	CRC     uint32 // CRC is the CRC32C of its entries
}

// ownedRun is a run, and whether its file goes with it.
type ownedRun struct {
	SortedRun
	kept bool // the file is another's, and stays when the run is merged
}

// AppendEntry appends the bytes of the run's next entry to b. It counts and sums the entry.
func (r *SortedRun) AppendEntry(b []byte, e Entry) []byte {
	begin := len(b)
	b = e.AppendEncoded(b)
	r.CRC = crc32c.Update(r.CRC, b[begin:])
	r.Entries++
	return b
}

// Add adds a run in a file that stays when the run is merged.
func (r *SortedRuns) Add(run SortedRun) { r.runs = append(r.runs, ownedRun{run, true}) }

// Entries returns how many entries all runs have on disk.
func (r *SortedRuns) Entries() (n int64) {
	for i := range r.runs {
		n += r.runs[i].Entries
	}
	return n
}

// Write writes sorted entries to disk.
func (r *SortedRuns) Write(sorted []Entry) error { return r.writeRun(sequenceOf(sorted)) }

// sequenceOf returns entries in memory as a sequence.
func sequenceOf(list []Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// writeRun writes sorted entries to disk.
func (r *SortedRuns) writeRun(sorted iter.Seq2[Entry, error]) (err error) {
	if r.folder == "" {
		if r.folder, err = r.MakeFolder(); err != nil {
			return err
		}
	}
	r.made++
	run := SortedRun{Path: filepath.Join(r.folder, fmt.Sprintf("run-%d", r.made))}
	f, err := os.OpenFile(run.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, runBuffer)
	var b []byte
	for e, wrong := range sorted {
		if err = wrong; err != nil {
			break
		}
		b = run.AppendEntry(b[:0], e)
		if _, err = w.Write(b); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write a run of keys: %w", err)
	}
	r.runs = append(r.runs, ownedRun{run, false})
	return nil
}

// Merged returns the entries of all runs and of sorted, whose keys differ, in order and folded. It ends after the first
// error.
func (r *SortedRuns) Merged(sorted []Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for len(r.runs) > MaxOpenRuns {
			if err := r.mergeOldest(); err != nil {
				yield(Entry{}, err)
				return
			}
		}
		if len(r.runs) == 0 {
			sequenceOf(sorted)(yield)
			return
		}
		r.mergeInto(r.runs, sorted, yield)
	}
}

// mergeOldest makes one run of the oldest ones.
func (r *SortedRuns) mergeOldest() error {
	oldest := slices.Clone(r.runs[:MaxOpenRuns])
	r.runs = slices.Delete(r.runs, 0, MaxOpenRuns)
	if err := r.writeRun(func(yield func(Entry, error) bool) { r.mergeInto(oldest, nil, yield) }); err != nil {
		return err
	}
	for _, run := range oldest {
		if run.kept {
			continue
		}
		if err := os.Remove(run.Path); err != nil {
			return err
		}
	}
	return nil
}

// mergeInto merges runs and entries in memory.
func (r *SortedRuns) mergeInto(files []ownedRun, sorted []Entry, yield func(Entry, error) bool) {
	sources := mergeHeap{compare: r.Compare}
	if r.Compare == nil {
		sources.compare = compareByKey
	}
	defer func() {
		for _, s := range sources.list {
			_ = s.closeRun() // it was only read
		}
	}()
	for _, run := range files {
		s := &mergeSource{run: run.SortedRun}
		err := s.openRun()
		if err == nil {
			err = sources.enterSource(s)
		}
		if err != nil {
			yield(Entry{}, errors.Join(err, s.closeRun()))
			return
		}
	}
	if err := sources.enterSource(&mergeSource{memory: sorted}); err != nil {
		yield(Entry{}, err)
		return
	}
	heap.Init(&sources)
	var current Entry
	have := false
	for len(sources.list) > 0 {
		s := sources.list[0]
		switch {
		case !have:
			current, have = s.head, true
		case sources.compare(current, s.head) == 0:
			current.foldEntry(s.head)
		default:
			if !yield(current, nil) {
				return
			}
			current = s.head
		}
		more, err := s.advance()
		switch {
		case err != nil:
			yield(Entry{}, err)
			return
		case more:
			heap.Fix(&sources, 0)
		default:
			heap.Pop(&sources)
			_ = s.closeRun() // it was only read
		}
	}
	if have {
		yield(current, nil)
	}
}

// mergeSource is one of the lists that are merged: a run on disk, or entries in memory.
type mergeSource struct {
	head   Entry
	memory []Entry // behind head

	run    SortedRun
	file   *os.File
	reader *bufio.Reader
	left   int64
	crc    uint32
}

func (s *mergeSource) openRun() (err error) {
	s.left = s.run.Entries
	if s.file, err = os.Open(s.run.Path); err != nil {
		return err
	}
	if _, err = s.file.Seek(s.run.Offset, io.SeekStart); err != nil {
		return err
	}
	s.reader = bufio.NewReaderSize(s.file, runBuffer)
	return nil
}

func (s *mergeSource) closeRun() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}

// advance takes the next entry as the head. It reports whether there was one.
func (s *mergeSource) advance() (bool, error) {
	if s.reader == nil {
		if len(s.memory) == 0 {
			return false, nil
		}
		s.head, s.memory = s.memory[0], s.memory[1:]
		return true, nil
	}
	if s.left == 0 {
		if s.crc != s.run.CRC {
			return false, fmt.Errorf("read %s: the run of keys changed on disk", s.run.Path)
		}
		return false, nil
	}
	var b [EntrySize]byte
	if _, err := io.ReadFull(s.reader, b[:]); err != nil {
		return false, fmt.Errorf("read a run of keys: %s: %w", s.run.Path, err)
	}
	s.left--
	s.crc = crc32c.Update(s.crc, b[:])
	s.head = DecodeEntry(b[:])
	return true, nil
}

// mergeHeap holds the sources by their heads.
type mergeHeap struct {
	list    []*mergeSource
	compare func(a, b Entry) int
}

// enterSource adds a source that has an entry. The caller then makes a heap of the list.
func (h *mergeHeap) enterSource(s *mergeSource) error {
	more, err := s.advance()
	if err != nil {
		return err
	}
	if !more {
		return s.closeRun()
	}
	h.list = append(h.list, s)
	return nil
}

// Len implements heap.Interface.
func (h *mergeHeap) Len() int { return len(h.list) }

// Less implements heap.Interface.
func (h *mergeHeap) Less(i, j int) bool { return h.compare(h.list[i].head, h.list[j].head) < 0 }

// Swap implements heap.Interface.
func (h *mergeHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }

// Push implements heap.Interface.
func (h *mergeHeap) Push(x any) { h.list = append(h.list, x.(*mergeSource)) }

// Pop implements heap.Interface.
func (h *mergeHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
