package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/internal/leaks"
)

// refused runs preprocess in every format and demands: status 1, one line that says all of that, and no output, whole
// or partial.
func refused(t *testing.T, says []string, args ...string) {
	t.Helper()
	refusedAs(t, []string{"npy", "arrow"}, says, args...)
}

func refusedAs(t *testing.T, formats, says []string, args ...string) {
	t.Helper()
	for _, format := range formats {
		out := filepath.Join(t.TempDir(), "out")
		code, stdout, stderr := millrace(t,
			append([]string{"preprocess", "--progress", "none", "--format", format, "--out", out}, args...)...)
		assert.Equal(t, exitFailed, code, "%s%s", stdout, stderr)
		assert.Empty(t, stdout)
		errorLine(t, stderr, says...)
		left, err := os.ReadDir(filepath.Dir(out))
		require.NoError(t, err)
		assert.Empty(t, left, "something was left that could be taken for output")
	}
}

// allEngines are flags of every engine.
func allEngines(t *testing.T, do func(t *testing.T, flags []string)) {
	for name, flags := range engines {
		t.Run(name, func(t *testing.T) { do(t, flags) })
	}
}

const goodPipeline = `name: good
batch: 64
label: {column: label}
dense:
  - columns: [int_0..int_12]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0..cat_25]
    ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 1000}]
`

// TestBadPipelines checks that an error of a pipeline names its place in the document.
func TestBadPipelines(t *testing.T) {
	data := generate(t, "--rows", "200")
	bad := file(t, "bad.yaml", strings.Replace(goodPipeline, "clamp: {min: 0}", "clip: {min: 0}", 1))
	refused(t, []string{bad, "line 6:25", "unknown operator", "clip"}, "--pipeline", bad, "--in", data)
	t.Run("the good one passes", func(t *testing.T) {
		must(t, "preprocess", "--pipeline", file(t, "good.yaml", goodPipeline), "--in", data, "--out",
			filepath.Join(t.TempDir(), "out"))
	})
	t.Run("an absent file", func(t *testing.T) {
		refused(t, []string{"none.yaml", "no such file", "rm1"}, "--pipeline", "none.yaml", "--in", data)
	})
	t.Run("a folder", func(t *testing.T) {
		refused(t, []string{"pipeline", data}, "--pipeline", data, "--in", data)
	})
}

// wrongTypes has columns of RM1's names and other types.
type wrongTypes struct {
	Label string   `parquet:"label,plain"`
	Int0  []int32  `parquet:"int_0,list"`
	Cat0  float32  `parquet:"cat_0"`
	Cat1  int64    `parquet:"cat_1"`
	Date  [12]byte `parquet:"date"`
}

func writeParquet[T any](t *testing.T, path string, rows []T, o ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, o...)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

// damaged copies a data set's first partition and changes its bytes.
func damaged(t *testing.T, data string, change func(b []byte, f *format.File) []byte) string {
	t.Helper()
	b, err := os.ReadFile(data + "/part-00000.parquet")
	require.NoError(t, err)
	f, err := format.ReadFooter(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "damaged.parquet")
	require.NoError(t, os.WriteFile(path, change(bytes.Clone(b), f), 0o644))
	return path
}

// chunk finds a column's chunk in a row group.
func chunk(t *testing.T, f *format.File, group int, column string) format.Chunk {
	t.Helper()
	for i := range f.Leaves {
		if f.Leaves[i].Name == column {
			return f.RowGroups[group].Columns[i]
		}
	}
	t.Fatalf("no column %s", column)
	return format.Chunk{}
}

