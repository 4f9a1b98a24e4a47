package offload

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goldenCase is a case of golden/policy.json. Each policy has some of the fields.
type goldenCase struct {
	Policy     string          `json:"policy"`
	Name       string          `json:"name"`
	Gthp       float64         `json:"gthp"`
	Lthp       float64         `json:"lthp"`
	Rthp       float64         `json:"rthp"`
	Pcycle     float64         `json:"pcycle"`
	Dcycle     float64         `json:"dcycle"`
	Workers    int             `json:"n"`
	Candidates [][2]float64    `json:"candidates_rthp_ocycle"`
	Threshold  float64         `json:"speedup_threshold"`
	RatioLocal float64         `json:"ratio_local"`
	Output     json.RawMessage `json:"output"`
}

// TestGoldenPolicies runs the cases of FastFlow, paper and program, in golden/policy.json. The cases of PreSto run
// in package allocation, and the cases of the AutoScaler of tf.data service in package autoscale.
func TestGoldenPolicies(t *testing.T) {
	raw, err := os.ReadFile("../../fpga/unit/testdata/golden/policy.json")
	require.NoError(t, err)
	var file struct {
		Cases []goldenCase `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	ran := map[string]int{}
	for _, c := range file.Cases {
		ran[c.Policy]++
		switch c.Policy {
		case "fastflow paper Algorithm 1":
			t.Run(c.Name, func(t *testing.T) { runAlgorithm1(t, c) })
		case "fastflow as coded (ratio_local)":
			m := Metrics{Gthp: c.Gthp, Lthp: c.Lthp, Pcycle: c.Pcycle}
			got := fastFlowLocalRatio(&m, Candidate{Cut: All, Rthp: c.Rthp, Ocycle: c.Dcycle}, c.Workers)
			assert.InDelta(t, c.RatioLocal, got, 1e-15)
			if c.Workers == 1 { // the policy FastFlowCode, with the cut of Algorithm 1
				m.Candidates = []Candidate{{Cut: All, Rthp: c.Rthp, Ocycle: c.Dcycle}}
				d, err := Decide(FastFlowCode, m)
				require.NoError(t, err)
				assert.True(t, d.Offload)
				assert.InDelta(t, 1-c.RatioLocal, d.Ratio, 1e-15)
			}
		case "fastflow initial workers ceil((gthp-lthp)/rthp-0.1)":
			var want int
			require.NoError(t, json.Unmarshal(c.Output, &want))
			assert.Equal(t, want, FastFlowCodeWorkers(c.Gthp, c.Lthp, c.Rthp))
		}
	}
	assert.Equal(t, map[string]int{
		"fastflow paper Algorithm 1": 9, "fastflow as coded (ratio_local)": 4,
		"fastflow initial workers ceil((gthp-lthp)/rthp-0.1)": 3,
		"PreSto ceil(T/P) devices":                            4, "tf.data service AutoScaler": 1,
	}, ran, "a new policy or case wants a test")
}

func runAlgorithm1(t *testing.T, c goldenCase) {
	assert.InDelta(t, SpeedUpThreshold, c.Threshold, 0)
	var want struct {
		Offload      bool
		Candidate    string
		Upper, Lower float64
		Raw          float64 `json:"ratio_raw"`
		Clamped      float64 `json:"ratio_clamped"`
	}
	require.NoError(t, json.Unmarshal(c.Output, &want))
	m := Metrics{Gthp: c.Gthp, Lthp: c.Lthp, Pcycle: c.Pcycle}
	for i, candidate := range c.Candidates {
		m.Candidates = append(m.Candidates, Candidate{Cut: Cut(i + 1), Rthp: candidate[0], Ocycle: candidate[1]})
	}
	d, err := Decide(Paper, m)
	require.NoError(t, err)
	assert.Equal(t, want.Offload, d.Offload)
	assert.Equal(t, map[string]Cut{"": None, "p1": Transforms, "p2": ReadAndTransforms, "p3": All}[want.Candidate], d.Cut)
	assert.InDelta(t, want.Upper, d.Upper, 0)
	assert.InDelta(t, want.Lower, d.Lower, 0)
	assert.InDelta(t, want.Raw, d.Raw, 0)
	assert.InDelta(t, want.Clamped, d.Ratio, 0)
	assert.NotEmpty(t, d.Why)
}
