package flash

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/internal/openfiles"
)

// maxLentFiles is how many files are lent at a time at most. Each keeps a descriptor, a mapping (Linux allows a process
// 65,530) and a goroutine.
const maxLentFiles = 1024

// lentFiles lends the bytes of many files, of which some are lent at a time. When there are as many as may be, it takes
// the half that was used longest ago back, in one recall; until that is done nothing is lent, and blocks are copied.
type lentFiles struct {
	most   int
	recall func()
	terms  atomic.Uint64

	mu       sync.Mutex // guards what follows; never held while recall is called, or a file is opened
	byFile   map[int]*lentOne
	refusing map[uint64]bool // devices whose file systems grant no lease
	uses     uint64
	retiring bool // files are being taken back, or the flash is closed
	done     sync.WaitGroup
}

// lentOne is a file that is lent. lentFiles.mu guards users and lastUse.
type lentOne struct {
	*lentFile
	file    *openfiles.File
	users   int
	lastUse uint64
}

// findLent returns a file that is lent, by its number, or nil.
func (s *lentFiles) findLent(i int) *lentOne {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byFile[i]
}

// acquireLent returns a file to lend bytes of, or nil if none of its bytes are lent now. The caller calls release.
func (s *lentFiles) acquireLent(i int, f *openfiles.File) *lentOne {
	s.mu.Lock()
	l := s.byFile[i]
	switch {
	case s.retiring, s.refusing[f.State().Device]:
		l = nil
	case l != nil:
		s.useLocked(l)
	case len(s.byFile) >= s.most:
		s.retireLocked()
	default:
		s.mu.Unlock()
		return s.lendFile(i, f)
	}
	s.mu.Unlock()
	return l
}

// lendFile makes a file one that is lent.
func (s *lentFiles) lendFile(i int, f *openfiles.File) *lentOne {
	file, err := f.Acquire()
	if err != nil {
		return nil // the read that follows says why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byFile[i]; l != nil || s.retiring || len(s.byFile) >= s.most { // others were faster
		f.Release()
		return nil
	}
	l := &lentOne{lentFile: newLentFile(file, false, &s.terms), file: f}
	if s.byFile == nil {
		s.byFile, s.refusing = map[int]*lentOne{}, map[uint64]bool{}
	}
	if l.lentFile == nil {
		s.refusing[f.State().Device] = true
		f.Release()
		return nil
	}
	l.recall = s.recall
	s.byFile[i] = l
	s.useLocked(l)
	return l
}

func (s *lentFiles) useLocked(l *lentOne) {
	s.uses++
	l.users, l.lastUse = l.users+1, s.uses
}

func (s *lentFiles) releaseLent(l *lentOne) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
}

// retireLocked begins to take half of the files back: in a goroutine, because the recall waits for executions, and its
// caller may be needed for them to end.
func (s *lentFiles) retireLocked() {
	var oldest []int
	for i, l := range s.byFile {
		if l.users == 0 {
			oldest = append(oldest, i)
		}
	}
	slices.SortFunc(oldest, func(a, b int) int { return cmp.Compare(s.byFile[a].lastUse, s.byFile[b].lastUse) })
	oldest = oldest[:min(len(oldest), (s.most+1)/2)]
	if len(oldest) == 0 {
		return
	}
	files := make([]*lentOne, len(oldest))
	for k, i := range oldest {
		files[k] = s.byFile[i]
		delete(s.byFile, i) // its term has ended
	}
	s.retiring = true
	s.done.Go(func() {
		s.recall()
		for _, l := range files {
			_ = l.giveFileBack() // a mapping that stays is as good as one that is gone
		}
		s.mu.Lock()
		s.retiring = false
		s.mu.Unlock()
	})
}

// giveFileBack gives back a file whose lent bytes nobody reads any more.
func (l *lentOne) giveFileBack() error {
	defer l.file.Release()
	return l.lentFile.close()
}

// close takes all files back. Nobody reads lent bytes any more.
func (s *lentFiles) close() error {
	s.done.Wait()
	s.mu.Lock()
	files := s.byFile
	s.byFile, s.retiring = nil, true
	s.mu.Unlock()
	var errs []error
	for _, l := range files {
		errs = append(errs, l.giveFileBack())
	}
	return errors.Join(errs...)
}
