package rm

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk"
)

// TestEveryEngineIsMeasured: the counts equal the work done, on every engine alike, and the scheduler's processors
// are given back.
func TestEveryEngineIsMeasured(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	procs := runtime.GOMAXPROCS(0)
	var bytesIn, bytesOut float64
	for _, o := range []Options{
		{}, {Threads: 2}, {Engine: host.EngineDrive}, {Engine: host.EngineDrive, Commands: sdk.Standard, Threads: 2},
		{Codec: "zstd", Encoding: "dictionary"},
	} {
		o.Models, o.Rows, o.Time = []string{"rm1"}, 2000, time.Millisecond
		results, err := Run(t.Context(), o)
		require.NoError(t, err)
		require.Len(t, results, 1)
		r := results[0]
		assert.Equal(t, "rm1", r.Model)
		assert.Zero(t, r.Rows%2000, "whole turns only: %d rows", r.Rows)
		assert.InEpsilon(t, float64(r.Rows)/r.ElapsedSeconds, r.RowsPerSecond, 1e-9)
		assert.True(t, r.Spread > 0 && r.Spread <= 1, r.Spread)
		out := r.OutputBytesPerSecond / r.RowsPerSecond
		in := r.InputBytesPerSecond / r.RowsPerSecond
		if bytesIn == 0 {
			bytesIn, bytesOut = in, out
			assert.InDelta(t, 4*(1+13)+8*26, in, 10, "bytes of a row of RM1 as stored: chunk bytes")
		}
		assert.InEpsilon(t, bytesOut, out, 1e-6, "tensor bytes of a row")
		if o.Codec == "" {
			assert.InEpsilon(t, bytesIn, in, 0.01)
		}
		for _, share := range []float64{r.MoveShare, r.DecodeShare, r.TransformShare, r.FetchShare, r.OtherShare} {
			assert.GreaterOrEqual(t, share, 0.0)
		}
		assert.Equal(t, procs, runtime.GOMAXPROCS(0))
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestReferenceAndLists(t *testing.T) {
	for engine, model := range map[host.Engine]string{host.EngineReference: "rm1", host.EngineCPU: "rm2"} {
		results, err := Run(t.Context(),
			Options{Models: []string{model}, Rows: 20, Time: time.Millisecond, Engine: engine})
		require.NoError(t, err)
		assert.EqualValues(t, engine, results[0].Engine)
		assert.Positive(t, results[0].Rows)
	}
}

func TestRefusals(t *testing.T) {
	for _, o := range []Options{
		{Models: []string{"rm9"}}, {Models: []string{"rm1"}, Rows: 5, Codec: "lzo"},
		{Models: []string{"rm1"}, Rows: 5, Coverage: 2},
	} {
		_, err := Run(t.Context(), o)
		require.ErrorIs(t, err, workload.ErrOptions)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Options{Models: []string{"rm1"}, Rows: 100})
	require.ErrorIs(t, err, context.Canceled)
}

// TestResultsJSON pins the names that others read.
func TestResultsJSON(t *testing.T) {
	b, err := json.Marshal(Result{})
	require.NoError(t, err)
	for _, key := range []string{"model", "engine", "threads", "rows", "rows_per_second", "p_spread_share",
		"cpu_seconds", "cpu_rows_per_second", "input_bytes_per_second", "output_bytes_per_second",
		"move_share", "decode_share", "transform_share", "fetch_share", "other_share"} {
		assert.Contains(t, string(b), `"`+key+`":`)
	}
}

// TestCriteoRows: text and packed rows hold the same, and their shape is Criteo's.
func TestCriteoRows(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, threads := range []int{1, 2} {
		results, err := Run(t.Context(),
			Options{Models: []string{CriteoTSV, CriteoBinary}, Rows: 20_000, Time: time.Millisecond, Threads: threads})
		require.NoError(t, err)
		require.Len(t, results, 2)
		for _, r := range results {
			assert.Zero(t, r.Rows%20_000)
			assert.Equal(t, r.Model, r.Encoding)
			assert.InDelta(t, 4*(1+13+26), r.OutputBytesPerSecond/r.RowsPerSecond, 0.1, "bytes of tensors a row")
		}
		assert.InDelta(t, 250, results[0].InputBytesPerSecond/results[0].RowsPerSecond, 3, "day 11 has 250 bytes a row")
		assert.InDelta(t, 160, results[1].InputBytesPerSecond/results[1].RowsPerSecond, 0.1)
	}
	var reads [2][]text.Row
	for i, name := range []string{CriteoTSV, CriteoBinary} {
		path, err := generateCriteo(t.TempDir(), name, 300, 7)
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if name == CriteoTSV {
			reads[i], _, _, err = text.Reference(data, text.Options{})
		} else {
			reads[i], err = text.ReferenceBinary(data)
		}
		require.NoError(t, err)
		require.Len(t, reads[i], 300)
	}
	for r := range reads[0] {
		for f := range reads[0][r] {
			require.Equal(t, reads[0][r][f].Value, reads[1][r][f].Value, "row %d, field %d", r, f)
		}
	}
	require.NoError(t, Known("rm5"))
	require.ErrorIs(t, Known("criteo"), workload.ErrOptions)
	_, err := generateCriteo(filepath.Join(t.TempDir(), "none"), CriteoTSV, 1, 0)
	require.ErrorContains(t, err, "write criteo-tsv")
}
