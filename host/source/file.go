package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/openfiles"
)

// Files opens files of this machine, by path or as file:PATH. The zero value works.
type Files struct{}

// Open implements Opener.
func (Files) Open(_ context.Context, at Location, pinned Identity) (Source, error) {
	name := at.filePath()
	f, state, err := openfiles.OpenRegular(name)
	identity := FileIdentity(state)
	switch {
	case errors.Is(err, openfiles.ErrNotRegular):
		return nil, &UnsupportedError{
			Name: name, Lacks: "it is not a regular file", Advice: "partitions are read from files",
		}
	case err != nil:
		return nil, fileError(name, err)
	case !pinned.IsZero() && pinned != identity:
		return nil, errors.Join(&ChangedError{Name: name, Pinned: pinned, Found: identity}, f.Close())
	}
	return &file{name: name, file: f, identity: identity}, nil
}

// FileIdentity returns the identity of a file: device, inode, size and the time of the last write.
func FileIdentity(s openfiles.State) Identity {
	return Identity{Kind: ByFile, Size: s.Size, Value: fmt.Sprintf("%d-%d-%d", s.Device, s.Inode, s.Modified)}
}

// List implements Opener.
func (Files) List(_ context.Context, pattern Location) ([]Object, error) {
	name := pattern.filePath()
	if strings.HasSuffix(name, "/") {
		name += "*"
	}
	paths, err := filepath.Glob(name)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	var objects []Object
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fileError(path, err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if objects = append(objects, Object{Location: ParseLocation(path), Size: info.Size()}); len(objects) > MaxListed {
			return nil, tooManyError(pattern)
		}
	}
	if len(objects) == 0 {
		return nil, &NotFoundError{Name: name}
	}
	slices.SortFunc(objects, func(a, b Object) int { return strings.Compare(a.Location.name, b.Location.name) })
	return objects, nil
}

// filePath returns the path of file:PATH, file:///PATH or PATH.
func (l Location) filePath() string {
	name, found := strings.CutPrefix(l.name, "file:")
	if found && strings.HasPrefix(name, "///") {
		return name[2:]
	}
	return name
}

// fileError turns an error of the file system into an error of this package.
func fileError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &NotFoundError{Name: name, Err: err}
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: %w: give this user the right to read it", name, err)
	}
	return fmt.Errorf("open %s: %w", name, err)
}

// file is an open file. Every read checks the file's identity after it has read the bytes.
type file struct {
	name     string
	file     *os.File
	identity Identity
}

// Name implements Source.
func (s *file) Name() string { return s.name }

// Size implements Source.
func (s *file) Size() int64 { return s.identity.Size }

// Identity implements Source.
func (s *file) Identity() Identity { return s.identity }

// ReadAt implements Source. A system call that reads a file does not end with ctx.
func (s *file) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	n, err := s.file.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("%s: bytes %d+%d: %w", s.name, off, len(b), err)
	}
	// The identity is checked after the bytes are read, so that a write before or during the read is seen.
	now, identityErr := openIdentity(s.file)
	switch {
	case identityErr != nil:
		return 0, identityErr
	case now != s.identity:
		return 0, &ChangedError{Name: s.name, Pinned: s.identity, Found: now}
	}
	return n, err
}

// openIdentity returns the identity of an open file.
func openIdentity(f *os.File) (Identity, error) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, err
	}
	return FileIdentity(openfiles.StateOf(info)), nil
}

// Close implements Source.
func (s *file) Close() error { return s.file.Close() }