func TestDamagedFiles(t *testing.T) {
	data := generate(t, "--rows", "450", "--row-group-rows", "150", "--codec", "snappy", "--page-bytes", "500")
	pipe := file(t, "p.yaml", goodPipeline)
	flags := []string{"--pipeline", pipe, "--in"}
	footer := map[string]func(b []byte, f *format.File) []byte{
		"cut in the footer": func(b []byte, _ *format.File) []byte { return b[:len(b)-100] },
		"cut in the pages":  func(b []byte, _ *format.File) []byte { return b[:len(b)/2] },
		"cut by one byte":   func(b []byte, _ *format.File) []byte { return b[:len(b)-1] },
		"no Parquet file":   func([]byte, *format.File) []byte { return []byte(strings.Repeat("a\tb\tc\n", 500)) },
		"a gzip file": func([]byte, *format.File) []byte {
			return append([]byte{0x1f, 0x8b, 8, 0}, make([]byte, 1000)...)
		},
		"an empty file":        func([]byte, *format.File) []byte { return nil },
		"the magic alone":      func([]byte, *format.File) []byte { return []byte("PAR1PAR1") },
		"a footer length flip": func(b []byte, _ *format.File) []byte { b[len(b)-6] ^= 0x40; return b },
	}
	for name, change := range footer {
		t.Run(name, func(t *testing.T) {
			path := damaged(t, data, change)
			allEngines(t, func(t *testing.T, engine []string) {
				refusedAs(t, []string{"npy"}, []string{"damaged.parquet"}, append(append(flags, path), engine...)...)
			})
			code, _, errs := millrace(t, "dataset", "inspect", path)
			assert.Equal(t, exitFailed, code)
			errorLine(t, errs, "damaged.parquet")
			code, _, errs = millrace(t, "dataset", "import", "--out", filepath.Join(t.TempDir(), "imported"), path)
			assert.Equal(t, exitFailed, code)
			errorLine(t, errs, "damaged.parquet")
		})
	}
}

func TestDataSetsThatAreNone(t *testing.T) {
	data := generate(t, "--rows", "100")
	empty := t.TempDir()
	odd := writeParquet(t, filepath.Join(t.TempDir(), "odd.parquet"), make([]wrongTypes, 10))
	rm1 := func(in ...string) []string {
		args := []string{"--pipeline", "rm1"}
		for _, i := range in {
			args = append(args, "--in", i)
		}
		return args
	}
	t.Run("a folder without parquet", func(t *testing.T) {
		refused(t, []string{empty, "holds no files"}, rm1(empty)...)
	})
	t.Run("a file that is not there", func(t *testing.T) {
		refused(t, []string{"none.parquet", "no such file"}, rm1(empty+"/none.parquet")...)
	})
	t.Run("a pattern that matches nothing", func(t *testing.T) {
		refused(t, []string{"*.parquet"}, rm1(empty+"/*.parquet")...)
	})
	t.Run("the same file twice", func(t *testing.T) {
		refused(t, []string{"is there twice"}, rm1(data, data+"/./part-00000.parquet")...)
	})
	t.Run("partitions that disagree", func(t *testing.T) {
		allEngines(t, func(t *testing.T, engine []string) {
			refused(t, []string{"part-00000.parquet", "odd.parquet", "label"}, append(rm1(data, odd), engine...)...)
		})
	})
	t.Run("an empty drive", func(t *testing.T) {
		uri := "file:" + t.TempDir() + "/d.flash"
		must(t, "drive", "create", uri+"?size=1MiB")
		refused(t, []string{"no partition", "millrace drive put"}, "--pipeline", "rm1", "--drive", uri)
	})
	t.Run("a drive with a torn archive", func(t *testing.T) {
		path := t.TempDir() + "/d.flash"
		must(t, "drive", "create", "file:"+path+"?size=1MiB")
		must(t, "drive", "put", "file:"+path, data+"/part-00000.parquet")
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("garbage"), 100)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		refused(t, []string{path, "no tar archive"}, "--pipeline", "rm1", "--drive", "file:"+path)
	})
}

func TestOutputThatExistsIsNotTouched(t *testing.T) {
	data := generate(t, "--rows", "100")
	dir := t.TempDir()
	for format, out := range map[string]string{"npy": dir + "/folder", "arrow": dir + "/file"} {
		must(t, "preprocess", "--pipeline", "rm1", "--in", data, "--out", out, "--format", format)
		before := content(t, out)
		code, _, errs := millrace(t, "preprocess", "--progress", "none", "--pipeline", "rm1", "--in", data, "--out",
			out, "--format", format)
		assert.Equal(t, exitFailed, code)
		errorLine(t, errs, out, "exist", "choose another")
		assert.Equal(t, before, content(t, out))
	}
	for _, generated := range []string{data} {
		before := content(t, generated)
		code, _, errs := millrace(t, "dataset", "generate", "--progress", "none", "--rows", "100", "--seed", "9",
			"--partitions", "2", "--out", generated)
		assert.Equal(t, exitFailed, code)
		errorLine(t, errs, "part-00000.parquet", "exist")
		assert.Equal(t, before, content(t, generated), "nothing new beside what is there")
	}
	code, _, errs := millrace(t, "dataset", "import", "--out", data, data+"/part-00000.parquet", "--overwrite")
	assert.Equal(t, exitFailed, code)
	errorLine(t, errs, "lies in "+data+" already")
}

