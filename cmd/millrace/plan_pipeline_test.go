package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/sdk/dataset"
)

// someColumns is a pipeline that reads three of RM1's columns.
const someColumns = `name: some
label: {column: label}
dense:
  - {columns: [int_0], ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]}
sparse:
  - {columns: [cat_0], ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 1000}]}
`

// inspected returns what dataset inspect prints of files.
func inspected(t *testing.T, files ...string) (text string, list []partitionfile.Description) {
	t.Helper()
	text = must(t, append([]string{"dataset", "inspect", "--output", "json"}, files...)...)
	return text, decode[[]partitionfile.Description](t, text)
}

// TestPlanOfAPipeline: the bytes of a row are those of the columns that the pipeline reads, from files, from what
// inspect said of them, and from a manifest beside one of the files.
func TestPlanOfAPipeline(t *testing.T) {
	data := generate(t, "--rows", "600", "--partitions", "2", "--codec", "snappy")
	pipe := file(t, "some.yaml", someColumns)
	text, list := inspected(t, data)
	var read, size int64
	for i := range list {
		size += list[i].Bytes
		for _, c := range list[i].Columns {
			if c.Name == "label" || c.Name == "int_0" || c.Name == "cat_0" {
				read += c.Compressed
			}
		}
	}
	files := planOf(t, "--pipeline", pipe, "--t", "1e6", "--in", data)
	row := figureOf(t, &files, "job.row_in")
	assert.InEpsilon(t, float64(read)/600, row.Value, 1e-9)
	assert.Equal(t, sizing.Measured, row.Kind)
	assert.Contains(t, row.Source, "the 3 columns that the pipeline reads")
	assert.InDelta(t, float64(size), figureOf(t, &files, "job.bytes").Value, 0)
	assert.InDelta(t, 4+4+8, figureOf(t, &files, "job.row_out").Value, 1e-9, "label, int_0, cat_0")
	assert.Equal(t, "some", files.Model)
	// Eight decoders take a value a cycle: label, int_0 and cat_0.
	p := figureOf(t, &files, "csd.p")
	assert.InEpsilon(t, 8*223e6/3, p.Value, 1e-3)
	assert.Equal(t, sizing.Modelled, p.Kind)
	require.Len(t, files.Baselines, 3)
	assert.Zero(t, files.Baselines[2].Cores, "no core was measured on this data")
	assert.Contains(t, files.Baselines[2].Source, "measure it on this data with millrace train --engine cpu")
	assert.Contains(t, strings.Join(files.Assumes, "\n"), "the model of drives has no stage for clamp, convert, "+
		"fill_null")

	described := planOf(t, "--pipeline", pipe, "--t", "1e6", "--in", file(t, "inspected.json", text))
	assert.Equal(t, row.Value, figureOf(t, &described, "job.row_in").Value)
	assert.Equal(t, p.Value, figureOf(t, &described, "csd.p").Value)

	m, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Bytes: 5e9, Rows: 50, RowGroups: []int64{50}}})
	require.NoError(t, err)
	b, err := m.MarshalJSON()
	require.NoError(t, err)
	manifest := file(t, "manifest.json", string(b))
	both := planOf(t, "--pipeline", pipe, "--t", "1e6", "--in", manifest+","+data)
	assert.InDelta(t, 5e9, figureOf(t, &both, "job.bytes").Value, 0, "the manifest is of the whole data set")
	assert.Equal(t, row.Value, figureOf(t, &both, "job.row_in").Value)
	code, _, stderr := millrace(t, "plan", "--pipeline", pipe, "--t", "1e6", "--in", manifest)
	assert.Equal(t, exitUsage, code)
	errorLine(t, stderr, "says nothing of columns: name beside it some of its files")
}

// TestAPipelinesTensors: the plan's bytes of a row's tensors are those that a job makes.
func TestAPipelinesTensors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rm3")
	must(t, "dataset", "generate", "--model", "rm3", "--rows", "256", "--out", dir, "--progress", "none")
	r := planOf(t, "--pipeline", "rm3", "--t", "1e6", "--in", dir)
	assert.Equal(t, "rm3", r.Model)
	for i := range r.Placements.Placements {
		assert.NotEqual(t, "cpu-pool-dpp", r.Placements.Placements[i].Name)
	}
	job := decode[timedReport](t, must(t, "train", "--pipeline", "rm3", "--in", dir, "--measure", "1ms", "--engine",
		"cpu", "--trainer-rows-per-second", "1e9", "--output", "json", "--progress", "none"))
	assert.InEpsilon(t, float64(job.PerDrive[0].BytesOut)/256, figureOf(t, &r, "job.row_out").Value, 1e-3)
}

