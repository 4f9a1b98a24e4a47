package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
)

// generate makes an RM1 data set and returns its folder.
func generate(t *testing.T, more ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	must(t, append([]string{"dataset", "generate", "--progress", "none", "--out", dir}, more...)...)
	return dir
}

// file writes a file of a name in a folder of its own.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

// TestStatus2IsForWrongFlagsAndArguments checks that nothing is read or written, and that the one line of the error
// names the valid form.
func TestStatus2IsForWrongFlagsAndArguments(t *testing.T) {
	data := generate(t, "--rows", "10")
	prices := file(t, "bad.yaml", "watts: 3\n")
	rm1 := []string{"--pipeline", "rm1", "--in", data}
	preprocess := func(more ...string) []string {
		return append(append([]string{"preprocess", "--out", "OUT"}, rm1...), more...)
	}
	train := func(more ...string) []string { return append(append([]string{"train"}, rm1...), more...) }
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"bogus"}, `unknown command "bogus"`},
		{[]string{"--bogus"}, "unknown flag: --bogus"},
		{[]string{"trian"}, "did you mean train?"},
		{[]string{"jobs", "lsit"}, "did you mean list?"},
		{[]string{"jobs", "list", "--wathc"}, "did you mean --watch?"},
		{[]string{"train", "--pipline", "rm1"}, "did you mean --pipeline?"},
		{[]string{"up", "--detatch"}, "did you mean --detach?"},
		{[]string{"up", "--nonsense"}, "unknown flag: --nonsense: see millrace up --help"},
		{[]string{"drive", "bogus"}, `unknown command "bogus" for "millrace drive"`},
		{[]string{"dataset", "bogus"}, "unknown command"},
		{[]string{"help", "bogus"}, "unknown command"},
		{[]string{"help", "drive", "bogus"}, "unknown command"},
		{[]string{"completion"}, "bash, zsh, fish, powershell"},
		{[]string{"completion", "csh"}, "bash, zsh, fish, powershell"},
		{[]string{"version", "x"}, "takes no arguments"},
		{[]string{"version", "--output", "xml"}, "want table or json"},
		{[]string{"version", "--progress", "loud"}, "want auto, plain, json or none"},
		{[]string{"--output", "xml"}, "want table or json"},
		{[]string{"demo", "x"}, "takes no arguments"},
		{[]string{"demo", "--rows", "0"}, "must be above 0"},
		{[]string{"demo", "--slm", "much"}, "is not a size"},
		{[]string{"demo", "--rows", "many"}, "invalid argument"},
		{[]string{"demo", "--trainer-rows-per-second", "NaN"}, "as 2500000, 2.5M"},
		{[]string{"demo", "--measure", "-1s"}, "--measure"},

		{[]string{"dataset", "generate"}, "--out is wanted"},
		{[]string{"dataset", "generate", "--out", "OUT", "--model", "rm9"}, "rm1, rm2, rm3, rm4, rm5"},
		{[]string{"dataset", "generate", "--out", "OUT", "--codec", "brotli"},
			"want none, snappy, gzip, zstd or lz4_raw"},
		{[]string{"dataset", "generate", "--out", "OUT", "--encoding", "delta"}, "want plain or dictionary"},
		{[]string{"dataset", "generate", "--out", "OUT", "--rows", "-1"}, "want more than 0"},
		{[]string{"dataset", "generate", "--out", "OUT", "--partitions", "-1"}, "partitions"},
		{[]string{"dataset", "generate", "--out", "OUT", "--coverage", "1.5"}, "coverage"},
		{[]string{"dataset", "generate", "--out", "OUT", "--page-version", "3"}, "1 or 2"},
		{[]string{"dataset", "inspect"}, "at least one FILE"},
		{[]string{"dataset", "inspect", "--input-format", "csv", data}, "want parquet, criteo-tsv or criteo-bin"},
		{[]string{"dataset", "import", data}, "--out is wanted"},
		{[]string{"dataset", "import", "--out", "OUT"}, "at least one FILE"},
		{[]string{"dataset", "import", "--out", "OUT", "--input-format", "csv", data}, "want parquet"},
		{[]string{"dataset", "import", "--out", "OUT", "--codec", "zstd", data}, "--codec is for Criteo rows"},
		{[]string{"dataset", "import", "--out", "OUT", "--input-format", "criteo-tsv", "--malformed", "skip", prices},
			"want fail, drop or null"},
		{[]string{"dataset", "import", "--out", "OUT", "--input-format", "criteo-tsv", "--codec", "lzo", prices},
			"codec"},

		{[]string{"drive", "create"}, "wants URI"},
		{[]string{"drive", "create", "d0.flash"}, "malformed drive URI"},
		{[]string{"drive", "create", "file:OUT?lba=1024"}, "512 or 4096"},
		{[]string{"drive", "create", "file:OUT?colour=red"}, "unknown parameter"},
		{[]string{"drive", "put", "file:OUT"}, "at least one FILE"},
		{[]string{"drive", "put", "OUT", "x"}, "malformed drive URI"},
		{[]string{"drive", "ls"}, "wants DRIVE"},
		{[]string{"drive", "info", "file:"}, "names no path"},

		{preprocess("--format", "csv"), "want npy or arrow"},
		{preprocess("--tail", "cut"), "keep drop"},
		{preprocess("--queue", "long"), "--queue"},
		{preprocess("--queue", "0"), "--queue"},
		{preprocess("--slm", "-1"), "--slm"},
		{preprocess("--coalesce", "x"), "--coalesce"},
		{preprocess("--engine", "gpu"), "reference, cpu or drive"},
		{preprocess("--engine", "rtl", "--accelerator", "mem:"), "not for the engine rtl"},
		{[]string{"train", "--pipeline", "rm1", "--in", data, "--engine", "rtl"},
			"millrace preprocess simulates the units"},
		{preprocess("--commands", "tcg"), "want vendor or standard"},
		{preprocess("--threads", "0"), "--threads"},
		{preprocess("--threads", "257"), "256"},
		{preprocess("--streams", "-1"), "--streams"},
		{preprocess("--input-format", "orc"), "want parquet"},
		{preprocess("--label", "maybe"), "present or absent"},
		{preprocess("--malformed", "skip"), "fail, drop or null"},
		{preprocess("--batch", "-5"), "batch -5"},
		{preprocess("--batch", "1.5"), `invalid argument "1.5" for --batch: want a whole number`},
		{preprocess("--batch", "16777217"), "batch 16777217"},
		{preprocess("--split-batches", "-1"), "split_batches -1"},
		{[]string{"preprocess", "--pipeline", "rm1", "--out", "OUT", "extra"}, "takes no arguments"},
		{[]string{"preprocess", "--pipeline", "rm1", "--in", data}, "--out is wanted"},
		{[]string{"preprocess", "--in", data, "--out", "OUT"}, "--pipeline is wanted"},
		{[]string{"preprocess", "--pipeline", "rm1", "--out", "OUT"}, "--in"},
		{[]string{"preprocess", "--pipeline", "rm1", "--out", "OUT", "--drive", "disk0"}, "malformed drive URI"},
		{[]string{
			"preprocess", "--pipeline", "rm1", "--out", "OUT", "--drive", "mem:", "--in", "[", "--progress", "none",
		}, "--in"},
		{[]string{"preprocess", "--pipeline", "rm1", "--out", "OUT", "--drive", "mem:", "--commands", "standard"},
			"?commands=standard"},
		{[]string{"preprocess", "--pipeline", "rm1", "--out", "OUT", "--drive", "mem:", "--threads", "2"},
			"?threads=2"},

		{train("--shuffle", "always"), "splits none rows"},
		{train("--order", "random"), "fastest or deterministic"},
		{train("--tail", "cut"), "keep drop"},
		{train("--queue", "long"), "--queue"},
		{train("--epochs", "0"), "--epochs"},
		{train("--max-drives", "-1"), "--max-drives"},
		{train("--window", "-1"), "window -1"},
		{train("--window", "17", "--shuffle", "rows"), "window 17"},
		{train("--trainer-rows-per-second", "0"), "above 0"},
		{train("--trainer-rows-per-second", "NaN"), "is not a number"},
		{train("--measure", "soon"), "want a time, as 30s or 5m"},
		{train("--measure", "-1s"), "--measure"},
		{train("--spread", "-1"), "--spread"},
		{train("--spread", "2"), "--in has 1 file"},
		{train("--stop-after", "-1"), "--stop-after"},
		{train("--seed", "-1"), "want a whole number from 0 on"},
		{[]string{"train", "--pipeline", "rm1", "--drive", "mem:", "--spread", "2"}, "--spread"},

		{[]string{"help", "trian"}, "did you mean train?"},
		{[]string{"help", "drive", "lss"}, "did you mean ls or list?"},
		{[]string{"plan"}, "--t is wanted"},
		{[]string{"plan", "--t", "-1"}, `for --t: "-1": want a number from 0 on`},
		{[]string{"plan", "--t", "NaN"}, "is not a number"},
		{[]string{"plan", "--t", "Inf"}, "is not a number"},
		{[]string{"plan", "--t", "1", "--model", "rm9"}, "rm1 to rm5"},
		{[]string{"plan", "--t", "1", "--size", "big"}, "is not a size"},
		{[]string{"plan", "--t", "1M", "--size", "500"}, "lacks a unit: write 500GiB"},
		{[]string{"drive", "create", "file:OUT?size=500"}, "lacks a unit: write 500GiB"},
		{[]string{"dataset", "generate", "--out", "OUT", "--rows", "3MB"}, "1000000, 1M or 1e6"},
		{[]string{"plan", "--t", "1", "--replicas", "0"}, "--replicas 0"},
		{[]string{"plan", "--t", "1", "--id-bytes", "3"}, "4 or 8 bytes"},
		{[]string{"plan", "--t", "1e30", "--p", "1e-30"}, "plan"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := make([]string, len(c.args))
			for i, a := range c.args {
				args[i] = strings.ReplaceAll(a, "OUT", out)
			}
			code, stdout, stderr := millrace(t, args...)
			assert.Equal(t, exitUsage, code, stderr)
			assert.Empty(t, stdout)
			errorLine(t, stderr, c.says)
			left, err := os.ReadDir(filepath.Dir(out))
			require.NoError(t, err)
			assert.Empty(t, left, "it wrote something")
		})
	}
}

