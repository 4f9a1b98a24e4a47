package extents

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/millrace/millrace/sdk/partition"
)

// Why a file's bytes cannot be read from its device.
var (
	ErrExtent      = errors.New("extent cannot be read from the device") // an *ExtentError
	ErrHole        = errors.New("file has a hole")
	ErrFileSystem  = errors.New("file system is not known to say where a file lies")
	ErrStacked     = errors.New("device stands on other devices")
	ErrMoved       = errors.New("file was moved or written since it was looked at")
	ErrUnsupported = errors.New("extents can be found on Linux only")
)

// MaxExtents bounds a file's extents: a file with more should be copied, not mapped.
const MaxExtents = 1 << 20

// Flags of an extent, of include/uapi/linux/fiemap.h.
const (
	flagLast       = 0x0001
	flagUnknown    = 0x0002
	flagDelalloc   = 0x0004
	flagEncoded    = 0x0008
	flagEncrypted  = 0x0080
	flagNotAligned = 0x0100
	flagInline     = 0x0200
	flagTail       = 0x0400
	flagUnwritten  = 0x0800
	flagMerged     = 0x1000
	flagShared     = 0x2000
)

// refusals name the flags that make an extent unreadable. An extent that files share (flagShared) is read like any
// other: the file that is written gets new blocks.
var refusals = []struct {
	flag uint32
	why  string
}{
	{flagUnknown, "its place is unknown"},
	{flagDelalloc, "it has no place yet"},
	{flagEncoded, "it is compressed or otherwise encoded"},
	{flagEncrypted, "it is encrypted"},
	{flagNotAligned, "it does not begin at a block"},
	{flagInline, "it lies in the file system's own structures"},
	{flagTail, "it shares a block with other files"},
	{flagUnwritten, "it is reserved and was never written"},
}

// ExtentError says which extent of a file cannot be read, and why. It wraps ErrExtent.
type ExtentError struct {
	Offset int64 // Offset is a place in the file.
	Why    string
}

func (e *ExtentError) Error() string {
	return fmt.Sprintf("extent at byte %d: %s: %v; copy the file (cp --sparse=never) or put it on a volume", e.Offset,
		e.Why, ErrExtent)
}

// Unwrap returns ErrExtent.
func (e *ExtentError) Unwrap() error { return ErrExtent }

// Options say which files are accepted. The zero value works.
type Options struct {
	// Loop accepts a file system on a loop device; the disk is then the image file.
	Loop bool
	// Sysfs is where sysfs is mounted; empty means /sys.
	Sysfs string
}

// Disk is the device that a file lies on.
type Disk struct {
	Name      string // nvme0n1, vda; of a loop device the image's path
	Block     int    // bytes of a logical block
	Partition int64  // where the partition begins, in bytes; 0 where the file system has the whole disk
	Loop      bool
	NSID      uint32 // NSID is that of an NVMe namespace, else 0.
	Control   string // controller of an NVMe namespace, as nvme0; empty where the kernel has several for it, or none
}

// Map says where a file lies.
type Map struct {
	Path    string
	Size    int64
	Disk    Disk
	Extents []partition.Extent // in bytes of the disk; together at least Size bytes

	options  Options
	modified time.Time
	device   uint64 // st_dev and st_ino, which identify the file under every name
	inode    uint64
}

// Find finds where a file lies. An empty file has no extents.
func Find(path string, o Options) (*Map, error) {
	m, err := find(path, o)
	if err != nil {
		return nil, fmt.Errorf("extents of %s: %w", path, err)
	}
	return m, nil
}

func find(path string, o Options) (_ *Map, err error) {
	if o.Sysfs == "" {
		o.Sysfs = "/sys"
	}
	// Before it is opened, because opening a named pipe waits for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	m := &Map{Path: path, Size: info.Size(), options: o, modified: info.ModTime()}
	var major, minor uint32
	if m.device, m.inode, major, minor, err = identity(info); err != nil {
		return nil, err
	}
	if err := checkFileSystem(f); err != nil {
		return nil, err
	}
	if m.Disk, err = findDisk(o, major, minor); err != nil {
		return nil, err
	}
	raw, err := fiemap(f)
	if err != nil {
		return nil, err
	}
	if m.Extents, err = translate(raw, m.Size, m.Disk); err != nil {
		return nil, err
	}
	// The map and the size belong together only if the file did not change between the two.
	after, err := f.Stat()
	if err == nil && (after.Size() != m.Size || !after.ModTime().Equal(m.modified)) {
		err = ErrMoved
	}
	return m, err
}

// Check looks again. Its error wraps ErrMoved if anything has changed: bytes that were read through the map in the
// meantime may be wrong.
func (m *Map) Check() error {
	now, err := find(m.Path, m.options)
	switch {
	case errors.Is(err, ErrMoved):
	case err != nil:
		return fmt.Errorf("extents of %s: look again: %w: %w", m.Path, ErrMoved, err)
	case now.device == m.device && now.inode == m.inode && now.Size == m.Size && now.modified.Equal(m.modified) &&
		now.Disk == m.Disk && slices.Equal(now.Extents, m.Extents):
		return nil
	}
	return fmt.Errorf("extents of %s: look again: %w", m.Path, ErrMoved)
}

// rawExtent is an extent as FIEMAP reports it, in bytes.
type rawExtent struct {
	logical, physical, length uint64
	flags                     uint32
}

// translate checks the extents of a file of size bytes and returns where they lie on the disk. It joins extents that
// follow each other on the disk.
func translate(raw []rawExtent, size int64, d Disk) ([]partition.Extent, error) {
	var out []partition.Extent
	block := uint64(max(d.Block, 512))
	at := int64(0)
	for _, e := range raw {
		if at >= size {
			break // allocated behind the end
		}
		if e.logical > 1<<62 || e.physical > 1<<62 || e.length > 1<<62 || e.length == 0 {
			return nil, &ExtentError{at,
				fmt.Sprintf("%d bytes at byte %d of the device cannot be", e.length, e.physical)}
		}
		if int64(e.logical) > at {
			return nil, fmt.Errorf("bytes %d to %d: %w; copy it (cp --sparse=never)", at, min(int64(e.logical), size),
				ErrHole)
		}
		if int64(e.logical) < at {
			return nil, &ExtentError{int64(e.logical), "it overlaps the one before it"}
		}
		for _, r := range refusals {
			if e.flags&r.flag != 0 {
				return nil, &ExtentError{at, r.why}
			}
		}
		if known := uint32(flagLast | flagMerged | flagShared); e.flags&^known != 0 {
			return nil, &ExtentError{at, fmt.Sprintf("it has flags %#x of unknown meaning", e.flags&^known)}
		}
		where := e.physical + uint64(d.Partition)
		if e.logical%block != 0 || where%block != 0 || e.length%block != 0 {
			return nil, &ExtentError{at,
				fmt.Sprintf("%d bytes at byte %d of the disk are no whole blocks of %d", e.length, where, block)}
		}
		if n := len(out); n > 0 && out[n-1].Device+out[n-1].Len == int64(where) {
			out[n-1].Len += int64(e.length)
		} else {
			out = append(out, partition.Extent{Offset: at, Device: int64(where), Len: int64(e.length)})
		}
		at += int64(e.length)
	}
	if at < size {
		return nil, fmt.Errorf("bytes %d to %d: %w; copy it (cp --sparse=never)", at, size, ErrHole)
	}
	return out, nil
}
