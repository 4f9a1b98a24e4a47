package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/foreignparquettest"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/picture"
)

// refusedDrafts are the files of the corpus for which no pipeline can be drafted, and the text of the refusal.
var refusedDrafts = map[string]string{
	"datapage_v1-corrupt-checksum.parquet":           "page checksum mismatch",
	"int96_from_spark.parquet":                       "a: its values are INT96: a point in time",
	"rle-dict-uncompressed-corrupt-checksum.parquet": "page checksum mismatch",
	"ARROW-GH-41317.parquet":                         "footer",
	"ARROW-GH-45185.parquet":                         "x: it cannot be read",
	"ARROW-GH-47662.parquet":                         "flba_field: it cannot be read",
	"ARROW-RS-GH-6229-DICTHEADER.parquet":            "footer",
	"ARROW-RS-GH-6229-LEVELS.parquet":                "outer.c: it cannot be read",
	"PARQUET-1481.parquet":                           "Handle",
}

// TestDraftsOfRealFiles drafts a pipeline for every file of the corpus. A draft passes the check and preprocesses the
// file; a file that has no draft is refused with the names of its columns.
func TestDraftsOfRealFiles(t *testing.T) {
	files, err := filepath.Glob(shared.Path(t, "data/criteo") + "/*")
	require.NoError(t, err)
	for _, pattern := range []string{"/*.parquet", "/bad_data/*.parquet"} {
		more, err := filepath.Glob(shared.Path(t, "data/parquet-testing") + pattern)
		require.NoError(t, err)
		files = append(files, more...)
	}
	require.Greater(t, len(files), 60)
	refused := 0
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if want, ok := refusedDrafts[filepath.Base(file)]; ok {
				refused++
				code, _, errs := millrace(t, "pipeline", "init", file)
				require.Equal(t, exitFailed, code)
				assert.Contains(t, errs, want)
				return
			}
			requireDraftWorks(t, file)
		})
	}
	assert.Len(t, refusedDrafts, refused, "a file that is said to be refused was not there")
}

// TestDraftsOfForeignFiles does the same for files of other writers.
func TestDraftsOfForeignFiles(t *testing.T) {
	dir := t.TempDir()
	for i, f := range foreignparquettest.Files() {
		t.Run(f.Name, func(t *testing.T) {
			path := filepath.Join(dir, fmt.Sprintf("%d.parquet", i))
			require.NoError(t, os.WriteFile(path, f.Bytes, 0o600))
			requireDraftWorks(t, path)
		})
	}
}

// requireDraftWorks drafts a pipeline for a file, checks the draft, and preprocesses the file with it.
func requireDraftWorks(t *testing.T, file string) {
	t.Helper()
	dir := t.TempDir()
	document, out := filepath.Join(dir, "p.yaml"), filepath.Join(dir, "out")
	must(t, "pipeline", "init", file, "--out", document)
	assert.Contains(t, must(t, "pipeline", "check", document, "--in", file), "no errors")
	must(t, "preprocess", "--progress", "none", "--engine", "cpu", "--slm", "64MiB", "--pipeline", document, "--in",
		file, "--out", out)
	require.FileExists(t, filepath.Join(out, "keys.json"))
}

func TestPipelineInit(t *testing.T) {
	dir := t.TempDir()
	must(t, "dataset", "generate", "--rows", "300", "--out", dir, "--progress", "none", "--partitions", "2")
	file := filepath.Join(dir, "part-00000.parquet")
	printed := must(t, "pipeline", "init", file)
	var result draftedPipeline
	require.NoError(t, json.Unmarshal([]byte(must(t, "pipeline", "init", file, "--output", "json")), &result))
	assert.Equal(t, printed, result.Document)
	assert.Equal(t, 150, result.Rows)
	assert.Empty(t, result.LeftOut)
	spec, err := pipeline.Parse([]byte(printed))
	require.NoError(t, err)
	assert.Equal(t, "label", spec.Label.Column)

	whole := must(t, "pipeline", "init", dir)
	assert.Contains(t, whole, "and 1 more file: 300 rows")

	document := filepath.Join(dir, "p.yaml")
	wrote := must(t, "pipeline", "init", file, "--out", document)
	assert.Contains(t, wrote, "wrote")
	assert.NotContains(t, wrote, "left out", "no column is")
	code, _, errs := millrace(t, "pipeline", "init", file, "--out", document)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "exists: name another file, or say --overwrite")
	must(t, "pipeline", "init", file, "--out", document, "--overwrite")
	written, err := os.ReadFile(document)
	require.NoError(t, err)
	assert.Equal(t, printed, string(written))

	code, _, _ = millrace(t, "pipeline", "init")
	assert.Equal(t, exitUsage, code)
}

