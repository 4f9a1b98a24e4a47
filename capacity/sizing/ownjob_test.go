package sizing

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/capacity/rowcost"
	"github.com/millrace/millrace/fpga/timing"
)

// costOf is a row of some values that are decoded, 100 bytes in and 50 out.
func costOf(decoded float64) *rowcost.Cost {
	return &rowcost.Cost{Row: timing.Work{FlashBytes: 100, OutBytes: 50, Decoded: decoded}, Columns: 3}
}

// TestOwnJob: 100 values a row go through eight decoders at 223 MHz. Rates that were measured on other rows are not
// used.
func TestOwnJob(t *testing.T) {
	j := OwnJob("dpp-rm1", costOf(100), 1000, "2 files")
	assert.InEpsilon(t, 8*223e6/100, j.Drive.P.Value, 1e-9)
	assert.InEpsilon(t, 16*223e6/100, j.Card.P.Value, 1e-9, "twice the units")
	assert.InDelta(t, 100, j.RowIn.Value, 0)
	assert.InDelta(t, 50, j.RowOut.Value, 0)
	assert.Contains(t, j.RowIn.Source, "footers of 2 files: compressed bytes of the 3 columns")

	j.T, j.Bytes = figureOf(1e6), figureOf(1e12)
	r := plan(t, j, table(t))
	assert.Empty(t, r.Tiers, "the name of a paper's model does not make it one")
	for name, says := range map[string]string{"cpu-pool-presto": "of its own models' rows",
		"cpu-pool-loops":   "bench-peers",
		"presto-a100-pool": "of its own models' rows", "presto-u280-pool": "of its own models' rows",
		"node-cpu": "measure it on this data", "cpu-pool-kernels": "--p-from", "trainer-kernels": "--p-from"} {
		assert.Contains(t, placement(t, r, name).NoFigure, says, name)
	}
	j.KernelsCore = figureOf(1e5)
	assert.Empty(t, placement(t, plan(t, j, table(t)), "cpu-pool-kernels").NoFigure)
}

// report returns a job's report with an engine, and with a relative spread of P.
func report(engine, spread string) []byte {
	return []byte(`{"job": "7a7a", "timing": {"timing": "u280", "modelled": true}, "per_drive": [
		{"name": "d0", "engine": "` + engine + `", "p_rows_per_second": 30, "p_spread_share": ` + spread + `,
			"rows": 10, "moved_bytes": 120, "unneeded_bytes": 20, "out_bytes": 50}]}`)
}

func TestTakeRates(t *testing.T) {
	j := &Job{Model: "ads"}
	require.NoError(t, j.TakeRates(report("drive (vendor)", "0.05"), "r.json"))
	assert.InDelta(t, 30, j.Drive.P.Value, 0)
	assert.Equal(t, Modelled, j.Drive.P.Kind)
	assert.InDelta(t, 10, j.RowIn.Value, 1e-9, "without what was moved and no row needed")
	assert.InDelta(t, 5, j.RowOut.Value, 1e-9)
	assert.Zero(t, j.KernelsCore.Value)

	own := &Job{Model: "ads", Own: true, RowIn: figureOf(7)}
	require.NoError(t, own.TakeRates(report("cpu", "0"), "r.json"))
	assert.InDelta(t, 30, own.KernelsCore.Value, 0)
	assert.Zero(t, own.Drive.P.Value)
	assert.InDelta(t, 7, own.RowIn.Value, 0, "the footers' bytes hold")

	for says, text := range map[string]string{
		`the engine "reference"`: string(report("reference", "0")), "names no drive": `{"job": "7a"}`,
		"d0 did not settle: its spread is 100 %":          string(report("cpu", "1")),
		"its spread is 6 %, and a plan wants at most 5 %": string(report("drive", "0.06")),
		"its spread is -1 %":                              string(report("drive", "-0.01")),
		"P of 0 rows/s":                                   `{"job": "7a", "per_drive": [{"engine": "cpu"}]}`,
		"0 bytes in": `{"job": "7a", "per_drive": [{"engine": "cpu", "p_rows_per_second": 1,
			"rows": -1}]}`,
		"-1 bytes in": `{"job": "7a", "per_drive": [{"engine": "cpu", "p_rows_per_second": 1,
			"unneeded_bytes": 1}]}`,
	} {
		err := own.TakeRates([]byte(text), "r.json")
		require.ErrorIs(t, err, ErrJob, says)
		assert.ErrorContains(t, err, says)
	}
}

// FuzzTakeRates: a file is refused, or its rates are above 0.
func FuzzTakeRates(f *testing.F) {
	f.Add(report("cpu", "0.01"))
	f.Add([]byte(`[{"model": "ads", "engine": "cpu", "threads": 1, "rows_per_second": 1, "input_bytes_per_second": 1,
		"output_bytes_per_second": 1}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j := &Job{Model: "ads"}
		if err := j.TakeRates(b, "x"); err != nil {
			require.ErrorIs(t, err, ErrJob)
			return
		}
		require.True(t, j.Drive.P.Value > 0 || j.KernelsCore.Value > 0)
	})
}
