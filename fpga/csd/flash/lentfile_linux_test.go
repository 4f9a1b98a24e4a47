package flash

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/shared"
)

// RequireLeases ends a test on a file system that grants no lease: it fails with CI=true, and is skipped otherwise.
func RequireLeases(t *testing.T) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "probe"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	if newLentFile(f, true, new(atomic.Uint64)) == nil {
		shared.Missing(t, "the file system of temporary files grants no lease that keeps every writer away: set TMPDIR to a "+
			"folder on a disk")
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		shared.Missing(t, "no lease on a file: %v: set TMPDIR to a folder on a disk", err)
	}
}

// mappedKiB returns how much of a file's mappings the memory of the process has.
func mappedKiB(t *testing.T, path string) (kib int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	ours := false
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(fields[0], ":") {
			ours = strings.HasSuffix(strings.TrimSpace(line), path)
		} else if ours && fields[0] == "Rss:" {
			n, err := strconv.Atoi(fields[1])
			require.NoError(t, err)
			kib += n
		}
	}
	return kib
}

// TestLentPiecesOfALargeFile lends all of a file that is larger than what stays mapped, in order and again from its
// beginning.
func TestLentPiecesOfALargeFile(t *testing.T) {
	RequireLeases(t)
	path := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	const size, piece = 2*residentBytes + touchedBytes + 4096, 3 << 20
	require.NoError(t, f.Truncate(size))
	for at := int64(0); at < size; at += touchedBytes {
		_, err = f.WriteAt([]byte{byte(1 + at/touchedBytes)}, at)
		require.NoError(t, err)
	}
	l := newLentFile(f, true, new(atomic.Uint64))
	l.recall = func() {}
	defer func() { require.NoError(t, l.close()) }()
	most := 0
	for range 2 {
		for off := int64(0); off < size; off += piece {
			b, _, ok := l.lend(off, min(piece, size-off))
			require.True(t, ok)
			require.Equal(t, min(piece, size-off), int64(len(b)))
			for i := range b {
				if at := off + int64(i); at%touchedBytes == 0 {
					require.Equal(t, byte(1+at/touchedBytes), b[i])
				} else if i%4096 == 0 {
					require.Zero(t, b[i])
				}
			}
			most = max(most, mappedKiB(t, path))
		}
	}
	require.LessOrEqual(t, most, (residentBytes+3*touchedBytes)>>10)
	require.Greater(t, most, residentBytes>>11)
}

// TestPagesOfLentBytes enters the pages of a file whose pages are cached, whose pages are not, and which was cut, so
// that an access to its mapping is a fault.
func TestPagesOfLentBytes(t *testing.T) {
	const size = 3*touchedBytes + 4096
	f, err := os.Create(filepath.Join(t.TempDir(), "flash"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	_, err = f.Write(bytes.Repeat([]byte{7}, size))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	l := &lentFile{f: f}
	require.True(t, l.mapFile())
	defer func() { require.NoError(t, l.unmap()) }()
	if !l.isCached(0, size) {
		shared.Missing(t, "the kernel does not say what the page cache holds: this test needs Linux 6.5")
	}
	require.True(t, faultPagesIn(l.bytes))
	require.GreaterOrEqual(t, mappedKiB(t, f.Name()), size>>10/16, "an access enters one page at least")

	require.NoError(t, unix.Madvise(l.bytes, unix.MADV_DONTNEED))
	require.NoError(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	if l.isCached(0, size) {
		shared.Missing(t, "the file system of temporary files keeps its pages: set TMPDIR to a folder on a disk")
	}
	require.NoError(t, l.populate(l.bytes, 0))
	require.True(t, l.isCached(0, size), "the medium was read")
	require.Equal(t, size>>10, mappedKiB(t, f.Name()))

	require.NoError(t, f.Truncate(touchedBytes))
	require.False(t, l.isCached(0, size))
	require.True(t, faultPagesIn(l.bytes[:touchedBytes]))
	require.False(t, faultPagesIn(l.bytes))
	require.Error(t, l.populate(l.bytes, 0))
}
