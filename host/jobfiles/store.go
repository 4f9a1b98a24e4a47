package jobfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// Errors of a Store and a Cache, for errors.Is.
var (
	ErrRoom     = errors.New("no room for a file")
	ErrMissing  = errors.New("the file is nowhere to be had")
	ErrFetching = errors.New("the file is being fetched")
	ErrDigest   = errors.New("bytes are not those of the file's digest")
	ErrRequest  = errors.New("request for a file")
)

// Bounds.
const (
	// MaxPiece bounds the bytes of one piece of a file.
	MaxPiece = 512 << 10
	// MaxBytes bounds the bytes of a vocabulary and of a selection. Modules have the bound of package format.
	MaxBytes = 1 << 40
	// leastBytes is below the length of every vocabulary and of every selection.
	leastBytes = 72
	// leastModule is the length of a module's magic number and version.
	leastModule = 8
	// maxUploads bounds the files that are being put at once.
	maxUploads = 256
	// partialLife is how long a file that is being put is kept after its last piece.
	partialLife = 10 * time.Minute
	// partialSuffix ends the names of files that are not whole.
	partialSuffix = ".partial"
)

// Kind is what a file holds.
type Kind uint8

// The kinds of files.
const (
	Vocabulary Kind = iota
	Selection       // the rows that pass a job's filter (sdk/selection)
	Module          // a WebAssembly module with operators of one's own (fpga/unit/wasm)
)

// String returns the kind's name in messages.
func (k Kind) String() string { return [...]string{"vocabulary", "selection", "module"}[k] }

// File names a file.
type File struct {
	Digest vocabulary.Digest
	Bytes  int64
	Kind   Kind
}

// check returns an error if no file has the size.
func (f File) check() error {
	least, most := int64(leastBytes), int64(MaxBytes)
	if f.Kind == Module {
		least, most = leastModule, format.MaxModule
	}
	if f.Bytes < least || f.Bytes > most {
		return fmt.Errorf("%w: %v %v of %d bytes: want %d to %d", ErrRequest, f.Kind, f.Digest, f.Bytes, least, most)
	}
	return nil
}

// Options configure a Store.
type Options struct {
	Folder string // made if it is not there
	Most   int64  // bytes of all files together
	// Grace is how long a file that nothing holds is kept although another file needs its room.
	Grace time.Duration
	// Unused is how long a file that nothing holds is kept at all.
	Unused time.Duration
	// OwnerMost bounds the bytes of one owner's files, OwnerFiles their number; 0 means no bound. An owner's files are
	// those that its jobs name, whoever put them, and those that it has put and nobody uses.
	OwnerMost  int64
	OwnerFiles int
	// Owners returns the owners of the jobs that name each file; nil: no jobs are known. The jobs of the owner "" do not
	// count.
	Owners func() map[vocabulary.Digest][]string
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: silent
}

// Store is a folder of files, bounded in bytes.
type Store struct {
	o Options

	mu      sync.Mutex // guards the fields below, and is not held while bytes are read or written
	files   map[vocabulary.Digest]*stored
	uploads map[uploadKey]*upload
	made    int // partial files named so far
}

// stored is a whole file.
type stored struct {
	bytes int64
	owner string // owner began the upload; "" if that is not known.
	used  time.Time
	held  int
}

// Open opens a folder. It removes files that are not whole. It reads no file: bytes are checked when they are used.
func Open(o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of vocabularies: %w", err)
	}
	entries, err := os.ReadDir(o.Folder)
	if err != nil {
		return nil, fmt.Errorf("folder of vocabularies: %w", err)
	}
	s := &Store{o: o, files: map[vocabulary.Digest]*stored{}, uploads: map[uploadKey]*upload{}}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), partialSuffix) {
			if err := os.Remove(filepath.Join(o.Folder, e.Name())); err != nil {
				return nil, fmt.Errorf("folder of vocabularies: %w", err)
			}
			continue
		}
		digest, ok := parseDigest(e.Name())
		info, err := e.Info()
		if err != nil || !ok || !info.Mode().IsRegular() {
			continue // it is not the store's
		}
		s.files[digest] = &stored{bytes: info.Size(), used: o.Now()}
	}
	return s, nil
}

// parseDigest reads a file's name.
func parseDigest(name string) (d vocabulary.Digest, ok bool) {
	b, err := hex.DecodeString(name)
	if err != nil || len(b) != len(d) || name != hex.EncodeToString(b) {
		return d, false
	}
	return vocabulary.Digest(b), true
}