func TestPipelineCheck(t *testing.T) {
	dir, documents := t.TempDir(), t.TempDir()
	must(t, "dataset", "generate", "--rows", "10", "--out", dir, "--progress", "none")
	check := func(args ...string) (int, checkedPipeline) {
		t.Helper()
		code, out, errs := millrace(t, append([]string{"pipeline", "check", "--output", "json"}, args...)...)
		var v checkedPipeline
		require.NoError(t, json.Unmarshal([]byte(out), &v), "%s%s", out, errs)
		return code, v
	}
	code, v := check("rm1", "--in", dir)
	require.Zero(t, code)
	assert.Len(t, v.Dense, 13)
	assert.Len(t, v.Keys, 39)
	assert.Len(t, v.Digest, 64)
	assert.Equal(t, checkedKey{Name: "cat_0", NumEmbeddings: 500_000, List: false}, v.Keys[0])
	code, v = check("rm1")
	require.Zero(t, code)
	assert.Empty(t, v.Digest)
	spec, err := pipeline.Parse([]byte(v.Document))
	require.NoError(t, err)
	named, err := pipeline.Named("rm1")
	require.NoError(t, err)
	assert.Equal(t, string(named.YAML()), string(spec.YAML()))

	narrow := filepath.Join(documents, "narrow.yaml")
	require.NoError(t, os.WriteFile(narrow, []byte("ids: auto\ndense_type: bfloat16\n"+
		"dense: [{columns: [int_0], ops: [fill_null: 0]}]\nsparse: [{columns: [cat_0], ops: [positive_modulus: 9]}]\n"),
		0o600))
	code, v = check(narrow, "--in", dir)
	require.Zero(t, code)
	assert.Equal(t, []string{"bfloat16", "int32"}, []string{v.DenseType, v.IDs})
	assert.Contains(t, must(t, "pipeline", "check", narrow, "--in", dir), "1 dense of bfloat16, 1 key of int32")

	// A filter is checked, too, and no selection is made for it.
	filtered := filepath.Join(documents, "filtered.yaml")
	require.NoError(t, os.WriteFile(filtered, []byte("filter: {column: int_0, ge: 1}\n"+
		"sparse: [{columns: [cat_0], ops: [positive_modulus: 9]}]\n"), 0o600))
	code, v = check(filtered, "--in", dir)
	require.Zero(t, code)
	assert.Len(t, v.Keys, 1)

	wrong := filepath.Join(documents, "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("dense:\n  - columns: [nothing]\n    ops: [log]\n"), 0o600))
	code, v = check(wrong, "--in", dir)
	assert.Equal(t, exitFailed, code)
	require.Len(t, v.Errors, 1)
	assert.Equal(t, pipelineProblem{Line: 2, Column: 15, Path: "dense[0].columns[0]",
		Message: v.Errors[0].Message}, v.Errors[0])
	assert.Contains(t, v.Errors[0].Message, `missing column: "nothing"`)
	code, _, errs := millrace(t, "pipeline", "check", wrong, "--in", dir)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "wrong.yaml: line 2:15: dense[0].columns[0]: missing column")
	assert.Contains(t, must(t, "pipeline", "check", "rm1"), "no errors")
}

func TestPipelineShow(t *testing.T) {
	text := must(t, "pipeline", "show", "rm1")
	assert.Contains(t, text, "sparse <- cat_0..cat_25")
	assert.Contains(t, text, "sigrid_hash {salt: 0, max: 500000}")
	assert.Contains(t, must(t, "pipeline", "show", "rm1", "--format", "dot"), "digraph pipeline {")
	var drawn picture.Picture
	b := must(t, "pipeline", "show", "rm1", "--format", "json")
	require.NoError(t, json.Unmarshal([]byte(b), &drawn))
	assert.Len(t, drawn.Groups, 4)
	assert.Equal(t, b, must(t, "pipeline", "show", "rm1", "--output", "json"))
	code, _, errs := millrace(t, "pipeline", "show", "rm1", "--format", "svg")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, `--format: "svg": want text, dot or json`)
	code, _, errs = millrace(t, "pipeline", "show", "rm6")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "rm6")
}

func TestPipelineCheckReadsStandardInput(t *testing.T) {
	var out, errs strings.Builder
	in := strings.NewReader("sparse: [{columns: [a]}]")
	code := run(t.Context(), []string{"pipeline", "check", "-"}, cli.Streams{In: in, Out: &out, Err: &errs})
	assert.Zero(t, code, errs.String())
	in = strings.NewReader("sparse: [{columns: [a], opps: []}]")
	code = run(t.Context(), []string{"pipeline", "check", "-"}, cli.Streams{In: in, Out: &out, Err: &errs})
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs.String(), "standard input: line 1:25: sparse[0].opps: unknown key")
}
