package passthru

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

var _ interface {
	nvme.Conn
	nvme.Limiter
	nvme.Lasting
} = (*Conn)(nil)

func TestCommandsGoToTheirDevices(t *testing.T) {
	for _, noRing := range []bool{false, true} {
		f := plain(t)
		c, _ := connect(t, f, Options{NoRing: noRing})
		by := "ring"
		if noRing {
			by = "ioctl"
			assert.Equal(t, "ioctl", c.Carrier())
		} else {
			assert.Equal(t, "io_uring", c.Carrier())
		}
		ctx := t.Context()
		id := make([]byte, nvme.IdentifySize)
		identify := nvme.Identify(nvme.CNSController, 0, 0)
		_, err := c.Admin(ctx, &identify, id)
		require.NoError(t, err)
		var ctrl nvme.IdentifyController
		require.NoError(t, ctrl.Unmarshal(id))
		assert.Equal(t, "Millrace CSD", ctrl.Model)

		want := pattern(3*512, 1)
		write, read := nvme.Write(1, 100, 3, 512, true), nvme.Read(1, 100, 3, 512)
		_, err = c.IO(ctx, &write, want)
		require.NoError(t, err)
		got := make([]byte, 3*512+1)[1:] // begins at no multiple of 4 KiB
		_, err = c.IO(ctx, &read, got)
		require.NoError(t, err)
		assert.Equal(t, want, got)

		var paths, ways []string
		for _, s := range f.commands() {
			paths, ways = append(paths, s.path), append(ways, s.by)
		}
		assert.Equal(t, []string{"nvme3", "ng3n5", "ng3n5"}, paths)
		assert.Equal(t, []string{"ioctl", by, by}[1:], ways[1:])
		assert.Equal(t, map[string]string{"nvme3": "237:3", "ng3n5": "236:0"}, f.checked, "nodes are held against sysfs")
	}
}

func TestRingThatIsNoUse(t *testing.T) {
	f := plain(t)
	f.noRing = errors.New("not permitted")
	c, _ := connect(t, f, Options{})
	assert.Equal(t, "ioctl (io_uring: not permitted)", c.Carrier())

	f = plain(t)
	f.before = func(n int, s *sent) (nvme.Status, error, bool) { return 0, syscall.EOPNOTSUPP, s.by == "ring" }
	c, _ = connect(t, f, Options{})
	assert.Equal(t, "ioctl (io_uring: operation not supported)", c.Carrier())
	flush := nvme.Flush(1)
	_, err := c.IO(t.Context(), &flush, nil)
	assert.NoError(t, err)
}

func TestPositiveReturnIsAStatus(t *testing.T) {
	f := plain(t)
	c, _ := connect(t, f, Options{})
	past := nvme.Read(1, 2048, 1, 512)
	data := pattern(512, 3)
	cpl, err := c.IO(t.Context(), &past, data)
	require.ErrorIs(t, err, nvme.LBAOutOfRange)
	assert.Equal(t, pattern(512, 3), data, "a refused read leaves the buffer")
	got := cpl.Status()
	assert.True(t, got.DNR())
	assert.ErrorContains(t, err,
		"nvme3: I/O command 02h on namespace 1: nvme status: address out of range (0/80h, do not retry)")

	// Every positive number is one, success or not.
	for _, s := range []nvme.Status{1, 0x4001, 0x2281, 0x7fff, 0x371 + 1} {
		f.before = func(int, *sent) (nvme.Status, error, bool) { return s, nil, true }
		flush := nvme.Flush(1)
		cpl, err := c.IO(t.Context(), &flush, nil)
		var status nvme.Status
		require.ErrorAs(t, err, &status)
		assert.Equal(t, s, status)
		assert.Equal(t, s, cpl.Status())
	}
}

func TestResultHas64Bits(t *testing.T) {
	for _, noRing := range []bool{false, true} {
		f := &fake{ids: map[string]uint32{"ng3n7": 3}, result: 0x1122334455667788}
		c, _ := connect(t, f, Options{NoRing: noRing})
		execute := cs.ExecuteSet(0, 1, make([]byte, 16))
		cpl, err := c.IO(t.Context(), &execute.Command, execute.Data)
		require.NoError(t, err)
		assert.Equal(t, f.result, cpl.Result())
		reserve := cs.SLMReserve(cs.AnyAddress, 4096)
		cpl, err = c.Admin(t.Context(), &reserve, nil)
		require.NoError(t, err)
		assert.Equal(t, f.result, cpl.Result())
	}
}

