package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
	refusals(t, "usage", func(t *testing.T, status int, args []string, says string) {
		out := filepath.Join(t.TempDir(), "out")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "OUT", out)
		}
		code, stdout, stderr := millrace(t, args...)
		assert.Equal(t, status, code, stderr)
		assert.Empty(t, stdout)
		errorLine(t, stderr, says)
		left, err := os.ReadDir(filepath.Dir(out))
		require.NoError(t, err)
		assert.Empty(t, left, "it wrote something")
	}, "PREPROCESS", "preprocess --out OUT --pipeline rm1 --in "+data, "TRAIN", "train --pipeline rm1 --in "+data,
		"DATA", data, "TEXT", prices)
}

// refusals checks the calls of testdata/refusals/NAME.txt, each as a test of its own. A line is "STATUS ARGUMENTS =>
// WHAT THE ERROR SAYS". The words are pairs of a word in the arguments and of what stands for it.
func refusals(t *testing.T, name string, check func(t *testing.T, status int, args []string, says string),
	words ...string) {
	t.Helper()
	list, err := os.ReadFile("testdata/refusals/" + name + ".txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(list)) {
		call, says, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		require.True(t, ok, line)
		t.Run(call, func(t *testing.T) {
			args := strings.Fields(strings.NewReplacer(words...).Replace(call))
			status, err := strconv.Atoi(args[0])
			require.NoError(t, err)
			check(t, status, args[1:], says)
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
