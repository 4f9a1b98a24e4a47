package extents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/firstx"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// row is a row of the files.
type row struct {
	Label int32   `parquet:"label"`
	Int0  *int32  `parquet:"int_0,optional"`
	Cat0  int64   `parquet:"cat_0,dict"`
	List0 []int64 `parquet:"list_0,list"`
}

// writeParquet writes n rows.
func writeParquet(t *testing.T, path string, n int, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	rows := make([]row, n)
	for i := range rows {
		v := int32(rng.IntN(1000))
		if rng.IntN(3) > 0 {
			rows[i].Int0 = &v
		}
		rows[i].Label, rows[i].Cat0 = int32(rng.IntN(2)), rng.Int64N(300)
		rows[i].List0 = make([]int64, rng.IntN(5))
		for j := range rows[i].List0 {
			rows[i].List0[j] = rng.Int64()
		}
	}
	f, err := os.Create(path)
	require.NoError(t, err)
	w := pq.NewGenericWriter[row](f, pq.MaxRowsPerRowGroup(1100), pq.PageBufferSize(8<<10))
	_, err = w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// pipeline is a program over row, and its mini-batches.
func pipeline() (*program.Program, *tensor.Schema) {
	return &program.Program{
			Source: program.Parquet,
			Columns: []program.Column{
				{Name: "cat_0", Kind: program.Int64,
					Sinks: []program.Sink{{To: program.ToSparse, Index: 0,
						Ops: []program.Op{sigridhash.Op{Max: 1000}}}}},
				{Name: "list_0", Kind: program.Int64, List: true,
					Sinks: []program.Sink{{To: program.ToSparse, Index: 1,
						Ops: []program.Op{firstx.Op{N: 3}, sigridhash.Op{Salt: 3, Max: 1 << 20}}}}},
				{Name: "int_0", Kind: program.Int64,
					Sinks: []program.Sink{{To: program.ToDense,
						Ops: []program.Op{fillnull.Op{}, convert.Op{To: program.Float32},
							log.Op{Add: 1}}}}},
				{Name: "label", Kind: program.Int64,
					Sinks: []program.Sink{{To: program.ToLabel,
						Ops: []program.Op{convert.Op{To: program.Float32}}}}},
			},
			Output: program.Output{Label: true, Dense: 1, Keys: 2},
		}, &tensor.Schema{Label: true, Dense: []string{"int_0"}, IDs: tensor.Int64,
			Keys: []tensor.Key{{Name: "cat_0", List: true}, {Name: "list_0", List: true}}}
}

// preprocess runs a whole partition and returns copies of its mini-batches.
func preprocess(t *testing.T, p processor.Processor, part *partition.Partition) []*tensor.MiniBatch {
	t.Helper()
	s, err := p.Open(t.Context(), processor.Run{Partition: part, Rows: part.Rows, Batch: 999})
	require.NoError(t, err)
	defer s.Close()
	var out []*tensor.MiniBatch
	for {
		m, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, m.Clone())
		m.Release()
	}
}

// openPartition opens a file as a partition that lies in extents of a drive.
func openPartition(t *testing.T, path string, extents []partition.Extent) *partition.Partition {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	info, err := f.Stat()
	require.NoError(t, err)
	p, err := partition.Open(t.Context(), filepath.Base(path), f, info.Size(), program.Parquet,
		partition.Options{Extents: extents})
	require.NoError(t, err)
	return p
}

// need skips where something of the machine is missing, or fails where MILLRACE_LOOP says that it must be there.
func need(t *testing.T, err error, what string) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("MILLRACE_LOOP") != "" {
		t.Fatalf("%s: %v", what, err)
	}
	t.Skipf("%s: %v", what, err)
}

// mounted makes an ext4 image that holds the files of dir, at the path of a file: drive of its size, and mounts it.
func mounted(t *testing.T, dir string, block int) (image, mount string) {
	t.Helper()
	if os.Getuid() != 0 {
		need(t, errors.New("not root"), "mount an image")
	}
	mkfs, err := exec.LookPath("mkfs.ext4")
	need(t, err, "make a file system")
	image, mount = filepath.Join(t.TempDir(), "flash"), t.TempDir()
	dev, err := sdk.Create(t.Context(), "file:"+image+"?size=48MiB&slm=16MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	out, err := exec.Command(mkfs, "-q", "-F", "-b", fmt.Sprint(block), "-d", dir, image).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command("mount", "-o", "loop", image, mount).CombinedOutput()
	if err != nil {
		need(t, fmt.Errorf("%w: %s", err, out), "mount an image")
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", mount).CombinedOutput()
		assert.NoError(t, err, string(out))
	})
	return image, mount
}

// piece is how much of the file that fragment writes may lie together.
const piece = 8 << 10

// fragment writes a copy of a file into the mount, of which no two pieces lie together: it writes a block that is too
// many behind each piece, and has the file system take those blocks out of the file. Where ext4 puts a file does not
// matter; that two files written by turns get in each other's way was not certain, since ext4 keeps room behind each.
func fragment(t *testing.T, from, mount, name string) string {
	t.Helper()
	const between = 4 << 10 // a block at least, whatever a block is
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	path := filepath.Join(mount, name)
	f, err := os.Create(path)
	require.NoError(t, err)
	var padded []byte
	for i := 0; i < len(b); i += piece {
		if i > 0 {
			padded = append(padded, bytes.Repeat([]byte{0xee}, between)...)
		}
		padded = append(padded, b[i:min(i+piece, len(b))]...)
	}
	_, err = f.Write(padded)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	for at := int64(piece); at < int64(len(b)); at += piece {
		require.NoError(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_COLLAPSE_RANGE, at, between))
	}
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(b, got), "the copy is not the file")
	return path
}

