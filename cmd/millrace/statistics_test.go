package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStatisticsOfAPipeline makes the statistics that a pipeline names from the command line, and compares its tensors
// on every engine with those of constants.
func TestStatisticsOfAPipeline(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	criteoRows(t, in("day_0.tsv"), "2a", "7", "2a", "", "ffffffff")
	document := func(name, first, second string) string {
		path := in(name)
		require.NoError(t, os.WriteFile(path, []byte("dense:\n"+
			"  - {columns: [int_0], ops: [normalize: {"+first+"}, fill_null: 9]}\n"+
			"  - {columns: [cat_0], ops: [fill_null: 0, clamp: {max: 100}, normalize: {"+second+"}]}\n"+
			"label: {column: label}\n"), 0o600))
		return path
	}
	pipe := document("p.yaml", "statistics: train", "statistics: train")
	text, err := os.ReadFile(pipe)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(pipe, append(text, "statistics: {train: }\n"...), 0o600))
	// The values behind the operators are 42, 7, 42, 0 and 100, whose mean is 38.2.
	made := decode[summarized](t, must(t, "dataset", "summarize", "--pipeline", pipe, "--in", in("day_0.tsv"), "--out",
		in("train"), "--output", "json", "--progress", "none"))
	require.Len(t, made.Columns, 2)
	assert.Equal(t, "int_0", made.Columns[0].Name)
	require.NotNil(t, made.Columns[1].Mean)
	assert.InDelta(t, 38.2, *made.Columns[1].Mean, 1e-12)
	numbers := func(i int) string {
		return fmt.Sprintf("mean: %v, deviation: %v", *made.Columns[i].Mean, *made.Columns[i].Deviation)
	}
	constants := document("c.yaml", numbers(0), numbers(1))

	preprocess := func(pipe, out string, args ...string) []string {
		return append([]string{"preprocess", "--progress", "none", "--pipeline", pipe, "--in", in("day_0.tsv"), "--out",
			in(out), "--output", "json"}, args...)
	}
	want := decode[preprocessResult](t, must(t, preprocess(constants, "constants")...))
	for _, engine := range []string{"reference", "cpu", "drive"} {
		r := decode[preprocessResult](t, must(t, preprocess(pipe, engine, "--engine", engine, "--statistics",
			"train="+in("train"))...))
		assert.Equal(t, want.Job, r.Job, "the numbers are part of the job's digest, and nothing else of the summary is")
		assert.Equal(t, content(t, in("constants")), content(t, in(engine)))
	}
	checked := decode[checkedPipeline](t, must(t, "pipeline", "check", pipe, "--in", in("day_0.tsv"), "--statistics",
		"train="+in("train"), "--output", "json"))
	assert.Contains(t, checked.Document, made.Digest, "programs get a document that needs no summary")
	require.NoError(t, os.WriteFile(in("whole.json"), []byte(checked.Document), 0o600))
	assert.Equal(t, want.Job, decode[preprocessResult](t, must(t, preprocess(in("whole.json"), "whole")...)).Job)
	must(t, "pipeline", "show", pipe)
	must(t, "train", "--progress", "none", "--pipeline", pipe, "--in", in("day_0.tsv"), "--statistics",
		"train="+in("train"), "--trainer-rows-per-second", "1000000")

	// A control plane gets a document that needs no summary.
	withSummary := func(file string) *pipelineFiles {
		named := statisticsFlags{summaries: []string{"train=" + in(file)}}
		return &pipelineFiles{have: vocabularyFlags{statisticsFlags: named}}
	}
	submitted, err := withSummary("train").document(pipe)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(in("submitted.yaml"), submitted, 0o600))
	assert.Equal(t, want.Job, decode[preprocessResult](t, must(t, preprocess(in("submitted.yaml"), "submitted")...)).Job)
	same, err := new(pipelineFiles).document(pipe)
	require.NoError(t, err)
	plain, err := os.ReadFile(pipe)
	require.NoError(t, err)
	assert.Equal(t, plain, same, "a document without summaries stays as it is")
	_, err = withSummary("none").document(pipe)
	require.ErrorIs(t, err, os.ErrNotExist)

	good, err := os.ReadFile(in("train"))
	require.NoError(t, err)
	good[len(good)/2] ^= 1
	require.NoError(t, os.WriteFile(in("damaged"), good, 0o600))
	must(t, "dataset", "summarize", in("day_0.tsv"), "--columns", "int_1", "--out", in("other"), "--progress", "none")
	must(t, "dataset", "summarize", "--in", in("day_0.tsv"), "--out", in("columns"), "--progress", "none")
	refusals(t, "statistics", func(t *testing.T, status int, args []string, says string) {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, status, code, errs)
		assert.Contains(t, errs, says)
	}, "PREPROCESS", "preprocess --progress none --pipeline "+pipe+" --in "+in("day_0.tsv")+" --out "+in("n"),
		"PIPE", pipe, "DIR", dir)
}
