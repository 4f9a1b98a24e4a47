package autoscale

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGoldenTFData runs the cases of tf.data service in golden/policy.json.
func TestGoldenTFData(t *testing.T) {
	raw, err := os.ReadFile("../../fpga/unit/testdata/golden/policy.json")
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Policy     string          `json:"policy"`
			Targets    []float64       `json:"target_times_us"`
			Processing []float64       `json:"processing_times_us"`
			Output     json.RawMessage `json:"output"`
		} `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	ran := 0
	for _, c := range file.Cases {
		if c.Policy != "tf.data service AutoScaler" {
			continue
		}
		ran++
		var want int
		require.NoError(t, json.Unmarshal(c.Output, &want))
		assert.Equal(t, want, TFDataWorkers(c.Targets, c.Processing))
	}
	assert.Equal(t, 1, ran)
}

func TestTFDataWorkersTakesAnyTimes(t *testing.T) {
	assert.Zero(t, TFDataWorkers(nil, []float64{1}))
	assert.Zero(t, TFDataWorkers([]float64{1}, nil))
	assert.Zero(t, TFDataWorkers([]float64{math.NaN(), -1, 0}, []float64{1}))
	assert.Equal(t, 1, TFDataWorkers([]float64{10}, []float64{1}), "at least one")
	assert.Equal(t, 10, TFDataWorkers([]float64{1}, []float64{10, math.Inf(1), math.NaN()}))
	assert.Equal(t, math.MaxInt32, TFDataWorkers([]float64{1e-300}, []float64{1e300}))
}
