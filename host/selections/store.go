package selections

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
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

// maxPiece bounds the bytes of one piece of a part.
const maxPiece = 512 << 10

// suffix ends the names of parts.
const suffix = ".selection"

// ErrMissing says that a Store does not have a part.
var ErrMissing = errors.New("the part of a selection is not made")

// Store is a folder of parts, bounded in bytes.
type Store struct {
	folder string
	most   int64
	log    *slog.Logger

	mu    sync.Mutex // guards the fields below, and is held while the folder changes
	parts map[string]*part
}

// part is a file of a Store.
type part struct {
	bytes   int64
	used    time.Time
	checked bool // its bytes were written or read by this Store
}

// Open opens a folder, which it makes if it is not there. most bounds the bytes of all parts together.
func Open(folder string, most int64, log *slog.Logger) (*Store, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("folder of selections: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("folder of selections: %w", err)
	}
	s := &Store{folder: folder, most: most, log: log, parts: map[string]*part{}}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), suffix) {
			continue // it is not the store's
		}
		s.parts[e.Name()] = &part{bytes: info.Size(), used: info.ModTime()}
	}
	return s, nil
}

// nameOf returns the name of a part's file.
func nameOf(manifest, filter dataset.Digest) string {
	sum := sha256.Sum256(append(manifest[:], filter[:]...))
	return hex.EncodeToString(sum[:]) + suffix
}

// partName returns the name of the file of a partition's part.
func partName(p dataset.Partition, filter dataset.Digest) (string, error) {
	m, err := selection.PartManifest(p)
	if err != nil {
		return "", err
	}
	manifest, err := m.Digest()
	return nameOf(manifest, filter), err
}

// Has reports whether the store has the part of a partition for a filter. It reads the part, and removes one that is
// damaged or of something else.
func (s *Store) Has(p dataset.Partition, filter dataset.Digest) (bool, error) {
	name, err := partName(p, filter)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	known := s.parts[name]
	checked := known != nil && known.checked
	s.mu.Unlock()
	if known == nil || checked {
		return checked, nil
	}
	made, err := selection.Load(filepath.Join(s.folder, name))
	if err == nil {
		err = selection.CheckPart(made, p, filter)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		known.checked = true
		return true, nil
	}
	s.log.Warn("a kept part of a selection is not used, and is made again", "partition", p.Name, "error", err)
	delete(s.parts, name)
	if err := os.Remove(filepath.Join(s.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("folder of selections: %w", err)
	}
	return false, nil
}

// Put adds a part. It drops the parts that were used longest ago where there is no room.
func (s *Store) Put(made *selection.Selection) error {
	name := nameOf(made.Manifest, made.Filter)
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.folder, name)
	if err := made.Write(path); err != nil {
		return fmt.Errorf("keep the part of a selection: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("keep the part of a selection: %w", err)
	}
	s.parts[name] = &part{bytes: info.Size(), used: time.Now(), checked: true}
	return s.makeRoom(name)
}

// makeRoom drops parts until the bound holds, but for the named one. s.mu is held.
func (s *Store) makeRoom(keep string) error {
	var sum int64
	for _, p := range s.parts {
		sum += p.bytes
	}
	for sum > s.most {
		oldest := ""
		for name, p := range s.parts {
			if name != keep && (oldest == "" || p.used.Before(s.parts[oldest].used)) {
				oldest = name
			}
		}
		if oldest == "" {
			return nil
		}
		sum -= s.parts[oldest].bytes
		delete(s.parts, oldest)
		if err := os.Remove(filepath.Join(s.folder, oldest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("folder of selections: %w", err)
		}
	}
	return nil
}

// ReadAt reads a piece of a part, at most maxPiece bytes, and returns the length of the part's file. The error wraps
// ErrMissing if the store does not have the part.
func (s *Store) ReadAt(p dataset.Partition, filter dataset.Digest, offset int64) (piece []byte, total int64,
	err error,
) {
	name, err := partName(p, filter)
	if err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock() // a part is not dropped while it is read
	known := s.parts[name]
	if known == nil {
		return nil, 0, fmt.Errorf("%s: %w", p.Name, ErrMissing)
	}
	known.used = time.Now()
	if offset < 0 || offset > known.bytes {
		return nil, 0, fmt.Errorf("%s: byte %d of a part of %d bytes", p.Name, offset, known.bytes)
	}
	f, err := os.Open(filepath.Join(s.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		delete(s.parts, name)
		return nil, 0, fmt.Errorf("%s: %w: its file was removed", p.Name, ErrMissing)
	}
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	piece = make([]byte, min(maxPiece, known.bytes-offset))
	if _, err := f.ReadAt(piece, offset); errors.Is(err, io.EOF) && len(piece) > 0 {
		delete(s.parts, name) // it is made again, in the place of this file
		return nil, 0, fmt.Errorf("%s: %w: its file was cut", p.Name, ErrMissing)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return piece, known.bytes, nil
}
