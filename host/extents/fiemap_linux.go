package extents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// struct fiemap and struct fiemap_extent of include/uapi/linux/fiemap.h, with room for batch extents.
type fiemapRequest struct {
	start, length                  uint64
	flags, mapped, count, reserved uint32
	extents                        [batch]fiemapExtent
}

type fiemapExtent struct {
	logical, physical, length uint64
	reserved64                [2]uint64
	flags                     uint32
	reserved                  [3]uint32
}

const (
	batch         = 256
	ioctlFiemap   = 0xc020660b
	fiemapSync    = 0x1 // FIEMAP_FLAG_SYNC: write the file back first
	ioctlFSGetX   = 0x801c581f
	xflagRealtime = 0x1
)

// fiemap asks the file system where the whole file lies.
func fiemap(f *os.File) ([]rawExtent, error) {
	var all []rawExtent
	r := new(fiemapRequest)
	for at := uint64(0); ; {
		*r = fiemapRequest{start: at, length: 1<<64 - 1 - at, flags: fiemapSync, count: batch}
		if err := ioctl(f, ioctlFiemap, unsafe.Pointer(r)); err != nil {
			if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
				err = fmt.Errorf("%w: %w", ErrFileSystem, err)
			}
			return nil, fmt.Errorf("FIEMAP: %w", err)
		}
		if r.mapped > batch {
			return nil, fmt.Errorf("FIEMAP: %d extents where there is room for %d", r.mapped, batch)
		}
		if r.mapped == 0 {
			return all, nil
		}
		for _, e := range r.extents[:r.mapped] {
			all = append(all, rawExtent{e.logical, e.physical, e.length, e.flags})
			if e.flags&flagLast != 0 {
				return all, nil
			}
			if e.logical+e.length <= at {
				return nil, errors.New("FIEMAP: extents that do not go forward")
			}
			at = e.logical + e.length
		}
		if len(all) >= MaxExtents {
			return nil, fmt.Errorf("more than %d extents: copy the file", MaxExtents)
		}
	}
}

// ioctl makes an ioctl that takes a pointer. It does not put the file into blocking mode, as File.Fd does.
func ioctl(f *os.File, req uintptr, arg unsafe.Pointer) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	if err := c.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, req, uintptr(arg))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// checkFileSystem accepts ext2 to ext4 and XFS, which report offsets on the single device that holds them. Other file
// systems report offsets in an address space of their own (btrfs, f2fs on several devices), or none.
func checkFileSystem(f *os.File) error {
	var st unix.Statfs_t
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := c.Control(func(fd uintptr) { failed = unix.Fstatfs(int(fd), &st) }); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC:
		return nil
	case unix.XFS_SUPER_MAGIC:
		// A file of XFS's realtime section lies on another device.
		var x [28]byte
		if err := ioctl(f, ioctlFSGetX, unsafe.Pointer(&x)); err != nil {
			return fmt.Errorf("ask XFS for the file's section: %w", err)
		}
		if *(*uint32)(unsafe.Pointer(&x))&xflagRealtime != 0 {
			return fmt.Errorf("it lies in XFS's realtime section: %w", ErrFileSystem)
		}
		return nil
	}
	return fmt.Errorf("type %#x, want ext4 or XFS: %w", uint32(st.Type), ErrFileSystem)
}

// identity returns what identifies a file, and the numbers of the device that it lies on.
func identity(info fs.FileInfo) (device, inode uint64, major, minor uint32, err error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0, 0, errors.New("the system says nothing of its device")
	}
	return st.Dev, st.Ino, unix.Major(st.Dev), unix.Minor(st.Dev), nil
}
