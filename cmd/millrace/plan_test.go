package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/sdk/dataset"
)

// A plan shows all three CPU baselines with their sources, says what it leaves out, and repeats no ratio of a paper.
func TestPlanShowsThreeBaselinesAndWhatIsNotCounted(t *testing.T) {
	out := must(t, "plan", "--model", "rm5", "--t", "3.0e6", "--size", "500TB")
	assert.Equal(t, out, must(t, "plan", "--model", "rm5", "--t", "3M", "--size", "0.5PB"),
		"numbers as people type them")
	for _, want := range []string{
		"PreSto's TorchArrow cores, modelled", "TorchArrow's loops, measured", "our kernels, measured",
		"measured on ", "not counted above:", "the network between storage and trainers", "the storage hosts",
		"t over p          8 ", "read bandwidth    12 ", "In storage loses: $313091",
		"figures: 2 measured, 8 modelled, 16 published, 36 assumed", "counted in no placement:",
	} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "are one constraint here", "the model tells computation and flash apart")
	assert.Contains(t, must(t, "plan", "--model", "dpp-rm1"), "are one constraint here")
	for _, ratio := range []string{"11.3x", "4.3x", "15.1x", "energy efficiency"} {
		assert.NotContains(t, out, ratio)
	}
	assert.Contains(t, must(t, "plan", "--model", "rm3", "--t", "1e6"), "has not measured rm3")
}

// TestPlanUnderAnImage: the model takes an image's parameters, and the plan shows each with its source. A tenth of the
// clock lets the decoder bind.
func TestPlanUnderAnImage(t *testing.T) {
	dir := t.TempDir()
	plan := func(khz string) (r capacity.Result) {
		path := dir + "/" + khz + ".mimg"
		must(t, "image", "build", specOf(t, khz), "--out", path)
		out := must(t, "plan", "--model", "rm5", "--t", "1e6", "--image", path, "--output", "json")
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return r
	}
	fast, slow := plan("200000"), plan("20000")
	assert.Contains(t, fast.PSource, "under image")
	assert.Contains(t, slow.PSource, "bound by decode")
	assert.Greater(t, fast.P, slow.P)
	// 504 dense, 42 x 20 ids and 42 lengths a row; 8 elements take one value each every 3 cycles.
	assert.InEpsilon(t, 20e6*8/3/(504+42*20+42), slow.P, 1e-4)
	assumes := strings.Join(slow.Assumes, "\n")
	assert.Contains(t, assumes, "image: clock_khz 20000 (requested)")
	assert.Contains(t, assumes, "image: parquet.initiation_interval 3 (assumed: a test)")
	assert.Contains(t, assumes, "no tool and no board achieved")

	must(t, "image", "build", "--stock", "--out", dir+"/stock.mimg")
	for says, args := range map[string][]string{
		"states no parameters":    {"--model", "rm5", "--image", dir + "/stock.mimg"},
		"rows of rm1 to rm5 only": {"--model", "dpp-rm1", "--image", dir + "/20000.mimg"},
		"none.mimg":               {"--model", "rm5", "--image", dir + "/none.mimg"},
	} {
		code, _, stderr := millrace(t, append([]string{"plan", "--t", "1e6"}, args...)...)
		assert.Equal(t, exitFailed, code, says)
		errorLine(t, stderr, says)
	}
}