func TestNamespacesOfComputation(t *testing.T) {
	f := &fake{ids: map[string]uint32{"ng3n5": 1, "ng3n6": 2, "ng3n7": 3}}
	c, _ := connect(t, f, Options{})
	ctx := t.Context()
	data := make([]byte, 8)
	read := cs.MemoryRead(16, 8)
	_, err := c.IO(ctx, &read, data)
	require.NoError(t, err)
	execute := cs.ExecuteSet(1, 2, data)
	_, err = c.IO(ctx, &execute.Command, data)
	require.NoError(t, err)
	sent := f.commands()
	assert.Equal(t, "ng3n6", sent[0].path)
	assert.Equal(t, "ng3n7", sent[1].path)

	missing := nvme.Flush(9)
	_, err = c.IO(ctx, &missing, nil)
	assert.ErrorIs(t, err, ErrNoNamespace)
}

func TestNamespaceThatAppearsLater(t *testing.T) {
	root := tree(t, computing)
	f := plain(t)
	c, _ := connect(t, f, Options{Sysfs: root})
	flush := nvme.Flush(4)
	_, err := c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, ErrNoNamespace)

	dir := filepath.Join(root, "class/nvme/nvme3")
	for name, content := range map[string]string{"ng3n9/dev": "236:9", "nvme3n9/nsid": "4", "nvme3n9/dev": "259:9"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	f.ids["ng3n9"] = 4
	_, err = c.IO(t.Context(), &flush, nil)
	assert.ErrorIs(t, err, nvme.InvalidNamespace, "it reached the drive, which has no such namespace")

	// It goes again, and its numbers are given to another device.
	f.before = func(int, *sent) (nvme.Status, error, bool) { return 0, syscall.ENODEV, true }
	_, err = c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, syscall.ENODEV)
	f.before = nil
	opened := len(f.opened)
	_, err = c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, nvme.InvalidNamespace)
	assert.Len(t, f.opened, opened+1, "it was opened again")
}

func TestNodeOfAnotherNamespaceIsRefused(t *testing.T) {
	f := plain(t)
	f.ids["ng3n5"] = 2
	c, _ := connect(t, f, Options{})
	flush := nvme.Flush(1)
	_, err := c.IO(t.Context(), &flush, nil)
	assert.ErrorContains(t, err, "ng3n5: it is namespace 2, though sysfs says 1")
}

func TestNamespaceWhoseNumberOnlyItsNodeKnows(t *testing.T) {
	files := merge(computing)
	for k := range files {
		if filepath.Base(k) == "nsid" {
			delete(files, k)
		}
	}
	f := plain(t)
	c, _ := connect(t, f, Options{Sysfs: tree(t, files)})
	read := nvme.Read(1, 0, 1, 512)
	_, err := c.IO(t.Context(), &read, make([]byte, 512))
	require.NoError(t, err)
	missing := nvme.Flush(9)
	_, err = c.IO(t.Context(), &missing, nil)
	assert.ErrorIs(t, err, ErrNoNamespace)
}

func TestBlockDeviceWhereThereIsNoGenericOne(t *testing.T) {
	f := plain(t)
	f.ids = map[string]uint32{"nvme10n1": 1}
	k := &clock{}
	c, err := Open("nvme10", Options{Sysfs: tree(t, old), kernel: f, sleep: k.sleep, now: k.now})
	require.NoError(t, err)
	defer c.Close()
	flush := nvme.Flush(1)
	_, err = c.IO(t.Context(), &flush, nil)
	require.NoError(t, err)
	last := f.commands()
	assert.Equal(t, "nvme10n1 ioctl 00h", last[len(last)-1].String(), "block devices take no commands by io_uring")
	assert.Equal(t, 127*4096, c.MaxTransfer(), "what 127 scattered pages hold")
}

func TestMaxTransfer(t *testing.T) {
	c, _ := connect(t, plain(t), Options{})
	assert.Equal(t, 1<<20, c.MaxTransfer())
	files := merge(computing)
	files["devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n6/queue/max_hw_sectors_kb"] = "130"
	c, _ = connect(t, plain(t), Options{Sysfs: tree(t, files)})
	assert.Equal(t, 32*4096, c.MaxTransfer(), "the least of any namespace, in whole pages")
}

func TestWhatIsNotSent(t *testing.T) {
	f := plain(t)
	c, _ := connect(t, f, Options{})
	both := nvme.New(0x83, 1)
	_, err := c.IO(t.Context(), &both, nil)
	assert.ErrorContains(t, err, "bidirectional")
	read := nvme.Read(1, 0, 1, 512)
	_, err = c.IO(t.Context(), &read, make([]byte, 511))
	assert.ErrorIs(t, err, nvme.InvalidSGLLength)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.IO(ctx, &read, make([]byte, 512))
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, f.commands())
}

