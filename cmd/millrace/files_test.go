package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
)

// TestFoldersFollowLinks checks that partitions that are links are part of a folder, and that a link that leads
// nowhere is an error and never a missing partition.
func TestFoldersFollowLinks(t *testing.T) {
	data := generate(t, "--rows", "100", "--partitions", "2")
	links := t.TempDir()
	for _, name := range []string{"part-00000.parquet", "part-00001.parquet"} {
		require.NoError(t, os.Symlink(filepath.Join(data, name), filepath.Join(links, name)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(links, "folder.parquet"), 0o755))
	must(t, "preprocess", "--pipeline", "rm1", "--in", links, "--out", t.TempDir()+"/out")

	require.NoError(t, os.Symlink(filepath.Join(data, "none"), filepath.Join(links, "part-00002.parquet")))
	refused(t, []string{"part-00002.parquet", "no such file"}, "--pipeline", "rm1", "--in", links)
}

// TestDocumentsAreBounded: a file without an end is refused, not read until memory is gone.
func TestDocumentsAreBounded(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	f, err := os.Create(large)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(maxDocument+1))
	require.NoError(t, f.Close())
	_, err = readDocument(large)
	require.ErrorContains(t, err, "more than 16777216 bytes")
	require.NoError(t, os.Truncate(large, maxDocument))
	b, err := readDocument(large)
	require.NoError(t, err)
	assert.Len(t, b, maxDocument)

	require.NoError(t, os.Truncate(large, 1<<40))
	data := generate(t, "--rows", "10")
	refused(t, []string{"more than"}, "--pipeline", large, "--in", data)
	for name, args := range map[string][]string{
		"prices":     {"plan", "--model", "rm1", "--t", "1e6", "--prices", large},
		"checkpoint": {"train", "--pipeline", "rm1", "--in", data, "--checkpoint", large},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := millrace(t, args...)
			assert.Equal(t, exitFailed, code)
			assert.Empty(t, stdout)
			errorLine(t, stderr, large, "more than")
		})
	}
}

// TestCheckpointThatCannotBeWrittenLeavesNothing: the job's end tells it, and no part of a token stays.
func TestCheckpointThatCannotBeWrittenLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.MkdirAll(filepath.Join(token, "taken"), 0o755))
	_, _, err := readToken(token)
	require.Error(t, err)
	require.ErrorContains(t, writeToken(token, dataset.Token{}, nil), "checkpoint: rename")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// TestACheckpointWithoutAPlaceIsFoundBeforeTheJob checks that no training begins whose token could not be kept.
func TestACheckpointWithoutAPlaceIsFoundBeforeTheJob(t *testing.T) {
	data, dir := generate(t, "--rows", "10"), t.TempDir()
	token := filepath.Join(dir, "no such folder", "token")
	for name, where := range map[string][]string{
		"here":             {"--in", data},
		"on storage nodes": {"--control", "unix:" + filepath.Join(dir, "nobody")},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := millrace(t,
				append([]string{"train", "--pipeline", "rm1", "--checkpoint", token}, where...)...)
			assert.Equal(t, exitFailed, code)
			assert.Empty(t, stdout)
			errorLine(t, stderr, "checkpoint", token, "no such file")
			assert.NotContains(t, stderr, "rows/s", "T was measured")
		})
	}
	require.NoError(t, checkCheckpoint(filepath.Join(dir, "token")))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "trying leaves nothing")
}

// TestAFolderThatTakesNoFileIsFoundBeforeThePass checks that no pass over the data begins whose output could not be
// written. A file stands for the folder, since this process may be allowed to write to every folder.
func TestAFolderThatTakesNoFileIsFoundBeforeThePass(t *testing.T) {
	data := generate(t, "--rows", "100")
	folder := filepath.Join(data, "part-00000.parquet")
	pipe := file(t, "p.yaml", "sparse: [{columns: [cat_0], ops: [fill_null: 0, vocabulary: v]}]\n"+
		"vocabularies: {v: {order: first_seen}}\n")
	for name, args := range map[string][]string{
		"a summary":    {"dataset", "summarize", data, "--out", folder + "/x"},
		"a vocabulary": {"vocabulary", "build", "--pipeline", pipe, "--in", data, "--out", folder + "/x"},
		"tensors behind a vocabulary": {"preprocess", "--pipeline", pipe, "--in", data, "--build-vocabulary",
			"v=" + filepath.Join(t.TempDir(), "v"), "--format", "arrow", "--out", folder + "/x"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := millrace(t, append(args, "--progress", "plain")...)
			assert.Equal(t, exitFailed, code)
			assert.Empty(t, stdout)
			errorLine(t, stderr, folder)
		})
	}
	require.NoError(t, checkWriter("npy", filepath.Join(t.TempDir(), "made", "by", "the writer")))
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, checkWriter("npy", "/proc/none/x"), "/proc/none: no file can be made in its folder")
	}
}