// planOf returns the plan that flags make, as JSON.
func planOf(t *testing.T, args ...string) (r planResult) {
	t.Helper()
	out := must(t, append([]string{"plan", "--output", "json"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}

// figureOf returns a figure of a plan.
func figureOf(t *testing.T, r *planResult, name string) sizing.Figure {
	t.Helper()
	for _, f := range r.Placements.Figures {
		if f.Name == name {
			return f
		}
	}
	require.FailNow(t, "the plan has no figure "+name)
	return sizing.Figure{}
}

func TestPlanWritesAPage(t *testing.T) {
	page := must(t, "plan", "--model", "rm5", "--t", "3.0e6", "--size", "500TB", "--output", "html")
	assert.True(t, strings.HasPrefix(page, "<!DOCTYPE html>"))
	assert.Contains(t, page, "In storage loses: $313091")
	code, _, stderr := millrace(t, "plan", "--model", "rm5", "--t", "1", "--output", "pdf")
	assert.Equal(t, exitUsage, code)
	errorLine(t, stderr, "want table, json or html")
	code, _, stderr = millrace(t, "pipeline", "show", "rm1", "--output", "html")
	assert.Equal(t, exitUsage, code)
	errorLine(t, stderr, "want table or json")
}

// TestPlanTakesT from the table of models and GPUs, or from the rate of one GPU.
func TestPlanTakesT(t *testing.T) {
	four := planOf(t, "--model", "dpp-rm1", "--gpus", "32")
	assert.InEpsilon(t, 4*24.16*11.6e3, four.T, 1e-9)
	assert.Equal(t, sizing.Published, figureOf(t, &four, "job.t").Kind)
	presto := planOf(t, "--model", "rm5", "--gpus", "8")
	assert.Equal(t, sizing.Assumed, figureOf(t, &presto, "job.t").Kind)
	assert.Contains(t, figureOf(t, &presto, "job.t").Source, "only as 367 cores")
	assert.EqualValues(t, 367, presto.Baselines[0].Cores)
	own := planOf(t, "--model", "rm1", "--gpus", "4", "--t-gpu", "250k")
	assert.InEpsilon(t, 1e6, own.T, 1e-9)
}

// TestPlanTakesRates from a measurement: P of a drive, or the rate of our kernels.
func TestPlanTakesRates(t *testing.T) {
	line := func(engine string) string {
		return file(t, engine+".json", `[{"model": "rm3", "engine": "`+engine+`", "threads": 1, "codec": "none",
			"encoding": "plain", "rows_per_second": 200000, "input_bytes_per_second": 1.6e9,
			"output_bytes_per_second": 1.2e9, "timing": {"timing": "native"}}]`)
	}
	drive := planOf(t, "--model", "rm3", "--t", "1e6", "--p-from", line("drive"))
	assert.InDelta(t, 200e3, drive.P, 1e-9)
	assert.Contains(t, drive.PSource, "drive.json: engine drive")
	assert.InDelta(t, 6000, figureOf(t, &drive, "job.row_out").Value, 1e-9)
	kernels := planOf(t, "--model", "rm3", "--t", "1e6", "--p-from", line("cpu"))
	assert.Contains(t, kernels.PSource, "model of SmartSSD")
	assert.Equal(t, sizing.Measured, figureOf(t, &kernels, "core.kernels").Kind)
	assert.EqualValues(t, 5, kernels.Baselines[2].Cores, "1e6 / 200,000: both parts of the report have the rate")
	typed := planOf(t, "--model", "rm3", "--t", "1e6", "--p", "200k")
	assert.InDelta(t, 200e3, figureOf(t, &typed, "csd.p").Value, 1e-9)
}

// TestPlanOfFiles takes bytes and rows from the files' footers, or from a manifest.
func TestPlanOfFiles(t *testing.T) {
	data := generate(t, "--rows", "600", "--partitions", "2")
	var size int64
	for _, name := range []string{"/part-00000.parquet", "/part-00001.parquet"} {
		info, err := os.Stat(data + name)
		require.NoError(t, err)
		size += info.Size()
	}
	r := planOf(t, "--model", "rm1", "--t", "1e6", "--in", data)
	assert.InDelta(t, float64(size), figureOf(t, &r, "job.bytes").Value, 0)
	row := figureOf(t, &r, "job.row_in")
	assert.InEpsilon(t, float64(size)/600, row.Value, 1e-9)
	assert.Equal(t, sizing.Measured, row.Kind)

	m, err := dataset.NewManifest([]dataset.Partition{{Name: "a", Bytes: 5000, Rows: 50, RowGroups: []int64{50}}})
	require.NoError(t, err)
	b, err := m.MarshalJSON()
	require.NoError(t, err)
	r = planOf(t, "--model", "rm1", "--t", "1e6", "--size", "1TB", "--in", file(t, "manifest.json", string(b)))
	assert.InDelta(t, 1e12, figureOf(t, &r, "job.bytes").Value, 0, "--size holds")
	assert.InDelta(t, 100, figureOf(t, &r, "job.row_in").Value, 1e-9)
}

func TestPlanTakesFigures(t *testing.T) {
	own := file(t, "figures.yaml", "- {name: host.bays, value: 12, kind: measured, source: our servers}\n")
	r := planOf(t, "--model", "rm5", "--t", "3.0e6", "--size", "500TB", "--figures", own)
	assert.EqualValues(t, 14, r.Placements.Placements[0].Nodes)
	assert.Equal(t, string(sizing.DefaultFigures()), must(t, "plan", "--print-figures"))
}

func TestRefusedPlans(t *testing.T) {
	empty := file(t, "empty.json", `{"version":2,"partitions":[]}`)
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitFailed, "is not what millrace bench rm", []string{"--t", "1", "--p-from", empty}},
		{exitFailed, "no rows in 0 partitions:", []string{"--t", "1", "--in", empty}},
		{exitFailed, "not in canonical form", []string{"--t", "1", "--in", file(t, "m.json", `{"version": 2}`)}},
		{exitFailed, "is not a figure of the table",
			[]string{"--t", "1", "--figures", file(t, "f.yaml", "- {name: x, value: 1, kind: assumed, source: x}")}},
		{exitUsage, "compute asks for", []string{"--t", "1e6", "--figures",
			file(t, "g.yaml", "- {name: host.serve_cores, value: 32, kind: assumed, source: x}"), "--model", "rm5"}},
		{exitFailed, "read figures", []string{"--t", "1", "--figures", "none.yaml"}},
	} {
		code, _, stderr := millrace(t, append([]string{"plan"}, c.args...)...)
		assert.Equal(t, c.code, code, c.says)
		errorLine(t, stderr, c.says)
	}
	must(t, "plan", "--model", "ads", "--t", "1e6", "--bytes-per-row", "100", "--p", "100k")
}