func TestOpenRefusesByName(t *testing.T) {
	f := plain(t)
	root := tree(t, computing)
	for path, want := range map[string]string{
		"/dev/nvme3n5":    "is a namespace: name its controller",
		"/dev/ng3n5":      "is a namespace: name its controller",
		"/dev/sda":        "want one as /dev/nvme0",
		"":                "want one as /dev/nvme0",
		"/dev/nvme-fabri": "want one as /dev/nvme0",
	} {
		_, err := Open(path, Options{Sysfs: root, kernel: f})
		assert.ErrorContains(t, err, want, path)
	}
	_, err := Open("/dev/nvme9", Options{Sysfs: root, kernel: f})
	assert.ErrorIs(t, err, ErrNotFound)
	_, err = Open("/dev/nvme3", Options{Sysfs: root, kernel: f, Depth: MaxDepth + 1})
	assert.ErrorContains(t, err, "depth 1025")
	f.noOpen = map[string]error{"nvme3": &fs.PathError{Op: "open", Path: "/dev/nvme3", Err: syscall.EACCES}}
	_, err = Open("/dev/nvme3", Options{Sysfs: root, kernel: f})
	assert.ErrorIs(t, err, fs.ErrPermission)
	assert.ErrorContains(t, err, "wants root or CAP_SYS_ADMIN")
	assert.Zero(t, f.held)

	// A link, as in /dev/disk.
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nvme3"), nil, 0o644))
	require.NoError(t, os.Symlink("nvme3", filepath.Join(dir, "fast")))
	f.noOpen = nil
	c, err := Open(filepath.Join(dir, "fast"), Options{Sysfs: root, kernel: f})
	require.NoError(t, err)
	assert.Equal(t, "nvme3", c.Controller().Name)
	require.NoError(t, c.Close())
}

func TestClose(t *testing.T) {
	f := plain(t)
	hold, held := make(chan struct{}), make(chan struct{})
	f.before = func(n int, s *sent) (nvme.Status, error, bool) {
		if !s.admin {
			close(held)
			<-hold
		}
		return 0, nil, false
	}
	c, _ := connect(t, f, Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		flush := nvme.Flush(1)
		_, err := c.IO(context.Background(), &flush, nil)
		assert.NoError(t, err, "a command that runs is waited for")
	})
	<-held
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	flush := nvme.Flush(1)
	require.Eventually(t, func() bool {
		_, err := c.Admin(context.Background(), &flush, nil)
		return errors.Is(err, nvme.ErrClosed)
	}, time.Minute, time.Millisecond)
	select {
	case <-closed:
		t.Fatal("Close did not wait")
	default:
	}
	close(hold)
	require.NoError(t, <-closed)
	wg.Wait()
	assert.NoError(t, c.Close(), "twice")
}

func TestAdminDoesNotWaitBehindIO(t *testing.T) {
	f := plain(t)
	hold := make(chan struct{})
	started := make(chan struct{}, 8)
	f.before = func(n int, s *sent) (nvme.Status, error, bool) {
		if !s.admin {
			started <- struct{}{}
			<-hold
		}
		return 0, nil, false
	}
	c, _ := connect(t, f, Options{Depth: 2})
	var wg sync.WaitGroup
	flush := nvme.Flush(1)
	for range 2 {
		wg.Go(func() {
			_, err := c.IO(context.Background(), &flush, nil)
			assert.NoError(t, err)
		})
	}
	<-started
	<-started
	keep := nvme.KeepAlive()
	_, err := c.Admin(t.Context(), &keep, nil)
	assert.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = c.IO(ctx, &flush, nil)
	assert.ErrorIs(t, err, context.DeadlineExceeded, "a third waits for room")
	close(hold)
	wg.Wait()
}

func TestReset(t *testing.T) {
	f := plain(t)
	o := Options{Sysfs: tree(t, computing), kernel: f}
	require.NoError(t, Reset("/dev/nvme3", o))
	assert.Equal(t, 1, f.resets)
	f.noReset = syscall.EACCES
	assert.ErrorContains(t, Reset("/dev/nvme3", o), "reset /dev/nvme3: permission denied: NVMe passthrough wants root")
	assert.ErrorIs(t, Reset("/dev/nvme7", o), ErrNotFound)
	assert.Zero(t, f.held)
}

func TestManyAtOnce(t *testing.T) {
	f := plain(t)
	c, _ := connect(t, f, Options{Depth: 7})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				want := pattern(1024, byte(16*i+j))
				lba := uint64(2 * (20*i + j))
				write, read := nvme.Write(1, lba, 2, 512, false), nvme.Read(1, lba, 2, 512)
				_, err := c.IO(t.Context(), &write, want)
				assert.NoError(t, err)
				got := make([]byte, 1024)
				_, err = c.IO(t.Context(), &read, got)
				assert.NoError(t, err)
				assert.Equal(t, want, got)
			}
		})
	}
	wg.Wait()
}
