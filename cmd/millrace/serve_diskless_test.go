package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestServeDiskless: a drive without flash says so wherever it is looked at, keeps what it is in its state file, and
// nothing without one.
func TestServeDiskless(t *testing.T) {
	fails := func(want int, args ...string) string {
		t.Helper()
		code, _, errs := millrace(t, args...)
		require.Equal(t, want, code, "millrace %s: %s", strings.Join(args, " "), errs)
		return errs
	}
	state := t.TempDir() + "/card0"
	line, stop := startServe(t, "--diskless", "--state", state)
	assert.Regexp(t, `^serving tcp://127\.0\.0\.1:\d+/nqn\.[^ ]+: no flash \(what it is and its images are kept in `+
		state+`\.json and beside it\), 67108864 bytes of memory`, line)
	uri := strings.TrimSuffix(strings.Fields(line)[1], ":")
	nqn := uri[strings.LastIndex(uri, "/")+1:]
	assert.Contains(t, must(t, "drive", "info", uri), "no flash: hosts store windows in its memory")
	var info struct {
		Diskless bool  `json:"diskless"`
		Size     int64 `json:"size_bytes"`
	}
	require.NoError(t, json.Unmarshal([]byte(must(t, "drive", "info", uri, "--output", "json")), &info))
	assert.True(t, info.Diskless)
	assert.Zero(t, info.Size)
	checks := must(t, "drive", "validate", uri)
	assert.Contains(t, checks, "no flash, computes")
	assert.Regexp(t, `move +skipped +[^\n]*the drive has no flash`, checks)
	assert.Regexp(t, `self-test +passed`, checks)
	must(t, "drive", "smart", uri)
	assert.Contains(t, fails(1, "drive", "ls", uri), "holds no files")
	data := generate(t, "--rows", "100", "--partitions", "1")
	assert.Contains(t, fails(1, "drive", "put", uri, data+"/part-00000.parquet"), "holds no files")
	stop()
	_, err := os.Stat(state + ".json")
	require.NoError(t, err)
	line, stop = startServe(t, "--diskless", "--state", state)
	assert.Contains(t, line, nqn, "it is the same drive")
	stop()
	line, stop = startServe(t, "--diskless")
	assert.Contains(t, line, "no flash (nothing is kept; with --state FILE it keeps what it is and its images)")
	stop()
	for _, wrong := range [][]string{
		{"--diskless", "--flash", "x"}, {"--diskless", "--size", "1GiB"}, {"--diskless", "--lba", "512"},
		{"--state", "x"}, {},
	} {
		fails(2, append([]string{"drive", "serve"}, wrong...)...)
	}
}
