package trainmgr

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

// TestSubmitTakesTheStepsOfPreStoIVB takes the sentences of PreSto, section IV-B and figure 9, in their order, and
// checks for each what Submit and the job do: T is measured on a step given by the test, P comes from a fake of three
// drives, and T/P decides how many drives run. There is no GPU, no SmartSSD and no preprocessing, and none of the
// paper's figures is reproduced; TestLoopPreSto and TestGuestPreSto in host/extents carry data through software drives.
func TestSubmitTakesTheStepsOfPreStoIVB(t *testing.T) {
	f := newFake(t, 1000, []int{0}, []int{1}, []int{2})
	var measured atomic.Int64
	step := Step{Run: func(_ context.Context, mb *tensor.MiniBatch) error {
		measured.Add(1)
		assert.Equal(t, 10, mb.Rows)
		time.Sleep(5 * time.Millisecond)
		return nil
	}}
	o := Options{Pipeline: spec(), Ranks: []Step{step}, Throughput: ThroughputOptions{Time: 20 * time.Millisecond}}

	// "the train manager receives important information about the target training job (e.g., model configuration for
	// training/preprocessing, mini-batch size, and other metadata)"
	j, err := Submit(t.Context(), f, o)
	require.NoError(t, err)

	// "the train manager measures the maximum training throughput achievable with GPUs for the given training job. This
	// is done by supplying the GPUs with dummy mini-batch inputs"
	assert.Positive(t, measured.Load())
	assert.Positive(t, j.Allocation().RowsPerSecond)

	// "The train manager then initializes the preprocess manager, sending information relevant to the preprocessing
	// jobs"
	require.Contains(t, f.jobs, j.Digest())
	assert.Equal(t, o.Pipeline, f.jobs[j.Digest()].Pipeline)

	// "the preprocess manager measures offline the maximum preprocessing throughput delivered with a single SmartSSD
	// device under the given preprocessing configuration (P)"
	assert.Equal(t, map[string]float64{"drive0": 1000, "drive1": 1000, "drive2": 1000}, j.Allocation().P)

	// "By dividing the maximum training throughput with the per-SmartSSD preprocessing throughput (T/P), the preprocess
	// manager derives the number of SmartSSD devices that need to be allocated"
	tp := j.Allocation().RowsPerSecond / 1000
	assert.Equal(t, min(3, int(tp)+1), j.Allocation().Drives)
	assert.Zero(t, f.opened.Load(), "nothing is preprocessed before the trainer asks")

	// "Once the mini-batch inputs are ready, they are converted into a train-ready tensor format ... and copied over to
	// the input queue within the train manager"; "the train manager transfers the mini-batch from its input queue"
	rows, _ := take(t, j, -1)
	assert.Len(t, rows, 3000)
	assert.LessOrEqual(t, f.most.Load(), int64(2*j.Allocation().Drives), "two streams a drive")
}
