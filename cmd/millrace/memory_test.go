package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/internal/scratch"
)

// asCommand makes the test binary be the command, in a process whose memory is its own; highWater names the file that
// it leaves its high-water mark in.
const (
	asCommand = "MILLRACE_TEST_COMMAND"
	highWater = "MILLRACE_TEST_HIGH_WATER"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(secluded(m.Run))
	}
	code := cli.Main(run)
	if path := os.Getenv(highWater); path != "" {
		status, err := os.ReadFile("/proc/self/status")
		if err == nil {
			err = os.WriteFile(path, status, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = exitFailed
		}
	}
	os.Exit(code)
}

// secluded runs the tests without the contexts of the user who runs them.
func secluded(run func() int) int {
	dir, err := scratch.Make("", "millrace-home-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer dir.Close()
	for _, name := range []string{
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", contexts.ControlEnv, contexts.ContextEnv, contexts.CertEnv, contexts.KeyEnv,
		contexts.CAEnv,
	} {
		_ = os.Unsetenv(name) // fails only for a name that is none
	}
	_ = os.Setenv("XDG_CONFIG_HOME", dir.Path)
	return run()
}

// apart runs the command line in a process of its own and returns its VmHWM in bytes.
func apart(t *testing.T, args ...string) int64 {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "status")
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", highWater+"="+mark, "GOGC=100", "GOMEMLIMIT=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	status, err := os.ReadFile(mark)
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(status), "VmHWM:")
	require.True(t, ok)
	var kib int64
	_, err = fmt.Sscanf(after, "%d kB", &kib)
	require.NoError(t, err)
	return kib << 10
}

// bounded preprocesses on a drive, in a process of its own, and holds its memory against the bound.
func bounded(t *testing.T, slm, queue int64, data, pipe string, formats ...string) {
	t.Helper()
	for _, format := range formats {
		for _, commands := range []string{"vendor", "standard"} {
			out := filepath.Join(t.TempDir(), "out")
			got := apart(t, "preprocess", "--engine", "drive", "--commands", commands, "--slm", fmt.Sprint(slm, "B"),
				"--queue", fmt.Sprint(queue, "B"),
				"--pipeline", pipe, "--in", data, "--format", format, "--out", out, "--progress", "none")
			const mapped = 64 << 20 // of the flash, whose pages are the page cache's
			bound := (slm+queue)*3/2 + mapped + 128<<20
			t.Logf("%s, %s: VmHWM %.0f MiB of %.0f", format, commands, float64(got)/(1<<20), float64(bound)/(1<<20))
			assert.Less(t, got, bound)
			info, err := os.Stat(out)
			require.NoError(t, err)
			if !info.IsDir() {
				assert.Greater(t, info.Size(), int64(1<<20))
			}
		}
	}
}

func skipMemory(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("VmHWM is Linux's")
	}
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
}

// pageSizes returns a chunk's least and most page bytes but the last's, and how many pages it has.
func pageSizes(t *testing.T, path, column string) (chunkBytes int64, sizes []int) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	file, err := format.ReadFooter(f, info.Size())
	require.NoError(t, err)
	require.Len(t, file.RowGroups, 1)
	k := chunk(t, file, 0, column)
	for at := k.Offset; at < k.Offset+k.Compressed; {
		head := make([]byte, 4096)
		n, err := f.ReadAt(head, at)
		if !errors.Is(err, io.EOF) {
			require.NoError(t, err)
		}
		h, length, err := format.ParsePageHeader(head[:n])
		require.NoError(t, err)
		sizes = append(sizes, int(h.Compressed))
		at += int64(length) + int64(h.Compressed)
	}
	return k.Compressed, sizes
}

// TestARowGroupMuchLargerThanMemory: a row group ten times the drive's memory passes through it, in a process that
// stays small. With MILLRACE_LONG=1 it is the issue's: 640 MiB in pages of 1 MiB through 64 MiB.
func TestARowGroupMuchLargerThanMemory(t *testing.T) {
	skipMemory(t)
	rows, page, slm := 350_000, 128<<10, int64(8<<20)
	if os.Getenv("MILLRACE_LONG") != "" {
		rows, page, slm = 2_750_000, 1<<20, 64<<20
	}
	data := filepath.Join(t.TempDir(), "data")
	// The writer reckons a nullable int64 with 13 bytes, of which 8 come into the page.
	apart(t, "dataset", "generate", "--rows", fmt.Sprint(rows), "--row-group-rows", fmt.Sprint(rows), "--page-bytes",
		fmt.Sprint(page*13/8), "--out", data, "--progress", "none")
	part := data + "/part-00000.parquet"
	require.GreaterOrEqual(t, mustStat(t, part).Size(), 95*slm/10)
	_, sizes := pageSizes(t, part, "cat_3")
	require.Greater(t, len(sizes), 10)
	require.InEpsilon(t, page, sizes[0], 0.2)
	bounded(t, slm, slm, data, "rm1", "npy", "arrow")
}