// TestLoopPreSto is PreSto's flow without a guest: partitions are files on ext4, their extents come from FIEMAP, and a
// drive whose flash is the image preprocesses them by block address. The tensors are those of the files themselves.
func TestLoopPreSto(t *testing.T) {
	dir := t.TempDir()
	prog, schema := pipeline()
	reference, err := cpu.NewReference(prog, schema)
	require.NoError(t, err)
	defer reference.Close()
	truth := map[string][]*tensor.MiniBatch{}
	for i := range 2 {
		path := filepath.Join(dir, fmt.Sprintf("part-%d.parquet", i))
		writeParquet(t, path, 2500+i, uint64(i))
		truth[path] = preprocess(t, reference, openPartition(t, path, nil))
	}
	for _, block := range []int{1024, 4096} {
		image, mount := mounted(t, dir, block)
		pieces := fragment(t, filepath.Join(dir, "part-0.parquet"), mount, "pieces.parquet")
		for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
			dev, err := sdk.Open(context.Background(), "file:"+image+"?slm=16MiB&commands="+string(set),
				sdk.DeviceOptions{})
			require.NoError(t, err)
			p, err := sdk.NewProcessor(t.Context(), dev, prog, schema, processor.Options{})
			require.NoError(t, err)
			for _, path := range []string{filepath.Join(mount, "part-0.parquet"),
				filepath.Join(mount, "part-1.parquet"), pieces} {
				m, err := Find(path, Options{Loop: true})
				require.NoError(t, err)
				assert.Equal(t, image, m.Disk.Name)
				if path == pieces {
					info, err := os.Stat(path)
					require.NoError(t, err)
					require.Greater(t, info.Size(), int64(5*piece), "the file is large enough to lie in many pieces")
					assert.GreaterOrEqual(t, len(m.Extents), int((info.Size()+piece-1)/piece))
				}
				origin := filepath.Join(dir, filepath.Base(path))
				if path == pieces {
					origin = filepath.Join(dir, "part-0.parquet")
				}
				want := truth[origin]
				got := preprocess(t, p, openPartition(t, origin, m.Extents))
				require.NoError(t, m.Check())
				require.Len(t, got, len(want))
				for i := range want {
					require.Empty(t, tensor.Diff(want[i], got[i]), "%s, %s, mini-batch %d", path, set, i)
				}
			}
			require.NoError(t, p.Close())
			require.NoError(t, dev.Close())
		}
	}
}

// TestLoopRefusals makes the files whose bytes cannot be located with certainty: each must be refused.
func TestLoopRefusals(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), make([]byte, 10000), 0o644))
	_, mount := mounted(t, dir, 4096)
	loop := Options{Loop: true}
	data := []byte("some bytes")

	path := filepath.Join(mount, "sparse")
	f, err := os.Create(path)
	require.NoError(t, err)
	_, err = f.WriteAt(data, 1<<20)
	require.NoError(t, err)
	_, err = Find(path, loop)
	assert.ErrorIs(t, err, ErrHole)

	require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, 1<<20))
	_, err = Find(path, loop)
	var e *ExtentError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "it is reserved and was never written", e.Why)
	require.NoError(t, f.Close())

	// Bytes that only the page cache has are written back by the question itself.
	path = filepath.Join(mount, "fresh")
	require.NoError(t, os.WriteFile(path, make([]byte, 100000), 0o644))
	m, err := Find(path, loop)
	require.NoError(t, err)
	assert.NotEmpty(t, m.Extents)
	require.NoError(t, m.Check())

	// A file that is written in place, lengthened, replaced or removed: bytes that were read in between do not count.
	for _, change := range []func() error{
		func() error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(data, 5)
			return errors.Join(err, f.Close())
		},
		func() error { return os.Truncate(path, 200000) },
		func() error {
			return errors.Join(os.WriteFile(path+".new", make([]byte, 100000), 0o644), os.Rename(path+".new", path))
		},
		func() error { return os.Remove(path) },
	} {
		require.NoError(t, os.WriteFile(path, make([]byte, 100000), 0o644))
		m, err = Find(path, loop)
		require.NoError(t, err)
		require.NoError(t, change())
		assert.ErrorIs(t, m.Check(), ErrMoved)
	}

	_, err = Find(filepath.Join(mount, "plain"), Options{})
	assert.ErrorIs(t, err, ErrStacked, "a loop device is taken only where it is asked for")
	_, err = Find(mount, loop)
	assert.ErrorContains(t, err, "it is not a regular file")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	m, err = Find(path, loop)
	require.NoError(t, err)
	assert.Empty(t, m.Extents, "an empty file lies nowhere")
}

// TestFileSystemsThatDoNotSay asks for files of systems without a device.
func TestFileSystemsThatDoNotSay(t *testing.T) {
	_, err := Find("/proc/self/status", Options{})
	require.ErrorIs(t, err, ErrFileSystem)
	_, err = Find(filepath.Join(t.TempDir(), "none"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestFindDoesNotWait: nobody writes to the pipe.
func TestFindDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err := Find(path, Options{})
	require.ErrorContains(t, err, "not a regular file")
}
