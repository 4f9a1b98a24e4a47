package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/summary"
)

func TestSummarize(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	criteoRows(t, in("day_0.tsv"), "2a", "7", "2a", "", "ffffffff")
	criteoRows(t, in("day_1.tsv"), "9")
	files := []string{"dataset", "summarize", in("day_0.tsv"), in("day_1.tsv"), "--progress", "none"}
	made := decode[summarized](t, must(t, append(files, "--out", in("a"), "--output", "json")...))
	assert.EqualValues(t, 6, made.Rows)
	require.Len(t, made.Columns, 40)
	assert.Equal(t, "cat_0", made.Columns[14].Name)
	assert.EqualValues(t, []int64{1, 4, 42}, []int64{made.Columns[14].NullRows, made.Columns[14].Distinct,
		made.Columns[14].TopValues[0].Value.Int})
	require.Len(t, made.Partitions, 2)
	read, digest, err := summary.Load(in("a"))
	require.NoError(t, err)
	assert.Equal(t, made.Digest, digest.String())
	assert.Equal(t, made.Columns, read.Columns)

	for engine, more := range map[string][]string{
		"reference": nil, "cpu": {"--threads", "2"}, "drive": {"--threads", "3"},
	} {
		other := in(engine)
		must(t, append(append(files, "--out", other, "--engine", engine), more...)...)
		assert.Equal(t, content(t, in("a"))["a"], content(t, other)[engine])
	}
	shown := must(t, append(files, "--columns", "cat_0,int_1", "--by-partition")...)
	assert.Contains(t, shown, "day_1.tsv")
	assert.Contains(t, shown, "16.67 %")
	assert.NotContains(t, shown, "cat_1")
	whole := decode[summarized](t, must(t, append(files, "--whole", "--output", "json")...))
	assert.Empty(t, whole.Partitions)
	assert.Equal(t, made.Columns, whole.Columns)

	fails := func(status int, says string, args ...string) {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, status, code, args)
		assert.Contains(t, errs, says)
	}
	fails(exitFailed, "--overwrite", append(files, "--out", in("a"))...)
	must(t, append(files, "--out", in("a"), "--overwrite")...)
	fails(exitFailed, `"cat_99" is not in the dataset`, append(files, "--columns", "cat_99")...)
	fails(exitUsage, "name files", "dataset", "summarize")
	fails(exitUsage, "--queue", append(files, "--queue", "many")...)
	fails(exitFailed, "nothing", "dataset", "summarize", in("nothing.tsv"))
}

// TestSummarizeACluster: the file of a cluster's data is that of the same partitions on this machine; flags that
// contradict each other; a folder of another pass.
func TestSummarizeACluster(t *testing.T) {
	// A context, or a control plane of the environment, would decide what fails.
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("MILLRACE_CONTROL", "")
	drive, folder := filledDrive(t, "2000")
	at := controlRun(t)
	serveDrive(t, at, drive)
	dir := t.TempDir()
	here, out := filepath.Join(dir, "here"), filepath.Join(dir, "there")
	must(t, "dataset", "summarize", folder, "--out", here, "--progress", "none")
	summarize := []string{"dataset", "summarize", "--control", at, "--out", out}
	made := decode[map[string]any](t, must(t, append(summarize, "--progress", "none", "--output", "json")...))
	assert.EqualValues(t, 2000, made["rows"])
	assert.Greater(t, made["received_bytes"], 1000.0)
	assert.Equal(t, content(t, here)["here"], content(t, out)["there"])
	assert.NoDirExists(t, out+".work")
	table := must(t, append(summarize, "--overwrite", "--columns", "cat_0", "--whole", "--progress", "plain")...)
	for _, says := range []string{"2000", "job", "summary-", "taken", "cat_0"} {
		assert.Contains(t, table, says)
	}
	assert.NotContains(t, must(t, "dataset", "summarize", "--control", at, "--columns", "cat_1", "--partitions",
		"part-00001*", "--progress", "none"), "2000\t")

	fails := func(status int, says string, args ...string) {
		t.Helper()
		code, _, errs := millrace(t, args...)
		assert.Equal(t, status, code, args)
		assert.Contains(t, errs, says)
	}
	fails(exitFailed, "--overwrite", summarize...)
	fails(exitUsage, "--partitions", append(summarize, "--overwrite", folder)...)
	fails(exitUsage, "--drive is for", append(summarize, "--overwrite", "--drive", drive)...)
	fails(exitUsage, "--placement", append(summarize, "--overwrite", "--placement", "moon")...)
	fails(exitUsage, "--work is for a control plane", "dataset", "summarize", "--drive", drive, "--work", dir)
	fails(exitFailed, `"cat_99" is not in the dataset`, append(summarize, "--overwrite", "--columns", "cat_99")...)
	fails(exitFailed, "no live node", append(summarize, "--overwrite", "--partitions", "nothing*")...)
	fails(exitFailed, "", "dataset", "summarize", "--control", "http://127.0.0.1:1")

	work := filepath.Join(dir, "work")
	require.NoError(t, os.MkdirAll(work, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(work, "mine"), nil, 0o600))
	fails(exitFailed, "mine", append(summarize, "--overwrite", "--work", work)...)
	assert.FileExists(t, filepath.Join(work, "mine"))
}