func TestBadText(t *testing.T) {
	good := "1" + strings.Repeat("\t7", 13) + strings.Repeat("\t0000002a", 26) + "\n"
	for name, c := range map[string]struct {
		rows, format string
		says         []string
	}{
		"a field short": {
			strings.Repeat(good, 6) + "0\t1\t2\n" + good, "criteo-tsv", []string{"rows.txt", "line 7"},
		},
		"a letter in a number": {
			good + strings.Replace(good, "\t7", "\tx7", 1), "criteo-tsv", []string{"rows.txt", "line 2"},
		},
		"an id of nine digits": {
			good + good + strings.Replace(good, "0000002a", "00000002a", 1), "criteo-tsv",
			[]string{"rows.txt", "line 3"},
		},
		"half a binary row": {strings.Repeat("\x00", 160+80), "criteo-bin", []string{"rows.txt", "240 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "rows.txt", c.rows)
			allEngines(t, func(t *testing.T, engine []string) {
				refused(t, c.says,
					append([]string{"--pipeline", "criteo", "--in", path, "--input-format", c.format}, engine...)...)
			})
			out := filepath.Join(t.TempDir(), "imported")
			code, _, errs := millrace(t, "dataset", "import", "--progress", "none", "--input-format", c.format, "--out",
				out, "--partition-rows", "2", path)
			assert.Equal(t, exitFailed, code)
			errorLine(t, errs)
			left, err := os.ReadDir(out)
			require.NoError(t, err)
			assert.Empty(t, left, "partitions of a data set that is not whole")
		})
	}
	t.Run("a file that is named twice", func(t *testing.T) {
		path, out := file(t, "rows.txt", good), filepath.Join(t.TempDir(), "imported")
		for _, names := range [][]string{{path, path}, {path, filepath.Dir(path)}, {"-", "-"}} {
			code, _, errs := millrace(t,
				append([]string{"dataset", "import", "--input-format", "criteo-tsv", "--out", out}, names...)...)
			assert.Equal(t, exitFailed, code)
			errorLine(t, errs, names[0], "is there twice")
			assert.NoDirExists(t, out)
		}
	})
	t.Run("dropped and nulled when asked", func(t *testing.T) {
		path := file(t, "rows.txt", good+"0\t1\n"+good)
		for policy, rows := range map[string]int64{"drop": 2, "null": 3} {
			r := decode[preprocessResult](t, must(t, "preprocess", "--pipeline",
				file(t, "p.yaml",
					"name: t\nbatch: 8\nsparse:\n  - columns: [cat_0..cat_25]\n    ops: [fill_null: 0]\n"),
				"--in", path, "--input-format", "criteo-tsv", "--malformed", policy, "--out",
				filepath.Join(t.TempDir(), "out"), "--output", "json"))
			assert.Equal(t, rows, r.Rows, policy)
			if policy == "drop" {
				assert.EqualValues(t, 1, r.RowsDropped)
			}
		}
	})
}

// TestDroppedRowsAreCountedOnce: however the rows are split, every engine counts each malformed row once.
func TestDroppedRowsAreCountedOnce(t *testing.T) {
	bad := "0\t1\n"
	good := "1" + strings.Repeat("\t7", 13) + strings.Repeat("\t0000002a", 26) + "\n"
	rows := bad + strings.Repeat(strings.Repeat(good, 9)+bad, 12) + good + bad
	path := file(t, "rows.txt", rows)
	spec := file(t, "p.yaml", "name: t\nbatch: 8\nsparse:\n  - columns: [cat_0..cat_25]\n    ops: [fill_null: 0]\n")
	for _, engine := range []string{"cpu", "drive", "reference"} {
		for _, splitBatches := range []string{"1", "64"} {
			r := decode[preprocessResult](t, must(t, "preprocess", "--pipeline", spec, "--in", path, "--input-format",
				"criteo-tsv", "--malformed", "drop", "--engine", engine, "--split-batches", splitBatches, "--out",
				filepath.Join(t.TempDir(), "out"), "--output", "json"))
			assert.EqualValues(t, 109, r.Rows)
			assert.EqualValues(t, 14, r.RowsDropped, "%s, %s", engine, splitBatches)
		}
	}
}