// path returns the path of a whole file.
func (s *Store) path(digest vocabulary.Digest) string {
	return filepath.Join(s.o.Folder, digest.String())
}

// Size returns the bytes of a whole file. It reports false if the store does not have it.
func (s *Store) Size(digest vocabulary.Digest) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[digest]
	if !ok {
		return 0, false
	}
	f.used = s.o.Now()
	return f.bytes, true
}

// Files returns the whole files, sorted by their digests.
func (s *Store) Files() []File {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]File, 0, len(s.files))
	for digest, f := range s.files {
		list = append(list, File{Digest: digest, Bytes: f.bytes})
	}
	slices.SortFunc(list, func(a, b File) int { return slices.Compare(a.Digest[:], b.Digest[:]) })
	return list
}

// Bytes returns the bytes of all files, and of those that are being put as they will be.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserved()
}

// reserved counts the bytes of all files. s.mu is held.
func (s *Store) reserved() int64 {
	var n int64
	for _, f := range s.files {
		n += f.bytes
	}
	for _, u := range s.uploads {
		n += u.want.Bytes
	}
	return n
}

// Hold keeps a whole file until release is called. It reports false if the store does not have the file.
func (s *Store) Hold(digest vocabulary.Digest) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[digest]
	if !ok {
		return nil, false
	}
	f.held++
	var once sync.Once
	return func() {
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			f.held--
			f.used = s.o.Now()
		})
	}, true
}

// ReadAt reads a piece of a whole file, at most MaxPiece bytes.
func (s *Store) ReadAt(digest vocabulary.Digest, offset int64) (piece []byte, total int64, err error) {
	total, ok := s.Size(digest)
	if !ok {
		return nil, 0, fmt.Errorf("%v: %w", digest, ErrMissing)
	}
	if offset < 0 || offset > total {
		return nil, 0, fmt.Errorf("%w: %v: byte %d of %d", ErrRequest, digest, offset, total)
	}
	file, err := os.Open(s.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		s.forget(digest)
		return nil, 0, fmt.Errorf("%v: %w: it was removed", digest, ErrMissing)
	}
	if err != nil {
		return nil, 0, err
	}
	piece = make([]byte, min(total-offset, MaxPiece))
	_, err = file.ReadAt(piece, offset)
	if err = errors.Join(err, file.Close()); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("read file %v: %w", digest, err)
	} else if err != nil {
		return nil, 0, fmt.Errorf("%v: %w: it was cut", digest, ErrDigest)
	}
	return piece, total, nil
}

// Describe reads a whole file and returns its description. A file that has changed on the disk is removed.
func (s *Store) Describe(digest vocabulary.Digest) (*vocabulary.Description, error) {
	if _, ok := s.Size(digest); !ok {
		return nil, fmt.Errorf("vocabulary %v: %w", digest, ErrMissing)
	}
	d, err := vocabulary.DescribeFile(s.path(digest))
	var got vocabulary.Digest
	if d != nil {
		got = d.Digest
	}
	if err := s.checkRead(digest, got, err); err != nil {
		return nil, err
	}
	return d, nil
}

// Load reads a whole file for lookups. A file that has changed on the disk is removed.
func (s *Store) Load(digest vocabulary.Digest) (*vocabulary.Vocabulary, error) {
	if _, ok := s.Size(digest); !ok {
		return nil, fmt.Errorf("vocabulary %v: %w", digest, ErrMissing)
	}
	v, err := vocabulary.LoadForLookups(s.path(digest))
	var got vocabulary.Digest
	if v != nil {
		got = v.Digest
	}
	if err := s.checkRead(digest, got, err); err != nil {
		return nil, err
	}
	return v, nil
}

// checkRead removes a file that was read and is not what its name says.
func (s *Store) checkRead(want, got vocabulary.Digest, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.forget(want)
		return fmt.Errorf("vocabulary %v: %w: its file was removed", want, ErrMissing)
	case errors.Is(err, vocabulary.ErrDamaged) && s.isIntact(want):
		return fmt.Errorf("%w: %v is not a vocabulary: %w", ErrRequest, want, err)
	case errors.Is(err, vocabulary.ErrDamaged) || err == nil && got != want:
		s.o.Logger.Warn("a vocabulary changed on the disk and is removed", "digest", want.String(), "error", err)
		removal := s.remove(want)
		return errors.Join(fmt.Errorf("%w %v: its file changed on the disk", ErrDigest, want), err, removal)
	}
	return err
}