// single is a row of the file in which each chunk is one page.
type single struct {
	Label int32  `parquet:"label,plain"`
	Int0  *int32 `parquet:"int_0,optional,plain"`
	Cat0  int64  `parquet:"cat_0,plain"`
}

// TestAChunkThatIsOnePage: a column chunk of 20 MiB that is a single page passes through 64 MiB, and so does one whose
// page has to be unpacked.
func TestAChunkThatIsOnePage(t *testing.T) {
	skipMemory(t)
	t.Run("plain", func(t *testing.T) { onePage(t, &parquet.Uncompressed, "npy", "arrow") })
	t.Run("snappy", func(t *testing.T) { onePage(t, &parquet.Snappy, "arrow") })
}

func onePage(t *testing.T, codec compress.Codec, formats ...string) {
	const rows = 2_621_440
	data := filepath.Join(t.TempDir(), "single.parquet")
	f, err := os.Create(data)
	require.NoError(t, err)
	w := parquet.NewGenericWriter[single](f, parquet.PageBufferSize(64<<20), parquet.MaxRowsPerRowGroup(rows),
		parquet.DataPageStatistics(false), parquet.Compression(codec))
	buf := make([]single, 4096)
	for at := 0; at < rows; at += len(buf) {
		for i := range buf {
			n := at + i
			buf[i] = single{Label: int32(n & 1), Cat0: int64(n) * 2654435761 % (1 << 40) * 0x10001}
			if n%3 > 0 {
				v := int32(n % 5000)
				buf[i].Int0 = &v
			}
		}
		_, err := w.Write(buf)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	bytes, sizes := pageSizes(t, data, "cat_0")
	require.Len(t, sizes, 1)
	t.Logf("a chunk of %d bytes", bytes)
	require.Greater(t, bytes, int64(20<<20))
	pipe := file(t, "single.yaml", `name: single
batch: 8192
label: {column: label}
dense:
  - columns: [int_0]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0]
    ops: [sigrid_hash: {salt: 0, max: 500000}]
`)
	bounded(t, 64<<20, 64<<20, data, pipe, formats...)
}

// TestASmallJobTakesLittleMemory: what makes two passes over 4,000 rows, as a filter and a vocabulary do, holds the
// drive's memory that they use, and not the 1 GiB that it could have.
func TestASmallJobTakesLittleMemory(t *testing.T) {
	skipMemory(t)
	data := filepath.Join(t.TempDir(), "data")
	must(t, "dataset", "generate", "--rows", "4000", "--out", data, "--progress", "none")
	for name, job := range map[string]struct {
		pipeline string
		flags    []string
	}{
		"filter": {"sparse: [{columns: [cat_0]}]\nfilter: {column: cat_0, lt: 1000000}\n", nil},
		"vocabulary": {"vocabularies: {v: {order: first_seen}}\nsparse: [{columns: [cat_0], ops: [vocabulary: v]}]\n",
			[]string{"--build-vocabulary", "v"}},
	} {
		pipe := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(pipe, []byte(job.pipeline), 0o644))
		got := apart(t, append([]string{"preprocess", "--pipeline", pipe, "--in", data, "--out",
			filepath.Join(t.TempDir(), "out"), "--progress", "none"}, job.flags...)...)
		t.Logf("%s: VmHWM %.0f MiB", name, float64(got)/(1<<20))
		assert.Less(t, got, int64(150<<20), name)
	}
}

// TestMoreFilesThanDescriptors preprocesses more files than the process may open: it opens them when they are read.
func TestMoreFilesThanDescriptors(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	must(t, "dataset", "generate", "--rows", "600", "--partitions", "300", "--out", data, "--progress", "none")
	for _, engine := range []string{"drive", "cpu", "reference"} {
		out := filepath.Join(t.TempDir(), "out")
		cmd := exec.Command("sh", "-c", `ulimit -n 100 && exec "$@"`, "sh", os.Args[0], "preprocess", "--pipeline", "rm1",
			"--engine", engine, "--in", data, "--out", out, "--progress", "none")
		cmd.Env = append(os.Environ(), asCommand+"=1")
		printed, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", engine, printed)
		assert.Contains(t, string(printed), "600 in 300 mini-batches", engine)
	}
}
