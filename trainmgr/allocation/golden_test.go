package allocation

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGoldenPolicies runs the cases of PreSto in golden/policy.json and names the others: the policies of FastFlow and
// of the autoscaler of tf.data service are not implemented.
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
	later := map[string]bool{
		"fastflow paper Algorithm 1": true, "fastflow as coded (ratio_local)": true, "tf.data service AutoScaler": true,
		"fastflow initial workers ceil((gthp-lthp)/rthp-0.1)": true,
	}
	run := 0
	for i, c := range file.Cases {
		if c.Policy != "PreSto ceil(T/P) devices" {
			assert.True(t, later[c.Policy], "case %d, policy %q, is neither run nor named", i, c.Policy)
			continue
		}
		run++
		var tRate, p float64
		require.NoError(t, json.Unmarshal(c.T, &tRate))
		require.NoError(t, json.Unmarshal(c.P, &p))
		if tRate == 0 {
			continue // a T of 0 means "not measured" here, and then every drive runs: TestAllocateWithoutTRunsAll
		}
		var want int
		require.NoError(t, json.Unmarshal(c.Output, &want))
		rows := make([]int64, 20)
		a, err := Allocate(tRate, workersOf(p, rows...), 0)
		require.NoError(t, err)
		assert.Equal(t, want, a.Drives)
	}
	assert.Equal(t, 4, run)
}