// TestPlanTakesRatesOfAJob: P of drives, or the rate of a core, of a job with the pipeline.
func TestPlanTakesRatesOfAJob(t *testing.T) {
	data := generate(t, "--rows", "600")
	report := func(engine string) string {
		return file(t, "report.json", `{"job": "7a7a", "timing": {"timing": "native"}, "per_drive": [
			{"name": "d0", "engine": "`+engine+`", "p_rows_per_second": 3000, "rows": 10, "moved_bytes": 90,
			"unneeded_bytes": 10, "out_bytes": 50},
			{"name": "d1", "engine": "`+engine+`", "p_rows_per_second": 1000, "rows": 10, "moved_bytes": 90,
			"unneeded_bytes": 10, "out_bytes": 50}]}`)
	}
	pipe := file(t, "some.yaml", someColumns)
	drive := planOf(t, "--pipeline", pipe, "--t", "1e6", "--in", data, "--p-from", report("drive (vendor)"))
	assert.InDelta(t, 2000, drive.P, 1e-9)
	p := figureOf(t, &drive, "csd.p")
	assert.Equal(t, sizing.Measured, p.Kind)
	assert.Contains(t, p.Source, "report.json: job 7a7a, engine drive, mean of 2 drives")
	assert.NotEqual(t, 8.0, figureOf(t, &drive, "job.row_in").Value, "the footers' bytes hold")
	cpu := planOf(t, "--pipeline", pipe, "--t", "1e6", "--in", data, "--p-from", report("cpu"))
	assert.InDelta(t, 2000, figureOf(t, &cpu, "core.kernels").Value, 1e-9)
	assert.Greater(t, cpu.P, 1e6, "P is the model's")
	own := planOf(t, "--model", "ads", "--t", "1e6", "--p-from", report("drive (vendor)"))
	assert.InDelta(t, 8, figureOf(t, &own, "job.row_in").Value, 1e-9, "160 of 180 bytes of 20 rows")
	assert.InDelta(t, 5, figureOf(t, &own, "job.row_out").Value, 1e-9)

	for says, text := range map[string]string{
		"P of drive d0 did not settle": `{"job": "7a", "per_drive": [{"name": "d0", "engine": "cpu",
			"p_rows_per_second": 1, "p_spread_share": 1}]}`,
		"names no drive":     `{"job": "7a"}`,
		"is not a placement": `{"job": "7a", "per_drive": [{"engine": "reference"}]}`,
		"run the job with one of them": `{"job": "7a", "per_drive": [{"engine": "cpu", "p_rows_per_second": 1},
			{"engine": "drive (vendor)"}]}`,
		"want a job that measured P": `{"job": "7a", "per_drive": [{"engine": "cpu"}]}`,
		"has no result of":           `[]`,
		"nor the report of":          `{}`,
	} {
		code, _, stderr := millrace(t, "plan", "--pipeline", pipe, "--t", "1e6", "--in", data, "--p-from",
			file(t, "rates.json", text))
		assert.Equal(t, exitFailed, code, says)
		errorLine(t, stderr, says)
	}
}

// TestPlanOfAPipelineUnderAnImage: a tenth of the clock lets the decoder bind, as for a model.
func TestPlanOfAPipelineUnderAnImage(t *testing.T) {
	data := generate(t, "--rows", "600")
	image := t.TempDir() + "/slow.mimg"
	must(t, "image", "build", specOf(t, "20000"), "--out", image)
	r := planOf(t, "--pipeline", file(t, "some.yaml", someColumns), "--t", "1e6", "--in", data, "--image", image)
	assert.Contains(t, r.PSource, "under image")
	// 3 values, each of which occupies one of 8 decoders for 3 cycles.
	assert.InEpsilon(t, 20e6*8/3/3, figureOf(t, &r, "csd.p").Value, 1e-3)
}

func TestRefusedPlansOfPipelines(t *testing.T) {
	data := generate(t, "--rows", "100")
	pipe := file(t, "some.yaml", someColumns)
	text, _ := inspected(t, data)
	filtered := file(t, "f.yaml", someColumns+"filter: {column: int_1, ge: 1}\n")
	tsv := file(t, "a.tsv", "1"+strings.Repeat("\t7", 13)+strings.Repeat("\t0000002a", 26)+"\n")
	intsv, _ := inspected(t, tsv)
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "leave them out", []string{"--pipeline", pipe, "--in", data, "--model", "rm1"}},
		{exitUsage, "give --in with the data's Parquet files", []string{"--pipeline", pipe}},
		{exitUsage, "are of a pipeline: give --pipeline", []string{"--wasm", "a.wasm"}},
		{exitUsage, "two manifests", []string{"--in", file(t, "a.json", `{"version":2,"partitions":[]}`) + "," +
			file(t, "b.json", `{"version":2,"partitions":[]}`)}},
		{exitFailed, `"cat_9x" is not in the dataset`, []string{"--in", data, "--pipeline",
			file(t, "p.yaml", strings.Replace(someColumns, "cat_0", "cat_9x", 1))}},
		{exitFailed, "has no schema: make it again", []string{"--pipeline", pipe, "--in",
			file(t, "old.json", strings.ReplaceAll(text, `"schema"`, `"was"`))}},
		{exitFailed, "write it as Parquet", []string{"--pipeline", pipe, "--in", file(t, "tsv.json", intsv)}},
		{exitFailed, "is neither a manifest nor", []string{"--pipeline", pipe, "--in", file(t, "x.json", `[3]`)}},
		{exitFailed, "want what millrace dataset inspect", []string{"--pipeline", pipe, "--in",
			file(t, "x.json", `[{}]`)}},
		{exitFailed, "none.parquet", []string{"--pipeline", pipe, "--in", "none.parquet"}},
	} {
		code, _, stderr := millrace(t, append([]string{"plan", "--t", "1e6"}, c.args...)...)
		assert.Equal(t, c.code, code, c.says)
		errorLine(t, stderr, c.says)
	}
	r := planOf(t, "--pipeline", filtered, "--t", "1e6", "--in", data)
	assert.Contains(t, strings.Join(r.Assumes, "\n"), "the filter passes every row")
	assert.NotContains(t, strings.Join(r.Assumes, "\n"), "end inside")
	r = planOf(t, "--pipeline", file(t, "b.yaml", someColumns+"batch: 4\n"), "--t", "1e6", "--in", data)
	assert.Contains(t, strings.Join(r.Assumes, "\n"), "Splits of 16 mini-batches of 4 rows end inside 1 of 1 row group, ")
}
