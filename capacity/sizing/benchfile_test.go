package sizing

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measured is a line of bench rm --output json.
func measured(engine, timing string) string {
	return `[{"model": "rm5", "engine": "` + engine + `", "threads": 2, "codec": "none", "encoding": "plain", "rows": 7,
		"rows_per_second": 1000, "input_bytes_per_second": 8.9e6, "output_bytes_per_second": 5.9e6,
		"timing": ` + timing + `}, {"model": "rm1", "engine": "drive", "threads": 1, "rows_per_second": 5}]`
}

// spread is a line of bench rm with a relative spread of the rate.
func spread(share string) string {
	return strings.Replace(measured("drive", "{}"), `"rows": 7`, `"p_spread_share": `+share, 1)
}

func TestTakeBench(t *testing.T) {
	j := rm5(t, 1e6, 1e12)
	require.NoError(t, j.takeBench([]byte(measured("drive", `{"timing": "native"}`)), "bench.json"))
	assert.InDelta(t, 1000, j.Drive.P.Value, 0)
	assert.Equal(t, Measured, j.Drive.P.Kind)
	assert.Contains(t, j.Drive.P.Source, "bench.json: engine drive, 2 threads, none, plain, timing native")
	assert.Zero(t, j.Drive.Memory.Value, "the measured rate contains it")
	assert.InDelta(t, 8900, j.RowIn.Value, 1e-9)
	assert.InDelta(t, 5900, j.RowOut.Value, 1e-9)
	in := placement(t, plan(t, j, table(t)), InStorage)
	assert.EqualValues(t, 1000, count(t, in, "compute", Drives))
	for _, k := range in.Constraints {
		assert.NotEqual(t, "device memory", k.Name)
	}

	require.NoError(t, j.takeBench([]byte(measured("drive", `{"timing": "smartssd", "modelled": true}`)), "bench.json"))
	assert.Equal(t, Modelled, j.Drive.P.Kind)

	require.NoError(t, j.takeBench([]byte(spread("0.05")), "bench.json"))

	j = rm5(t, 1e6, 1e12)
	drive := j.Drive
	require.NoError(t, j.takeBench([]byte(measured("cpu", `{"timing": "native"}`)), "bench.json"))
	assert.InDelta(t, 500, j.KernelsCore.Value, 0, "a core's part of two threads")
	assert.Equal(t, drive, j.Drive)
}

func TestRefusedBench(t *testing.T) {
	for document, says := range map[string]string{
		"{":                         "is not what millrace bench rm",
		"[]":                        "0 results",
		measured("reference", "{}"): "not a placement",
		spread("0.06"): "f: the rate of rm5 did not settle: its spread is 6 %, and a plan " +
			"wants at most 5 %",
		spread("-1"):                        "its spread is -100 %",
		`[{"model": "rm5", "threads": 1}]`:  "want numbers above 0",
		`[{"model": "rm1", "engine": "x"}]`: "--models rm5",
		`[{"model": "rm5", "engine": "cpu", "threads": 0, "rows_per_second": 1}]`:              "0 threads",
		measured("cpu", "{}")[:len(measured("cpu", "{}"))-1] + "," + measured("cpu", "{}")[1:]: "2 results",
	} {
		err := rm5(t, 1, 1).takeBench([]byte(document), "f")
		require.ErrorIs(t, err, ErrJob, document)
		assert.ErrorContains(t, err, says, document)
	}
}
