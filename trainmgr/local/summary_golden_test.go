package local_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/summary"
	summaries "github.com/millrace/millrace/sdk/summary/reducer"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// goldenStatistics reads the case of stats_ops.json whose name has a prefix.
func goldenStatistics(t *testing.T, prefix string, into any) {
	t.Helper()
	document, err := os.ReadFile("../../fpga/unit/testdata/golden/stats_ops.json")
	require.NoError(t, err)
	var file struct{ Cases []json.RawMessage }
	require.NoError(t, json.Unmarshal(document, &file))
	for _, c := range file.Cases {
		var named struct{ Fn string }
		require.NoError(t, json.Unmarshal(c, &named))
		if strings.HasPrefix(named.Fn, prefix) {
			require.NoError(t, json.Unmarshal(c, into))
			return
		}
	}
	t.Fatalf("no case of %s", prefix)
}

// denseOf returns the dense features of a pipeline's rows, in the order of the data set.
func denseOf(t *testing.T, c local.Config, spec *pipeline.Spec) (dense []float32) {
	t.Helper()
	m, err := local.Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	job, err := trainmgr.Submit(t.Context(), m, trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone,
		Order: dataset.Deterministic, AllDrives: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, job.Close()) }()
	for mb, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		dense = append(dense, mb.Dense...)
	}
	return dense
}

// TestGoldenFillMedian makes the summary of the golden vector's column and fills its null with the median, on every
// engine.
func TestGoldenFillMedian(t *testing.T) {
	var c struct {
		Input  []*float32
		Median float64
		Output []float32
	}
	goldenStatistics(t, "FillMedian", &c)
	type row struct {
		X *float32 `parquet:"x,optional"`
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	rows := make([]row, len(c.Input))
	for i, x := range c.Input {
		rows[i].X = x
	}
	require.NoError(t, pq.WriteFile(path, rows))
	spec, err := pipeline.Parse([]byte("dense: [{columns: [x], ops: [fill_median: s]}]\nstatistics: {s: }\n"))
	require.NoError(t, err)
	for _, engine := range []host.Engine{host.EngineDrive, host.EngineReference, host.EngineCPU} {
		config := local.Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{Engine: engine}}
		made := runPass(t, config, summaries.Pass{Pipeline: spec, Name: "s"})
		require.Len(t, made.Columns, 1)
		assert.Equal(t, c.Median, made.Columns[0].Quantiles[summary.Quantiles/2].Real())
		bound, err := spec.BindStatistics("s", made.Summary, summary.Digest{})
		require.NoError(t, err)
		assert.Equal(t, c.Output, denseOf(t, config, bound), engine)
	}
}

// TestMedianOfFloat64 checks that the median of a float64 column is one of its values, and not the float32 nearest to
// it, and that dense gets the nearest float32, on every engine. A decimal is summarised as the float64 nearest to it.
func TestMedianOfFloat64(t *testing.T) {
	type row struct {
		X *float64 `parquet:"x,optional"`
		D *int64   `parquet:"d,optional,decimal(1:9)"`
	}
	values, unscaled := []float64{0.1, 0.3, 16777217.25}, []int64{1, 3, 5}
	rows := []row{{}}
	for i := range values {
		rows = append(rows, row{X: &values[i], D: &unscaled[i]})
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	require.NoError(t, pq.WriteFile(path, rows))
	spec, err := pipeline.Parse([]byte("dense:\n  - {columns: [x], ops: [fill_median: s]}\n" +
		"  - {columns: [d], ops: [decimal: float64, fill_median: s]}\nstatistics: {s: }\n"))
	require.NoError(t, err)
	for _, engine := range []host.Engine{host.EngineDrive, host.EngineReference, host.EngineCPU} {
		config := local.Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{Engine: engine}}
		made := runPass(t, config, summaries.Pass{Pipeline: spec, Name: "s"})
		require.Len(t, made.Columns, 2)
		for _, c := range made.Columns {
			assert.Equal(t, summary.RealValue(0.3), c.Quantiles[summary.Quantiles/2], c.Name)
			assert.EqualValues(t, []int64{4, 1, 3, 3}, []int64{c.Rows, c.NullRows, c.Values, c.Distinct}, c.Name)
		}
		assert.Equal(t, summary.RealValue(16777217.25), *made.Columns[0].Greatest)
		bound, err := spec.BindStatistics("s", made.Summary, summary.Digest{})
		require.NoError(t, err)
		assert.Equal(t, []float32{0.3, 0.3, 0.1, 0.1, 0.3, 0.3, 16777218, 0.5}, denseOf(t, config, bound), engine)
	}
}
