package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// BlockDevice has the methods that a volume needs of a drive. *sdk.Device implements it.
type BlockDevice interface {
	BlockSize() int // bytes; a multiple of 512
	Size() int64    // bytes
	// ReaderAt reads bytes of any alignment under ctx.
	ReaderAt(ctx context.Context) io.ReaderAt
	// WriteBlocks writes whole blocks. Each block is written whole or not at all. With fua the blocks are on stable
	// storage when WriteBlocks returns.
	WriteBlocks(ctx context.Context, p []byte, lba uint64, fua bool) error
	// Flush returns when everything that was written before is on stable storage.
	Flush(ctx context.Context) error
}

// Volume is an open tar volume.
type Volume struct {
	device BlockDevice
	// Now is the clock for members' modification times; nil means time.Now. Set it before the first Put.
	Now func() time.Time

	appending sync.Mutex // held by Put: there is one appender

	mu      sync.Mutex // guards the fields below
	members []Member
	byName  map[string]int // index of the last member of a name: the last one counts, as for tar
	end     int64          // offset of the archive's first zero block, where the next member begins
}

// Open reads the archive on dev. An empty drive is an empty volume.
func Open(ctx context.Context, dev BlockDevice) (*Volume, error) {
	if dev.Size() == 0 {
		return nil, fmt.Errorf("volume: %w", ErrNoFlash)
	}
	if bs := dev.BlockSize(); bs < sector || bs%sector != 0 {
		return nil, fmt.Errorf("volume: block size %d is not a multiple of %d", bs, sector)
	}
	v := &Volume{device: dev, byName: make(map[string]int)}
	if err := v.refresh(ctx); err != nil {
		return nil, fmt.Errorf("volume: %w", err)
	}
	return v, nil
}

// refresh reads on from where the archive ended, and so finds members that another process has appended.
func (v *Volume) refresh(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &scanner{r: newHeaderReader(ctx, v.device), size: v.device.Size(), offset: v.end}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := s.next()
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return err
		}
		v.end = s.offset
		if ended {
			return nil
		}
		if m == nil {
			continue
		}
		if len(v.members) == MaxMembers {
			return fmt.Errorf("more than %d members: %w", MaxMembers, ErrCorrupt)
		}
		v.add(*m)
	}
}

// add adds a member to the index. v.mu is held.
func (v *Volume) add(m Member) {
	v.byName[m.Name] = len(v.members)
	v.members = append(v.members, m)
}

// List returns the members in the archive's order. Of several members with one name it returns the last.
func (v *Volume) List(ctx context.Context) ([]Member, error) {
	if err := v.refresh(ctx); err != nil {
		return nil, fmt.Errorf("volume: list: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]Member, 0, len(v.byName))
	for i, m := range v.members {
		if v.byName[m.Name] == i {
			all = append(all, m)
		}
	}
	return slices.Clip(all), nil
}

// Stat returns a member. Its error wraps fs.ErrNotExist if there is no member of the name, and ErrSparse if the member
// is sparse.
func (v *Volume) Stat(name string) (Member, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	i, ok := v.byName[name]
	if !ok {
		return Member{}, fmt.Errorf("volume: member %q: %w", name, fs.ErrNotExist)
	}
	if m := v.members[i]; !m.Sparse {
		return m, nil
	}
	return Member{}, fmt.Errorf("volume: member %q: %w", name, ErrSparse)
}

// Open returns a reader of a member's bytes, which reads under ctx. Its errors are those of Stat.
func (v *Volume) Open(ctx context.Context, name string) (*io.SectionReader, error) {
	m, err := v.Stat(name)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(v.device.ReaderAt(ctx), m.Offset, m.Size), nil
}

// Used returns how many bytes the archive takes and how large the drive is.
func (v *Volume) Used() (used, size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.end, v.device.Size()
}

// Why a member cannot be appended.
var (
	ErrFull   = errors.New("drive is full")
	ErrExists = errors.New("member exists already")
	ErrName   = errors.New("name cannot be a member's")
	ErrSize   = errors.New("source does not have the size that was announced")
	// ErrDiskFull says that the drive has room, and that the disk on which the drive's file lies has none.
	ErrDiskFull = errors.New("the disk under the drive is full: make room there")
)

// FullError says how much room a member would have needed. It wraps ErrFull.
type FullError struct {
	Name       string
	Need, Free int64 // bytes, headers and the archive's end included
}

func (e *FullError) Error() string {
	return fmt.Sprintf("volume: put %q: %v: needs %d bytes, %d are free", e.Name, ErrFull, e.Need, e.Free)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }

// checkName refuses names that tar would not bring back unchanged.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > MaxName:
		return fmt.Errorf("%d bytes, want 1 to %d", len(name), MaxName)
	case strings.ContainsRune(name, 0):
		return errors.New("holds a NUL")
	case !fs.ValidPath(name) || name == ".":
		return errors.New("want a relative path of valid UTF-8 without empty, . or .. elements")
	}
	return nil
}
