package jobfiles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// uploadKey names a file that is being put. Every owner puts bytes of its own, so that nobody can spoil another's.
type uploadKey struct {
	digest vocabulary.Digest
	owner  string
}

// upload is a file that is being put.
type upload struct {
	want File
	path string

	touched time.Time // guarded by Store.mu

	mu   sync.Mutex // held while a piece is written or the whole is checked; locked after no other lock but by Sweep
	have int64
	done bool // the partial file is gone
}

// Append adds a piece of a file at an offset, and returns how many bytes of the file the store has: all of them when it
// is whole and checked. A piece that the store has already is not an error, and neither is one that does not follow:
// the caller goes on at the offset that is returned. An empty piece asks for the offset alone. owner is the caller,
// whose pieces are kept apart from those of others, and bounded.
//
// The error wraps ErrRoom, ErrRequest, or, when the last piece came and the bytes are not the file's, ErrDigest or
// vocabulary.ErrDamaged. After these the caller may begin again at 0.
func (s *Store) Append(owner string, want File, offset int64, piece []byte) (int64, error) {
	if err := want.check(); err != nil {
		return 0, err
	}
	if len(piece) > MaxPiece || offset < 0 || offset > want.Bytes-int64(len(piece)) {
		return 0, fmt.Errorf("%w: %v %v: a piece of %d bytes at byte %d of %d: want at most %d inside the file",
			ErrRequest, want.Kind, want.Digest, len(piece), offset, want.Bytes, MaxPiece)
	}
	if size, ok := s.Size(want.Digest); ok {
		if size != want.Bytes {
			return 0, fmt.Errorf("%w: %v %v has %d bytes, not %d", ErrRequest, want.Kind, want.Digest, size, want.Bytes)
		}
		return size, nil
	}
	u, err := s.upload(owner, want, len(piece) > 0)
	if u == nil || err != nil {
		return 0, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.done: // another call has ended it
		if size, ok := s.Size(want.Digest); ok {
			return size, nil
		}
		return 0, nil
	case offset > u.have || offset+int64(len(piece)) <= u.have:
		return u.have, nil
	}
	if err := u.write(piece[u.have-offset:]); err != nil {
		s.endUpload(owner, u)
		return 0, fmt.Errorf("write %v %v: %w", want.Kind, want.Digest, errors.Join(diskError(err), u.discard()))
	}
	if u.have < want.Bytes {
		return u.have, nil
	}
	err = u.check()
	if err == nil {
		err = s.adopt(owner, u)
	}
	s.endUpload(owner, u)
	if err != nil {
		return 0, errors.Join(diskError(err), u.discard())
	}
	u.done = true
	return want.Bytes, nil
}

// upload returns the upload of a file, which it begins if begin is set; nil: there is none.
func (s *Store) upload(owner string, want File, begin bool) (*upload, error) {
	key := uploadKey{want.Digest, owner}
	s.mu.Lock()
	defer s.mu.Unlock()
	var named map[vocabulary.Digest][]string
	if begin && s.uploads[key] == nil && s.o.Owners != nil {
		s.mu.Unlock() // Owners has locks of its own
		named = s.o.Owners()
		s.mu.Lock()
	}
	u, ok := s.uploads[key]
	switch {
	case ok && u.want != want:
		return nil, fmt.Errorf("%w: %v %v of %d bytes is being put as a %v of %d bytes", ErrRequest, want.Kind,
			want.Digest, want.Bytes, u.want.Kind, u.want.Bytes)
	case ok:
		u.touched = s.o.Now()
		return u, nil
	case !begin:
		return nil, nil
	case len(s.uploads) >= maxUploads:
		return nil, fmt.Errorf("%w: %d files are being put already", ErrRoom, len(s.uploads))
	}
	if err := s.checkOwner(owner, named, want); err != nil {
		return nil, err
	}
	if err := s.makeRoom(want.Bytes); err != nil {
		return nil, err
	}
	s.made++
	u = &upload{want: want, touched: s.o.Now(),
		path: filepath.Join(s.o.Folder, fmt.Sprintf("%v-%d%s", want.Digest, s.made, partialSuffix))}
	s.uploads[key] = u
	return u, nil
}

// endUpload forgets an upload.
func (s *Store) endUpload(owner string, u *upload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := (uploadKey{u.want.Digest, owner}); s.uploads[key] == u {
		delete(s.uploads, key)
	}
}

// adopt gives a checked file its name.
func (s *Store) adopt(owner string, u *upload) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.files[u.want.Digest]; ok { // another owner was faster
		return os.Remove(u.path)
	}
	if err := os.Rename(u.path, s.path(u.want.Digest)); err != nil {
		return err
	}
	s.files[u.want.Digest] = &stored{bytes: u.want.Bytes, owner: owner, used: s.o.Now()}
	return wholefile.SyncFolder(s.o.Folder)
}

// write appends bytes to the partial file. u.mu is held.
func (u *upload) write(b []byte) (err error) {
	f, err := os.OpenFile(u.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if u.have += int64(len(b)); u.have == u.want.Bytes {
		return f.Sync()
	}
	return nil
}

// check reads the whole partial file: it must be the vocabulary, selection or module of the digest. u.mu is held.
func (u *upload) check() error {
	switch u.want.Kind {
	case Selection:
		return u.checkSelection()
	case Module:
		return u.checkModule()
	}
	d, err := vocabulary.DescribeFile(u.path)
	if errors.Is(err, vocabulary.ErrDamaged) {
		return fmt.Errorf("%w %v: %w", ErrDigest, u.want.Digest, err)
	}
	if err != nil {
		return fmt.Errorf("vocabulary %v: %w", u.want.Digest, err)
	}
	if d.Digest != u.want.Digest {
		return fmt.Errorf("%w %v: their SHA-256 is %v", ErrDigest, u.want.Digest, d.Digest)
	}
	return nil
}

// checkSelection does what check does for a selection.
func (u *upload) checkSelection() error {
	digest, err := selection.CheckFile(u.path)
	if err != nil {
		return fmt.Errorf("%w: selection %v: %w", ErrDigest, u.want.Digest, err)
	}
	if digest != dataset.Digest(u.want.Digest) {
		return fmt.Errorf("%w: selection %v: the SHA-256 of its bytes is %v", ErrDigest, u.want.Digest, digest)
	}
	return nil
}

// discard removes the partial file. u.mu is held.
func (u *upload) discard() error {
	u.done = true
	if err := os.Remove(u.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
