package passthru

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// away answers the first n I/O and ioctl commands with a failure.
func away(n int, status nvme.Status, err error) func(int, *sent) (nvme.Status, error, bool) {
	return func(_ int, s *sent) (nvme.Status, error, bool) {
		if s.by == "ring" && s.admin || n == 0 {
			return 0, nil, false
		}
		n--
		return status, err, true
	}
}

func TestCommandsOutliveAReconnection(t *testing.T) {
	for name, fail := range map[string]func(int, *sent) (nvme.Status, error, bool){
		"no path":               away(12, 0, syscall.EAGAIN),
		"not ready":             away(12, hostPathError, nil),
		"not ready, told never": away(12, hostPathError|nvme.StatusDNR, nil),
		"cancelled":             away(1, 0, syscall.EINTR),
		"aborted by the driver": away(1, hostAbortedCommand, nil),
		"memory not found":      away(1, 0, syscall.EFAULT),
	} {
		f := plain(t)
		f.before = fail
		c, k := connect(t, f, Options{})
		data := pattern(512, 9)
		write := nvme.Write(1, 5, 1, 512, false)
		_, err := c.IO(t.Context(), &write, data)
		require.NoError(t, err, name)
		for i, s := range f.commands() {
			assert.Equal(t, data, s.data, "%s: try %d carries the data", name, i)
		}
		for i, p := range k.pauses {
			assert.Equal(t, min(firstPause<<i, mostPause), p, name)
		}
	}
}

func TestPatienceEnds(t *testing.T) {
	f := plain(t)
	f.before = away(-1, 0, syscall.EAGAIN)
	c, k := connect(t, f, Options{Reconnect: 3 * time.Second})
	start := k.now()
	flush := nvme.Flush(1)
	_, err := c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, syscall.EAGAIN)
	assert.ErrorContains(t, err, "the controller did not come back within 3s")
	assert.Equal(t, 3*time.Second, k.now().Sub(start))

	f = plain(t)
	f.before = away(-1, 0, syscall.EAGAIN)
	c, k = connect(t, f, Options{Reconnect: -1})
	_, err = c.IO(t.Context(), &flush, nil)
	require.ErrorIs(t, err, syscall.EAGAIN)
	assert.Empty(t, k.pauses)

	f = plain(t)
	c, _ = connect(t, f, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	f.before = func(n int, s *sent) (nvme.Status, error, bool) { cancel(); return 0, syscall.EAGAIN, true }
	_, err = c.IO(ctx, &flush, nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, syscall.EAGAIN)
}

func TestCutOffCommandsThatMustNotBeRepeated(t *testing.T) {
	data, root := make([]byte, 64), tree(t, computing)
	for name, x := range map[string]struct {
		admin bool
		cmd   nvme.Command
		again bool
	}{
		"preprocess":     {false, cs.PreprocessCommand(64), false},
		"store":          {false, cs.Store(0, 64), false},
		"fetch":          {false, cs.Fetch(0, 64), false},
		"memory read":    {false, cs.MemoryRead(0, 64), false}, // has the opcode of a Read
		"execute":        {false, cs.ExecuteSet(0, 1, data).Command, false},
		"flush":          {false, nvme.Flush(1), true},
		"write zeroes":   {false, nvme.WriteZeroes(1, 0, 1, false), true},
		"reserve":        {true, cs.SLMReserve(cs.AnyAddress, 4096), false},
		"set features":   {true, nvme.SetFeature(nvme.FeatureWriteCache, 1), false},
		"get features":   {true, nvme.GetFeature(nvme.FeatureWriteCache), true},
		"keep alive":     {true, nvme.KeepAlive(), true},
		"image download": {true, cs.ImageDownload(cs.Chunk{Len: 64}), false},
	} {
		for _, fail := range []func(int, *sent) (nvme.Status, error, bool){away(1, 0, syscall.EINTR),
			away(1, hostAbortedCommand, nil)} {
			f := &fake{ids: map[string]uint32{"ng3n5": 1, "ng3n6": 2, "ng3n7": 3}, before: fail}
			c, _ := connect(t, f, Options{Sysfs: root})
			run := c.IO
			if x.admin {
				run = c.Admin
			}
			cmd := x.cmd
			_, err := run(t.Context(), &cmd, data[:cmd.DataLength()])
			if x.again {
				assert.NoError(t, err, name)
				assert.Len(t, f.commands(), 2, name)
				continue
			}
			assert.ErrorIs(t, err, ErrReset, name)
			assert.Len(t, f.commands(), 1, name)
		}
		// Any command that the drive never saw is sent again.
		f := &fake{ids: map[string]uint32{"ng3n5": 1, "ng3n6": 2, "ng3n7": 3}, before: away(2, hostPathError, nil)}
		c, _ := connect(t, f, Options{Sysfs: root})
		run := c.IO
		if x.admin {
			run = c.Admin
		}
		cmd := x.cmd
		_, err := run(t.Context(), &cmd, data[:cmd.DataLength()])
		assert.NoError(t, err, name)
	}
}

func TestErrnosAreExplained(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "wants root or CAP_SYS_ADMIN", syscall.EINVAL: "its log (dmesg) says why",
		syscall.ENOTTY: "the kernel is too old",
		syscall.EIO:    "input/output error",
	} {
		f := plain(t)
		f.before = away(1, 0, errno)
		c, k := connect(t, f, Options{})
		flush := nvme.Flush(1)
		_, err := c.IO(t.Context(), &flush, nil)
		assert.ErrorContains(t, err, want)
		assert.True(t, errors.Is(err, errno))
		assert.Empty(t, k.pauses, "no use in trying again")
	}
}

func TestSleepEndsWithTheContext(t *testing.T) {
	require.NoError(t, sleepContext(t.Context(), time.Microsecond))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, sleepContext(ctx, time.Hour), context.Canceled)
}
