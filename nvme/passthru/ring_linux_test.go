package passthru

import (
	"errors"
	"os"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/nvme"
)

// makeRing makes a real ring, or skips where the kernel has none to give. /dev/null takes any command that is passed
// through (since Linux 6.1) and answers 0.
func makeRing(t *testing.T, depth int) (*ring, *device) {
	t.Helper()
	c, err := system{}.newRing(depth)
	if err != nil {
		if os.Getenv("MILLRACE_WANT_RING") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	require.NoError(t, err)
	d := &device{fd: fd, path: "/dev/null"}
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return c.(*ring), d
}

func TestRingCarriesCommands(t *testing.T) {
	r, null := makeRing(t, 8)
	const goroutines, each = 12, 500
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			data := make([]byte, 4096)
			cmd := nvme.Read(1, uint64(g), 8, 512)
			for range each {
				w := encodeCommand(&cmd, len(data), 0)
				status, err := r.carryCommand(null, ioRequest, &w, data)
				if errors.Is(err, unix.EOPNOTSUPP) {
					return // before 6.1
				}
				if !assert.NoError(t, err) || !assert.Zero(t, status) {
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, r.Close())
}

func TestRingTellsTheErrno(t *testing.T) {
	r, _ := makeRing(t, 3)
	defer func() { require.NoError(t, r.Close()) }()
	f, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer f.Close()
	cmd := nvme.Flush(1)
	for _, fd := range []int{int(f.Fd()), 1 << 20} {
		w := encodeCommand(&cmd, 0, 0)
		status, err := r.carryCommand(&device{fd: fd}, adminRequest, &w, nil)
		var errno unix.Errno
		require.ErrorAs(t, err, &errno)
		assert.Zero(t, status)
	}
}

func TestRingAtRestWakes(t *testing.T) {
	r, null := makeRing(t, 1)
	for range 200 {
		cmd := nvme.Flush(1)
		w := encodeCommand(&cmd, 0, 0)
		_, err := r.carryCommand(null, ioRequest, &w, nil)
		if errors.Is(err, unix.EOPNOTSUPP) {
			break
		}
		require.NoError(t, err)
	}
	require.NoError(t, r.Close())
	cmd := nvme.Flush(1)
	w := encodeCommand(&cmd, 0, 0)
	_, err := r.carryCommand(null, ioRequest, &w, nil)
	require.ErrorContains(t, err, "the ring is closed")
}

// TestRingThatDies closes the ring's descriptor under its owner's hands: no caller waits forever.
func TestRingThatDies(t *testing.T) {
	r, null := makeRing(t, 4)
	o := &owner{ring: r}
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.wakeOwner()
	<-r.ended // the owner is gone; this test is the owner now
	r.mu.Lock()
	r.closing = false
	r.mu.Unlock()

	fd := r.fd
	r.fd = -1
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			cmd := nvme.Flush(1)
			w := encodeCommand(&cmd, 0, 0)
			_, err := r.carryCommand(null, ioRequest, &w, nil)
			errs <- err
		}()
	}
	var placed int
	for placed < 2 {
		r.mu.Lock()
		batch := r.queued
		r.queued = nil
		r.mu.Unlock()
		for _, index := range batch {
			o.placeCommand(index)
			placed++
		}
	}
	err := o.enterKernel()
	require.ErrorIs(t, err, unix.EBADF)
	o.failCommands(err)
	for range 3 {
		require.ErrorIs(t, <-errs, unix.EBADF)
	}
	assert.Zero(t, o.running)
	r.fd = fd
	require.NoError(t, r.releaseRing())
}

func TestMemoryIsAligned(t *testing.T) {
	for _, n := range []int{1, 4096, 4097, 1 << 20} {
		b, free, err := system{}.mapMemory(n)
		require.NoError(t, err)
		assert.Zero(t, uintptr(unsafe.Pointer(&b[0]))%pageSize)
		assert.GreaterOrEqual(t, len(b), n)
		b[n-1] = 1
		require.NoError(t, free())
	}
}

func TestNodesThatAreNone(t *testing.T) {
	_, err := system{}.openNode(t.TempDir()+"/nothing", "")
	require.ErrorIs(t, err, unix.ENOENT)
	_, err = system{}.openNode(t.TempDir(), "")
	require.ErrorContains(t, err, "is not a device node")
	_, err = system{}.openNode("/dev/null", "237:0")
	require.ErrorContains(t, err, "/dev/null is device 1:3, though sysfs says 237:0")

	n, err := system{}.openNode("/dev/null", "1:3")
	require.NoError(t, err)
	_, err = n.namespaceID()
	require.ErrorIs(t, err, unix.ENOTTY)
	require.ErrorIs(t, n.resetController(), unix.ENOTTY)
	cmd := nvme.Identify(nvme.CNSController, 0, 0)
	w := encodeCommand(&cmd, 4096, 0)
	_, err = n.carryCommand(n, adminRequest, &w, make([]byte, 4096))
	require.ErrorIs(t, err, unix.ENOTTY)
	assert.Equal(t, encodeCommand(&cmd, 4096, 0), w, "the address does not stay behind")
	require.NoError(t, n.Close())
}
