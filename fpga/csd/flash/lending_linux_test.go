package flash_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/internal/openfiles"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func write(t *testing.T, c nvme.Conn, lba uint64, p []byte, fua bool) {
	t.Helper()
	cmd := nvme.Write(1, lba, uint32(len(p)/512), 512, fua)
	_, err := c.IO(t.Context(), &cmd, p)
	require.NoError(t, err)
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
	flash.RequireLeases(t)
	content := bytes.Repeat([]byte("rows that train a model "), 4096)
	content = content[:len(content)/512*512]
	blocks := len(content) / 512
	drives := map[string]func(t *testing.T, path string) *csd.Drive{
		"file": func(t *testing.T, path string) *csd.Drive {
			return openDrive(t, csd.Options{Path: path, Create: true, Size: int64(len(content))})
		},
		"files": func(t *testing.T, path string) *csd.Drive {
			require.NoError(t, os.WriteFile(path, content, 0o600))
			files, _, err := flash.Files([]string{path}, 512, nil)
			require.NoError(t, err)
			return openDrive(t, csd.Options{Flash: files, LBA: 512})
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
	flash.RequireLeases(t)
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
	files, _, err := flash.Files(paths, 512, openfiles.New(budget))
	require.NoError(t, err)
	c := connect(t, openDrive(t, csd.Options{Flash: files, LBA: 512}))
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
	flash.RequireLeases(t)
	path := filepath.Join(t.TempDir(), "flash")
	c := connect(t, openDrive(t, csd.Options{Path: path, Create: true, Size: 1 << 20}))
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