// TestTooLittleMemory: the error names the place and the bytes, and as many bytes do.
func TestTooLittleMemory(t *testing.T) {
	data := generate(t, "--rows", "15000", "--page-bytes", "100000", "--row-group-rows", "15000")
	for _, engine := range []string{"cpu", "drive"} {
		refused(t, []string{"part-00000.parquet", "row group 0", "column ", "page 0", " bytes of local memory",
			"there are 65536"},
			"--pipeline", "rm1", "--in", data, "--engine", engine, "--slm", "64KiB", "--batch", "64")
	}
	// Follow what it says is needed.
	slm := 64 << 10
	for range 20 {
		code, _, errs := millrace(t, "preprocess", "--progress", "none", "--pipeline", "rm1", "--in", data, "--engine",
			"drive", "--slm", fmt.Sprint(slm, "B"), "--batch", "64", "--out", filepath.Join(t.TempDir(), "out"))
		if code == exitDone {
			return
		}
		var need int
		_, after, ok := strings.Cut(errs, "needs ")
		require.True(t, ok, errs)
		_, err := fmt.Sscan(after, &need)
		require.NoError(t, err)
		require.Greater(t, need, slm)
		slm = (need + 4095) / 4096 * 4096
	}
	t.Fatalf("%d bytes do not do either", slm)
}

// TestCancelledInTheMiddle: an interrupt ends the command with status 1; nothing is left, neither output nor
// goroutines.
func TestCancelledInTheMiddle(t *testing.T) {
	data := generate(t, "--rows", "60000", "--partitions", "3", "--row-group-rows", "5000")
	uris := drives(t, data, 2, 512)
	// The first command that waits for signals starts a goroutine of package signal, which stays.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	for name, args := range map[string][]string{
		"preprocess files": {
			"preprocess", "--pipeline", "rm1", "--in", data, "--batch", "50", "--queue", "1MiB", "--out", "OUT",
		},
		"preprocess drives": {
			"preprocess", "--pipeline", "rm1", "--drive", uris[0], "--drive", uris[1], "--batch", "50", "--out", "OUT",
			"--format", "arrow",
		},
		"preprocess cpu": {
			"preprocess", "--pipeline", "rm1", "--drive", uris[0], "--drive", uris[1], "--batch", "50", "--out", "OUT",
			"--engine", "cpu",
		},
		"train": {
			"train", "--pipeline", "rm1", "--drive", uris[0], "--drive", uris[1], "--batch", "100", "--measure", "1ms",
			"--trainer-rows-per-second", "10000",
		},
		"measuring": {
			"train", "--pipeline", "rm1", "--drive", uris[0], "--drive", uris[1], "--batch", "100", "--measure", "1h",
		},
		"generate": {"dataset", "generate", "--rows", "100000000", "--partitions", "4", "--out", "OUT/d"},
		"demo":     {"demo", "--rows", "100000000", "--dir", "OUT"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			for i, a := range args {
				args[i] = strings.Replace(a, "OUT", out, 1)
			}
			leaks.Check(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ended := make(chan struct{})
			go func() { // cancel once it has begun to write, or half a second later
				defer cancel()
				for begun := time.Now(); time.Since(begun) < 300*time.Millisecond; {
					select {
					case <-ended:
						return
					case <-time.After(time.Millisecond):
					}
					if _, err := os.Stat(out + ".partial"); err == nil {
						return
					}
				}
			}()
			var stdout, stderr bytes.Buffer
			code := run(ctx, append(args, "--progress", "none"),
				cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
			close(ended)
			require.NoFileExists(t, out+".partial")
			require.NoDirExists(t, out+".partial")
			if code == exitDone {
				t.Log("it was done before it was cancelled")
				return
			}
			assert.Equal(t, exitFailed, code)
			errorLine(t, stderr.String(), "context canceled")
			assert.Empty(t, stdout.String())
			for _, pattern := range []string{"", "/*.parquet", "/*/*.parquet"} {
				if found, err := filepath.Glob(out + pattern); pattern != "" || args[0] == "preprocess" {
					require.NoError(t, err)
					assert.Empty(t, found)
				}
			}
		})
	}
	for _, uri := range uris {
		must(t, "drive", "ls", uri)
	}
}
