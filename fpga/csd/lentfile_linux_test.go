package csd

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// requireLeases skips a test on a file system that grants no lease.
func requireLeases(t *testing.T) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "probe"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	if newLentFile(f, true, new(atomic.Uint64)) == nil {
		t.Skip("the file system of temporary files grants no lease that keeps every writer away")
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no lease on a file: %v", err)
	}
}

// blockCopy copies blocks into memory that the association holds.
func blockCopy(t *testing.T, c nvme.Conn, lba uint64, n int, to uint64) {
	t.Helper()
	m := cs.MemoryCopy{Len: uint64(n) * 512, Dest: to, Sources: 1, Format: cs.CopyFormatBlocks}
	cmd := m.Command()
	_, err := c.IO(t.Context(), &cmd, cs.BlockSource{NSID: 1, Blocks: uint32(n), SLBA: lba}.AppendTo(nil))
	require.NoError(t, err)
}

func fetched(t *testing.T, c nvme.Conn, at uint64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	cmd := cs.Fetch(at, uint32(n))
	_, err := c.IO(t.Context(), &cmd, b)
	require.NoError(t, err)
	return b
}

func reserved(t *testing.T, c nvme.Conn, n uint64) uint64 {
	t.Helper()
	cmd := cs.SLMReserve(cs.AnyAddress, n)
	cpl, err := c.Admin(t.Context(), &cmd, nil)
	require.NoError(t, err)
	return cpl.Result()
}

func vendorLog(t *testing.T, c nvme.Conn) *cs.Log {
	t.Helper()
	b := make([]byte, 64<<10)
	cmd := nvme.GetLog(nvme.LogVendor, 0, 0, uint32(len(b)))
	_, err := c.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	l := new(cs.Log)
	require.NoError(t, l.Unmarshal(b))
	return l
}

// TestABlockIsLentUntilSomebodyOpensTheFile lends blocks of flash that lies in a file or in files, until another
// process could change them. Memory holds the blocks as they were copied, whatever becomes of the file.
func TestABlockIsLentUntilSomebodyOpensTheFile(t *testing.T) {
	requireLeases(t)
	content := bytes.Repeat([]byte("rows that train a model "), 4096)
	content = content[:len(content)/512*512]
	blocks := len(content) / 512
	drives := map[string]func(t *testing.T, path string) *Drive{
		"file": func(t *testing.T, path string) *Drive {
			return openDrive(t, Options{Path: path, Create: true, Size: int64(len(content))})
		},
		"files": func(t *testing.T, path string) *Drive {
			require.NoError(t, os.WriteFile(path, content, 0o600))
			flash, _, err := Files([]string{path}, 512, nil)
			require.NoError(t, err)
			return openDrive(t, Options{Flash: flash, LBA: 512})
		},
	}
	others := map[string]func(t *testing.T, path string){
		"a writer": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, len(content)), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
		"one who cuts it": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 100)) },
	}
	for kind, open := range drives {
		for who, change := range others {
			t.Run(kind+", "+who, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "flash")
				d := open(t, path)
				c := connect(t, d)
				if kind == "file" {
					write(t, c, 0, content, false)
				}
				at := reserved(t, c, 1<<20)
				blockCopy(t, c, 0, blocks, at)
				l := vendorLog(t, c)
				assert.EqualValues(t, len(content), l.FlashLent.Bytes)
				assert.Zero(t, l.FlashToDRAM.Bytes)

				change(t, path)
				assert.EqualValues(t, len(content), vendorLog(t, c).FlashToDRAM.Bytes, "the copy was made before")
				require.True(t, bytes.Equal(content, fetched(t, c, at, len(content))))
			})
		}
	}
}

// TestMoreFilesThanAreLent copies blocks of more files than may be lent at a time, and than may be open: those that
// were lent longest ago are taken back, and blocks that are not lent are copied. Memory holds the blocks as they were,
// whatever becomes of the files.
func TestMoreFilesThanAreLent(t *testing.T) {
	requireLeases(t)
	const count, budget = 40, 8
	dir := t.TempDir()
	var paths []string
	var content []byte
	for i := range count {
		block := bytes.Repeat([]byte{byte(i + 1)}, 512)
		content = append(content, block...)
		paths = append(paths, filepath.Join(dir, strconv.Itoa(i)))
		require.NoError(t, os.WriteFile(paths[i], block, 0o600))
	}
	flash, _, err := Files(paths, 512, openfiles.New(budget))
	require.NoError(t, err)
	c := connect(t, openDrive(t, Options{Flash: flash, LBA: 512}))
	at := reserved(t, c, 1<<20)
	for range 3 {
		for i := range count {
			blockCopy(t, c, uint64(i), 1, at+uint64(i)*512)
		}
		require.Equal(t, content, fetched(t, c, at, len(content)))
		require.LessOrEqual(t, descriptorsUnder(t, dir), budget)
	}
	for _, i := range []uint64{0, count - 1, count / 2} {
		before, deadline := vendorLog(t, c).FlashLent.Bytes, time.Now().Add(time.Minute)
		for vendorLog(t, c).FlashLent.Bytes == before {
			require.True(t, time.Now().Before(deadline), "no place came free for file %d", i)
			blockCopy(t, c, i, 1, at+i*512)
		}
	}
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.Write(make([]byte, 512))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.Equal(t, content, fetched(t, c, at, len(content)))
}

