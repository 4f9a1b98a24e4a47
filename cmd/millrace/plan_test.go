package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/capacity"
)

// A plan shows all three CPU baselines with their sources, says what it leaves out, and repeats no ratio of a paper.
func TestPlanShowsThreeBaselinesAndWhatIsNotCounted(t *testing.T) {
	out := must(t, "plan", "--model", "rm5", "--t", "3.0e6", "--size", "500TB")
	assert.Equal(t, out, must(t, "plan", "--model", "rm5", "--t", "3M", "--size", "0.5PB"),
		"numbers as people type them")
	for _, want := range []string{
		"PreSto's TorchArrow cores, published", "TorchArrow's loops, measured here", "our kernels, measured here",
		"measured on ", "not counted:", "the network between storage and trainers", "the storage hosts",
		"t over p          8 ", "read bandwidth    12 ",
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
