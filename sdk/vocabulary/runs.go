package vocabulary

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

// maxOpenRuns bounds the runs that are merged at once, each with a buffer of runBuffer bytes.
const (
	maxOpenRuns = 64
	runBuffer   = 128 << 10
)

// runs are sorted lists of entries on disk, and one in memory. Entries that compare as equal are folded into one.
type runs struct {
	folder  string
	compare func(a, b entry) int
	files   []runFile
	made    int // names given so far
}

// runFile is one sorted list on disk.
type runFile struct {
	path    string
	offset  int64 // offset is where its first entry lies in the file
	entries int64
	crc     uint32
	kept    bool // the file is another's, and stays when the run is merged
}

// writeRun writes sorted entries to disk.
func (r *runs) writeRun(sorted iter.Seq2[entry, error]) error {
	r.made++
	run := runFile{path: filepath.Join(r.folder, fmt.Sprintf("run-%d", r.made))}
	f, err := os.OpenFile(run.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, runBuffer)
	var b []byte
	for e, wrong := range sorted {
		if err = wrong; err != nil {
			break
		}
		b = e.appendEncoded(b[:0])
		run.crc = crc32c.Update(run.crc, b)
		run.entries++
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
	r.files = append(r.files, run)
	return nil
}

// mergedEntries returns the entries of all runs and of sorted, in order and folded. It ends after the first error.
func (r *runs) mergedEntries(sorted []entry) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		for len(r.files) > maxOpenRuns {
			if err := r.mergeOldest(); err != nil {
				yield(entry{}, err)
				return
			}
		}
		if len(r.files) == 0 { // entries in memory are of different keys
			for _, e := range sorted {
				if !yield(e, nil) {
					return
				}
			}
			return
		}
		r.mergeInto(r.files, sorted, yield)
	}
}

// mergeOldest makes one run of the oldest ones.
func (r *runs) mergeOldest() error {
	oldest := slices.Clone(r.files[:maxOpenRuns])
	r.files = slices.Delete(r.files, 0, maxOpenRuns)
	if err := r.writeRun(func(yield func(entry, error) bool) { r.mergeInto(oldest, nil, yield) }); err != nil {
		return err
	}
	for _, run := range oldest {
		if run.kept {
			continue
		}
		if err := os.Remove(run.path); err != nil {
			return err
		}
	}
	return nil
}

// mergeInto merges runs and entries in memory.
func (r *runs) mergeInto(files []runFile, sorted []entry, yield func(entry, error) bool) {
	sources := mergeHeap{compare: r.compare}
	defer func() {
		for _, s := range sources.list {
			_ = s.closeRun() // it was only read
		}
	}()
	for _, run := range files {
		s := &mergeSource{run: run}
		err := s.openRun()
		if err == nil {
			err = sources.enterSource(s)
		}
		if err != nil {
			yield(entry{}, errors.Join(err, s.closeRun()))
			return
		}
	}
	if err := sources.enterSource(&mergeSource{memory: sorted}); err != nil {
		yield(entry{}, err)
		return
	}
	heap.Init(&sources)
	var current entry
	have := false
	for len(sources.list) > 0 {
		s := sources.list[0]
		switch {
		case !have:
			current, have = s.head, true
		case r.compare(current, s.head) == 0:
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
			yield(entry{}, err)
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
	head   entry
	memory []entry // behind head

	run    runFile
	file   *os.File
	reader *bufio.Reader
	left   int64
	crc    uint32
}

func (s *mergeSource) openRun() (err error) {
	s.left = s.run.entries
	if s.file, err = os.Open(s.run.path); err != nil {
		return err
	}
	if _, err = s.file.Seek(s.run.offset, io.SeekStart); err != nil {
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
		if s.crc != s.run.crc {
			return false, fmt.Errorf("read %s: the run of keys changed on disk", s.run.path)
		}
		return false, nil
	}
	var b [entrySize]byte
	if _, err := io.ReadFull(s.reader, b[:]); err != nil {
		return false, fmt.Errorf("read a run of keys: %s: %w", s.run.path, err)
	}
	s.left--
	s.crc = crc32c.Update(s.crc, b[:])
	s.head = decodeEntry(b[:])
	return true, nil
}

// mergeHeap holds the sources by their heads.
type mergeHeap struct {
	list    []*mergeSource
	compare func(a, b entry) int
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
