package volume

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// systemTar finds the system's tar. CI must have one.
func systemTar(t *testing.T) string {
	path, err := exec.LookPath("tar")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("no tar on this system")
	}
	if err != nil {
		t.Skip("no tar on this system")
	}
	return path
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
	return string(out)
}

// fileDevice is a plain file as a drive.
type fileDevice struct {
	*os.File
	bs   int
	size int64
}

func (d fileDevice) BlockSize() int                       { return d.bs }
func (d fileDevice) Size() int64                          { return d.size }
func (d fileDevice) ReaderAt(context.Context) io.ReaderAt { return d.File }
func (d fileDevice) Flush(context.Context) error          { return d.Sync() }
func (d fileDevice) WriteBlocks(_ context.Context, p []byte, lba uint64, _ bool) error {
	_, err := d.WriteAt(p, int64(lba)*int64(d.bs))
	return err
}

func openFile(t *testing.T, path string, bs int) *Volume {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	require.NoError(t, f.Truncate(8<<20))
	return open(t, fileDevice{f, bs, 8 << 20})
}

func TestSystemTarBothWays(t *testing.T) {
	tarPath := systemTar(t)
	long := strings.Repeat("very-long-directory-name/", 8) + "part.parquet"
	files := map[string][]byte{"a.parquet": noise(1, 12345), "dir/b.parquet": noise(2, 4096), "empty": {},
		long: noise(3, 777)}
	bothBlockSizes(t, func(t *testing.T, bs int) {
		for _, format := range []string{"ustar", "pax", "gnu", "oldgnu"} {
			t.Run(format, func(t *testing.T) {
				dir := t.TempDir()
				src := filepath.Join(dir, "src")
				for name, data := range files {
					if format == "ustar" && name == long {
						continue
					}
					require.NoError(t, os.MkdirAll(filepath.Join(src, filepath.Dir(name)), 0o755))
					require.NoError(t, os.WriteFile(filepath.Join(src, name), data, 0o644))
				}
				flash := filepath.Join(dir, "flash")
				run(t, src, tarPath, "-cf", flash, "--format="+format, ".")

				// From tar's archive to Millrace's: the names keep tar's "./".
				v := openFile(t, flash, bs)
				got := contents(t, v)
				for name := range got {
					assert.Equal(t, files[strings.TrimPrefix(name, "./")], got[name], name)
				}
				require.GreaterOrEqual(t, len(got), 3)

				// Ours to theirs, in the same archive.
				put(t, v, "ours/c.parquet", noise(4, 70000))
				put(t, v, "ours/"+long, noise(5, 10))
				out := filepath.Join(dir, "out")
				require.NoError(t, os.Mkdir(out, 0o755))
				assert.NotContains(t, run(t, out, tarPath, "-xf", flash), "tar:")
				for name, want := range map[string][]byte{"ours/c.parquet": noise(4, 70000), "ours/" +
					long: noise(5, 10), "a.parquet": files["a.parquet"]} {
					b, err := os.ReadFile(filepath.Join(out, name))
					require.NoError(t, err)
					assert.Equal(t, want, b, name)
				}
			})
		}
	})
}

func TestSystemTarReadsTheFlashAfterEveryCrash(t *testing.T) {
	tarPath := systemTar(t)
	bothBlockSizes(t, func(t *testing.T, bs int) {
		base := newFake(bs, 64<<10)
		put(t, open(t, base), "old", noise(1, 1400))
		base = base.clone()
		for budget := 0; ; budget++ {
			dev := base.clone()
			dev.budget = budget
			err := open(t, dev).Put(t.Context(), "new", 9000, bytes.NewReader(noise(2, 9000)))
			dir := t.TempDir()
			flash := filepath.Join(dir, "flash")
			require.NoError(t, os.WriteFile(flash, dev.crash(func(int) bool { return true }).media, 0o644))
			run(t, dir, tarPath, "-xf", flash)
			old, readErr := os.ReadFile(filepath.Join(dir, "old"))
			require.NoError(t, readErr)
			assert.Equal(t, noise(1, 1400), old)
			data, readErr := os.ReadFile(filepath.Join(dir, "new"))
			if err == nil {
				require.NoError(t, readErr)
				assert.Equal(t, noise(2, 9000), data)
				return
			}
			require.ErrorIs(t, readErr, os.ErrNotExist, "after %d writes", budget)
		}
	})
}