// isIntact reports whether a file has the bytes of its digest. A caller that takes it for a file of another kind must
// not have it removed.
func (s *Store) isIntact(digest vocabulary.Digest) bool {
	f, err := os.Open(s.path(digest))
	if err != nil {
		return false
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return errors.Join(err, f.Close()) == nil && vocabulary.Digest(sum.Sum(nil)) == digest
}

// forget drops a file that is not on the disk any more.
func (s *Store) forget(digest vocabulary.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, digest)
}

// remove removes a file, held or not.
func (s *Store) remove(digest vocabulary.Digest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeLocked(digest)
}

// removeLocked is remove. s.mu is held, so that nobody holds the file, or puts it again, before it is gone.
func (s *Store) removeLocked(digest vocabulary.Digest) error {
	delete(s.files, digest)
	if err := os.Remove(s.path(digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep removes files that nothing has held or used for Options.Unused, and files whose pieces stopped coming.
func (s *Store) Sweep() {
	now := s.o.Now()
	s.mu.Lock()
	old := map[vocabulary.Digest]error{}
	for digest, f := range s.files {
		if f.held == 0 && now.Sub(f.used) >= s.o.Unused {
			old[digest] = s.removeLocked(digest)
		}
	}
	var left []*upload
	for key, u := range s.uploads {
		if now.Sub(u.touched) >= partialLife && u.mu.TryLock() {
			delete(s.uploads, key)
			left = append(left, u)
		}
	}
	s.mu.Unlock()
	for digest, err := range old {
		s.o.Logger.Info("a file that no job uses any more is removed", "digest", digest.String())
		if err != nil {
			s.o.Logger.Warn("remove a file", "digest", digest.String(), "error", err)
		}
	}
	for _, u := range left {
		if err := u.discard(); err != nil {
			s.o.Logger.Warn("remove a part of a file", "file", u.path, "error", err)
		}
		u.mu.Unlock()
	}
}

// makeRoom removes files that nothing holds until there is room for n bytes more. s.mu is held.
func (s *Store) makeRoom(n int64) error {
	for s.reserved()+n > s.o.Most {
		var oldest vocabulary.Digest
		var when time.Time
		for digest, f := range s.files {
			if f.held == 0 && s.o.Now().Sub(f.used) >= s.o.Grace && (when.IsZero() || f.used.Before(when)) {
				oldest, when = digest, f.used
			}
		}
		if when.IsZero() {
			return fmt.Errorf("%w of %d bytes: %d of %d bytes are in use in %s", ErrRoom, n, s.reserved(), s.o.Most,
				s.o.Folder)
		}
		s.o.Logger.Info("a file makes room for another", "digest", oldest.String())
		if err := s.removeLocked(oldest); err != nil {
			return err
		}
	}
	return nil
}

// ownerUse counts an owner's files and their bytes, and the files that it is putting. named has the owners of the jobs
// that name each file. s.mu is held.
func (s *Store) ownerUse(owner string, named map[vocabulary.Digest][]string) (files, putting int, bytes int64) {
	for digest, f := range s.files {
		users := named[digest]
		if owner != "" && slices.Contains(users, owner) || f.owner == owner && f.held == 0 && len(users) == 0 {
			files, bytes = files+1, bytes+f.bytes
		}
	}
	for key, u := range s.uploads {
		if key.owner == owner {
			putting, bytes = putting+1, bytes+u.want.Bytes
		}
	}
	return files + putting, putting, bytes
}

// checkOwner returns an error if a file would exceed what one owner may have. s.mu is held.
func (s *Store) checkOwner(owner string, named map[vocabulary.Digest][]string, want File) error {
	const remedy = "wait until a job of the owner ends, or until files that no job names are removed"
	files, putting, bytes := s.ownerUse(owner, named)
	switch {
	case s.o.OwnerMost > 0 && bytes+want.Bytes > s.o.OwnerMost:
		return fmt.Errorf("%w of %d bytes: the same owner has %d bytes, and may have %d of %d: %s", ErrRoom, want.Bytes,
			bytes, s.o.OwnerMost, s.o.Most, remedy)
	case s.o.OwnerFiles > 0 && files >= s.o.OwnerFiles:
		return fmt.Errorf("%w: the same owner has %d files, as many as it may: %s", ErrRoom, files, remedy)
	case s.o.OwnerMost > 0 && putting >= maxUploads/2:
		return fmt.Errorf("%w: the same owner is putting %d files already: put fewer at once", ErrRoom, putting)
	}
	return nil
}

// diskError gives the error of a full disk its sentinel.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", ErrRoom, err)
	}
	return err
}