// errorLine demands that stderr is one line of an error that says all of that. Warnings of a drive, which are records
// of a log, may stand before it.
func errorLine(t *testing.T, stderr string, says ...string) {
	t.Helper()
	for strings.HasPrefix(stderr, `{"time":`) {
		record, rest, _ := strings.Cut(stderr, "\n")
		require.Contains(t, record, `"level":"WARN"`)
		stderr = rest
	}
	require.True(t, strings.HasSuffix(stderr, "\n"), "stderr: %q", stderr)
	for line := range strings.Lines(stderr) {
		require.True(t, strings.HasPrefix(line, "millrace: "), "stderr: %q", stderr)
	}
	if strings.Count(stderr, "\n") > 1 { // only the errors of a pipeline take several lines, one for each cause
		require.Equal(t, strings.Count(stderr, "\n"), strings.Count(stderr, ": line "), "stderr is not one line: %s",
			stderr)
	}
	assert.NotRegexp(t, goName, stderr, "a name of Go's reaches a user")
	for _, s := range says {
		assert.Contains(t, stderr, s)
	}
}

// goName matches a package's exported name, such as trainmgr.Options.
var goName = regexp.MustCompile(`\b[a-z]+\.[A-Z][a-z]+[A-Za-z]*\b`)

func TestSeveralErrorsAreOneLine(t *testing.T) {
	assert.Equal(t, "a; b: c; d", cli.OneLine("a\n\n b: c \r\nd\n"))
	assert.Empty(t, cli.OneLine("\n"))
}
