package passthru

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/nvme"
)

// Requests of include/uapi/linux/nvme_ioctl.h.
const (
	ioctlID      = 0x4e40
	ioctlReset   = 0x4e44
	ioctlAdmin64 = 0xc0504e47
	ioctlIO64    = 0xc0504e48
)

// system is this machine's kernel.
type system struct{}

func (system) openNode(path, dev string) (node, error) {
	// The kernel demands only the right to open. Reading is requested so that an unreadable node is recognised.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	n := &device{fd: fd, path: path}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), n.Close())
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFCHR && kind != unix.S_IFBLK {
		return nil, errors.Join(fmt.Errorf("%s is not a device node", path), n.Close())
	}
	if got := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)); dev != "" && got != dev {
		return nil, errors.Join(fmt.Errorf("%s is device %s, though sysfs says %s: it is a stale node", path, got, dev),
			n.Close())
	}
	return n, nil
}

func (system) mapMemory(n int) ([]byte, func() error, error) {
	n = (n + pageSize - 1) / pageSize * pageSize
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return b, func() error { return unix.Munmap(b) }, nil
}

// device is an open device node. Its descriptor is closed only when no command runs.
type device struct {
	fd   int
	path string
}

// pinData pins the memory of data and writes its address to the command. The memory has to stay pinned until the
// command has ended: the kernel writes through a number that the garbage collector does not see as a pointer.
func (w *wire) pinData(pin *runtime.Pinner, data []byte) {
	if len(data) == 0 {
		return
	}
	p := unsafe.SliceData(data)
	pin.Pin(p)
	w.setAddress(uint64(uintptr(unsafe.Pointer(p))))
}

// carryCommand runs a command by ioctl; the thread waits in the kernel.
func (d *device) carryCommand(_ node, r request, w *wire, data []byte) (nvme.Status, error) {
	req := uintptr(ioctlIO64)
	if r == adminRequest {
		req = ioctlAdmin64
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	w.pinData(&pin, data)
	v, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), req, uintptr(unsafe.Pointer(w)))
	w.setAddress(0)
	if errno != 0 {
		return 0, errno
	}
	return nvme.Status(v), nil
}

func (d *device) namespaceID() (uint32, error) {
	v, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), ioctlID, 0)
	if errno != 0 {
		return 0, fmt.Errorf("ask for its namespace: %w", errno)
	}
	return uint32(v), nil
}

func (d *device) resetController() error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), ioctlReset, 0); errno != 0 {
		return errno
	}
	return nil
}

func (d *device) Close() error {
	if err := unix.Close(d.fd); err != nil {
		return &os.PathError{Op: "close", Path: d.path, Err: err}
	}
	return nil
}
