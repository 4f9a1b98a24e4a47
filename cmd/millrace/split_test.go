package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/pipeline"
)

// TestSplitFromTheCommandLine divides the rows of two files by --split: the tensors of both parts are together those of
// all rows, beside a filter of the pipeline too, and a document with the split makes the same job.
func TestSplitFromTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, "dataset", "generate", "--rows", "1000", "--partitions", "2", "--out", in("clicks"), "--progress", "none")
	text := "label: {column: label}\ndense: [{columns: [int_0..int_12], ops: [fill_null: -1]}]\n"
	require.NoError(t, os.WriteFile(in("p.yaml"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(in("f.yaml"), []byte(text+"filter: {column: int_3, ge: 3}\n"), 0o600))
	outputs := 0
	preprocess := func(pipe string, args ...string) (preprocessResult, []string) {
		outputs++
		out := in(fmt.Sprintf("out-%d", outputs))
		r := decode[preprocessResult](t, must(t, append([]string{"preprocess", "--progress", "none", "--output", "json",
			"--pipeline", in(pipe), "--in", in("clicks"), "--out", out}, args...)...))
		var rows []string
		for row := range slices.Chunk(npyOf[float32](t, content(t, out)["dense.npy"]), 13) {
			rows = append(rows, fmt.Sprint(row))
		}
		require.Len(t, rows, int(r.Rows))
		return r, rows
	}
	sorted := func(rows ...[]string) []string { return slices.Sorted(slices.Values(slices.Concat(rows...))) }
	for pipe, by := range map[string]string{"p.yaml": "", "f.yaml": ":cat_1"} {
		all, allRows := preprocess(pipe)
		require.Greater(t, all.Rows, int64(300))
		train, trainRows := preprocess(pipe, "--split", "train:0.8:7"+by, "--selections", in("kept"))
		validation, validationRows := preprocess(pipe, "--split", "validation:0.8:7"+by, "--engine", "cpu")
		assert.Equal(t, sorted(allRows), sorted(trainRows, validationRows))
		assert.InDelta(t, 0.8*float64(all.Rows), train.Rows, 0.1*float64(all.Rows))
		assert.Len(t, slices.Compact([]string{all.Job, train.Job, validation.Job}), 3)

		var flags pipelineFiles
		require.NoError(t, flags.split.Set("validation:0.8:7"+by))
		document, err := flags.document(in(pipe)) // for a control plane
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(in("submitted.yaml"), document, 0o600))
		submitted, submittedRows := preprocess("submitted.yaml")
		assert.Equal(t, validation.Job, submitted.Job)
		assert.Equal(t, validationRows, submittedRows)
		checked := decode[checkedPipeline](t, must(t, "pipeline", "check", in(pipe), "--split", "validation:0.8:7"+by,
			"--output", "json"))
		written, err := pipeline.Parse(document)
		require.NoError(t, err)
		assert.Equal(t, string(written.JSON()), checked.Document)

		trained := decode[timedReport](t, must(t, "train", "--progress", "none", "--output", "json", "--pipeline", in(pipe),
			"--in", in("clicks"), "--split", "train:0.8:7"+by, "--measure", "1ms", "--epochs", "2"))
		assert.Equal(t, 2*train.Rows, trained.Rows)
	}
	require.NoError(t, os.WriteFile(in("v.yaml"), []byte("sparse: [{columns: [cat_1], ops: [fill_null: 0, "+
		"vocabulary: seen]}]\nvocabularies: {seen: {}}\n"), 0o600))
	keys := func(args ...string) int64 {
		type built struct {
			Rows int64 `json:"rows"`
		}
		return decode[built](t, must(t, append([]string{"vocabulary", "build", "--pipeline", in("v.yaml"), "--in",
			in("clicks"), "--out", in("v.vocab"), "--overwrite", "--output", "json", "--progress", "none"}, args...)...)).Rows
	}
	assert.Equal(t, int64(1000), keys("--split", "train:0.8:7")+keys("--split", "validation:0.8:7"))
	refusals(t, "split", func(t *testing.T, status int, args []string, says string) {
		code, _, errs := millrace(t, args...)
		assert.Equal(t, status, code, errs)
		errorLine(t, errs, says)
	}, "TRAIN", "train --progress none --pipeline "+in("p.yaml")+" --in "+in("clicks"), "PIPE", in("p.yaml"), "DIR", dir)
}
