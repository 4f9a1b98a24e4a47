package allocation

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGoldenPolicies runs the cases of PreSto in golden/policy.json. The cases of FastFlow run in package offload,
// and the cases of the AutoScaler of tf.data service in package autoscale.
func TestGoldenPolicies(t *testing.T) {
	raw, err := os.ReadFile("../../fpga/unit/testdata/golden/policy.json")
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Policy string          `json:"policy"`
			T      json.RawMessage `json:"T"`
			P      json.RawMessage `json:"P"`
			Output json.RawMessage `json:"output"`
		} `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	run := 0
	for _, c := range file.Cases {
		if c.Policy != "PreSto ceil(T/P) devices" {
			continue
		}
		run++
		var tRate, p float64
		require.NoError(t, json.Unmarshal(c.T, &tRate))
		require.NoError(t, json.Unmarshal(c.P, &p))
		var want int
		require.NoError(t, json.Unmarshal(c.Output, &want))
		assert.Equal(t, want, WorkersFor(tRate, p))
		if tRate == 0 {
			continue // Allocate takes a T of 0 as "not measured", and every drive runs: TestAllocateWithoutTRunsAll
		}
		rows := make([]int64, 20)
		a, err := Allocate(tRate, workersOf(p, rows...), 0)
		require.NoError(t, err)
		assert.Equal(t, want, a.Drives)
	}
	assert.Equal(t, 4, run)
}