// descriptorsUnder counts the descriptors of this process that lead to files of a folder.
func descriptorsUnder(t *testing.T, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && filepath.Dir(target) == dir {
			n++
		}
	}
	return n
}

// TestALeaseIsAskedForAgain reads flash while somebody else has its file open, and after.
func TestALeaseIsAskedForAgain(t *testing.T) {
	requireLeases(t)
	path := filepath.Join(t.TempDir(), "flash")
	c := connect(t, openDrive(t, Options{Path: path, Create: true, Size: 1 << 20}))
	content := bytes.Repeat([]byte{7}, 4096)
	write(t, c, 8, content, false)
	at := reserved(t, c, 64<<10)
	reader, err := os.Open(path) // a reader could become a writer without a word
	require.NoError(t, err)
	blockCopy(t, c, 8, 8, at)
	l := vendorLog(t, c)
	assert.Zero(t, l.FlashLent.Bytes)
	assert.EqualValues(t, 4096, l.FlashToDRAM.Bytes)
	require.NoError(t, reader.Close())
	require.Eventually(t, func() bool {
		blockCopy(t, c, 8, 8, at)
		return vendorLog(t, c).FlashLent.Bytes > 0
	}, time.Minute, 100*time.Millisecond)
	require.Equal(t, content, fetched(t, c, at, 4096))

	// The drive's own writes need no other lease.
	write(t, c, 8, make([]byte, 4096), true)
	require.Equal(t, content, fetched(t, c, at, 4096), "memory holds what was copied")
	blockCopy(t, c, 8, 8, at)
	require.Equal(t, make([]byte, 4096), fetched(t, c, at, 4096))
}

// lentMapping is flash that lends another file's bytes, which nobody keeps from being cut.
type lentMapping struct {
	Flash
	bytes []byte
}

func (f *lentMapping) Lend(off, n int64) ([]byte, uint64, bool) { return f.bytes[off : off+n], 1, true }
func (f *lentMapping) Lasts(uint64) bool                        { return true }
func (f *lentMapping) OnRecall(func())                          {}

// TestAMediumThatFailsUnderAnExecution reads lent bytes that are not there: the command fails, and the drive goes on.
func TestAMediumThatFailsUnderAnExecution(t *testing.T) {
	_, m := stockImage(t)
	v := m.Spec.SelfTest[0]
	path := filepath.Join(t.TempDir(), "input")
	const size = 1 << 20
	require.NoError(t, os.WriteFile(path, append(bytes.Clone(v.Input), make([]byte, size-len(v.Input))...), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	mapped, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(mapped)) }()
	memory, err := newMemoryFlash(size)
	require.NoError(t, err)
	d := openDrive(t, Options{Flash: &lentMapping{memory, mapped}, LBA: 512})
	c := connect(t, d)

	at := reserved(t, c, 1<<20)
	sizes := []int{len(v.Program), len(v.Input), int(v.Dict), int(v.Scratch), len(v.Output), 64 << 10}
	var ranges []cs.Range
	for next, i := at, 0; i < len(sizes); i++ {
		n := uint64(sizes[i]+4096) &^ 4095
		ranges = append(ranges, cs.Range{Addr: next, Len: n})
		next += n
	}
	cmd := cs.Store(ranges[0].Addr, uint32(len(v.Program)))
	_, err = c.IO(t.Context(), &cmd, bytes.Clone(v.Program))
	require.NoError(t, err)
	execute := func() error {
		p := cs.Preprocess{Ranges: ranges, Args: v.Args, Copies: []cs.Copy{
			{NSID: 1, NLB: uint32(ranges[1].Len / 512), Dest: ranges[1].Addr},
		}}
		b, err := p.Marshal()
		require.NoError(t, err)
		cmd := cs.PreprocessCommand(uint32(len(b)))
		_, err = c.IO(t.Context(), &cmd, b)
		return err
	}
	require.NoError(t, execute())
	require.Equal(t, v.Output, fetched(t, c, ranges[4].Addr, len(v.Output)))
	assert.Zero(t, vendorLog(t, c).FlashToDRAM.Bytes)
	require.NoError(t, os.Truncate(path, 0))
	require.ErrorIs(t, execute(), nvme.UnrecoveredReadError)
	require.NoError(t, os.Truncate(path, size))
	require.ErrorIs(t, execute(), cs.StatusProgramFault, "zeros are no page")
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
	requireLeases(t)
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
