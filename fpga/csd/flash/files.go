package flash

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace/millrace/internal/openfiles"
)

// Extent is where a file lies on a drive: bytes [Offset, Offset+Size) of namespace 1.
type Extent struct {
	Path   string
	Offset int64
	Size   int64
}

// joinedFiles is a read-only flash that is some files, one behind the other, each from a block boundary on. Nothing is
// copied; bytes between a file's end and the next block read as zeros.
type joinedFiles struct {
	files   []*openfiles.File
	lent    lentFiles
	extents []Extent
	size    int64
}

// Files opens a read-only flash that is the given files, whose descriptors the pool keeps; nil is a pool of the flash's
// own. It is as large as they are when opened; a file that changes later fails the reads of what is gone, and all its
// reads once the pool has opened it again.
func Files(paths []string, lba int, pool *openfiles.Pool) (Flash, []Extent, error) {
	if err := CheckGeometry(int64(lba), lba); err != nil {
		return nil, nil, err
	}
	if pool == nil {
		pool = openfiles.New(0)
	}
	ff := &joinedFiles{}
	ff.lent.most = min(pool.Budget()/2, maxLentFiles)
	for _, p := range paths {
		if err := ff.addFile(pool, p, int64(lba)); err != nil {
			return nil, nil, errors.Join(err, ff.Close())
		}
	}
	if ff.size == 0 {
		// A namespace has at least one block.
		ff.size = int64(lba)
	}
	return ff, slices.Clone(ff.extents), nil
}

func (ff *joinedFiles) addFile(pool *openfiles.Pool, path string, lba int64) error {
	f, err := pool.Open(path)
	if err != nil {
		return fmt.Errorf("flash of files: %w", err)
	}
	ff.files = append(ff.files, f)
	size := f.State().Size
	ff.extents = append(ff.extents, Extent{Path: path, Offset: ff.size, Size: size})
	ff.size += (size + lba - 1) / lba * lba
	return nil
}

func (ff *joinedFiles) Size() int64    { return ff.size }
func (ff *joinedFiles) ReadOnly() bool { return true }
func (ff *joinedFiles) Sync() error    { return nil }

func (ff *joinedFiles) ReadAt(p []byte, off int64) (int, error) {
	if err := checkWithinFlash(ff, off, int64(len(p))); err != nil {
		return 0, err
	}
	for done := 0; done < len(p); {
		at := off + int64(done)
		i := ff.indexOfFileAt(at)
		rest := p[done:]
		if next := i + 1; next < len(ff.extents) {
			rest = rest[:min(int64(len(rest)), ff.extents[next].Offset-at)]
		}
		var n int
		if i >= 0 {
			e := ff.extents[i]
			n = int(max(0, min(int64(len(rest)), e.Offset+e.Size-at)))
			if _, err := ff.files[i].ReadAt(rest[:n], at-e.Offset); n > 0 && err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return done, fmt.Errorf("flash of files: %s changed or cannot be read: %w", e.Path, err)
			}
		}
		clear(rest[n:])
		done += len(rest)
	}
	return len(p), nil
}

// indexOfFileAt returns the index of the last file that begins at or before a byte of the flash, -1 if there is none.
func (ff *joinedFiles) indexOfFileAt(at int64) int {
	i, found := slices.BinarySearchFunc(ff.extents, at, func(e Extent, at int64) int {
		switch {
		case e.Offset < at:
			return -1
		case e.Offset > at:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	// Empty files share an offset with a file that has bytes, which is the last of them.
	for i+1 < len(ff.extents) && ff.extents[i+1].Offset <= at {
		i++
	}
	return i
}

// termBits is the number of bits of a term that count the leases. The others are the file's number.
const termBits = 40

// Lend implements controller.LendingFlash. Bytes of two files, and zeros behind a file, are not lent.
func (ff *joinedFiles) Lend(off, n int64) (b []byte, term uint64, ok bool) {
	i := ff.indexOfFileAt(off)
	if i < 0 || off+n > ff.extents[i].Offset+ff.extents[i].Size {
		return nil, 0, false
	}
	l := ff.lent.acquireLent(i, ff.files[i])
	if l == nil {
		return nil, 0, false
	}
	defer ff.lent.releaseLent(l)
	b, term, ok = l.lend(off-ff.extents[i].Offset, n)
	return b, uint64(i)<<termBits | term, ok
}

// Lasts implements controller.LendingFlash.
func (ff *joinedFiles) Lasts(term uint64) bool {
	l := ff.lent.findLent(int(term >> termBits))
	return l != nil && l.lasts(term&(1<<termBits-1))
}

// OnRecall implements controller.LendingFlash.
func (ff *joinedFiles) OnRecall(recall func()) { ff.lent.recall = recall }

func (ff *joinedFiles) WriteAt([]byte, int64) (int, error) { return 0, ErrReadOnly }
func (ff *joinedFiles) Discard(int64, int64) error         { return ErrReadOnly }

func (ff *joinedFiles) Close() error {
	errs := []error{ff.lent.close()}
	for _, f := range ff.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
