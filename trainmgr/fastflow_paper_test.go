package trainmgr

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

// The tests of this file take the sentences of FastFlow about Gthp, the throughput of the trainer alone, which is T
// here. The decision that FastFlow makes from it (4.1 to 4.3), the keys of its metrics (5.2) and the counters (5.3) are
// in package offload, with tests of their own.

// TestThroughputCachesOneMiniBatch checks section 5.1: "First, to measure the GPU throughput of the model gradient
// computations (Gthp = thp(M)), FastFlow removes the prep stall by caching the preprocessed data of the first step in
// memory and reusing them to feed the GPUs." Here the reused mini-batch is a dummy, as in PreSto, so not even its data
// is preprocessed.
func TestThroughputCachesOneMiniBatch(t *testing.T) {
	f := newFake(t, 100_000, []int{0})
	var seen *tensor.MiniBatch
	steps := 0
	step := Step{Run: func(_ context.Context, mb *tensor.MiniBatch) error {
		if steps++; seen == nil {
			seen = mb
		}
		assert.Same(t, seen, mb)
		return nil
	}}
	o := Options{Pipeline: spec(), Ranks: []Step{step}, Throughput: ThroughputOptions{Time: time.Nanosecond, Steps: 6,
		Warmup: 3}}
	j, err := Submit(t.Context(), f, o)
	require.NoError(t, err)
	assert.Positive(t, j.Allocation().RowsPerSecond)
	assert.Zero(t, f.opened.Load(), "no split was preprocessed")

	// 5.1: "FastFlow executes only a few iterations and estimates the metrics without processing the entire data." The
	// paper runs 50 to 100 steps; how many run here, and for how long, the launcher says.
	assert.Equal(t, 3+6, steps)
}

// TestThroughputLeavesTheModelAsItWas checks section 4: "As profiling may change the weights of the model (because
// profiling performs model training with sample dataset) and affect the model accuracy, FastFlow creates a copy of the
// model". Here the launcher's step trains on a copy of its own, or Snapshot saves and restores the model.
func TestThroughputLeavesTheModelAsItWas(t *testing.T) {
	weights := []float32{0.5, -1, 3}
	hash := func() [sha256.Size]byte {
		var b []byte
		for _, w := range weights {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(w))
		}
		return sha256.Sum256(b)
	}
	before := hash()
	changed := false
	step := Step{
		Run: func(_ context.Context, mb *tensor.MiniBatch) error {
			for i := range weights {
				weights[i] += mb.Label[1]
			}
			changed = changed || hash() != before
			return nil
		},
		Snapshot: func() (func() error, error) {
			saved := append([]float32(nil), weights...)
			return func() error { copy(weights, saved); return nil }, nil
		},
	}
	dummy, err := Dummy(&tensor.Schema{Label: true}, 10, nil)
	require.NoError(t, err)
	_, err = Throughput(t.Context(), dummy, ThroughputOptions{Time: time.Nanosecond}, step)
	require.NoError(t, err)
	assert.True(t, changed, "the step trains")
	assert.Equal(t, before, hash())
}

// TestThroughputRunsAllRanksAtOnce checks section 4: "If the model is trained on multi-GPUs, FastFlow applies the
// distributed strategy to enable profiling on multiple GPUs". The first step of each rank waits here for the other
// rank, and T is the throughput of the slower one.
func TestThroughputRunsAllRanksAtOnce(t *testing.T) {
	const slowStep = 20 * time.Millisecond
	arrived := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	rank := func(own, other int, pause time.Duration) Step {
		first := true
		return Step{Run: func(ctx context.Context, _ *tensor.MiniBatch) error {
			if first {
				first = false
				close(arrived[own])
				select {
				case <-arrived[other]:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			time.Sleep(pause)
			return nil
		}}
	}
	dummy, err := Dummy(&tensor.Schema{Label: true}, 10, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rowsPerSecond, err := Throughput(ctx, dummy, ThroughputOptions{Time: time.Nanosecond}, rank(0, 1, 0),
		rank(1, 0, slowStep))
	require.NoError(t, err)
	assert.LessOrEqual(t, rowsPerSecond, 10/slowStep.Seconds())
}

// TestAKnownThroughputIsNotMeasured checks section 5.2: "FastFlow further reduces the profiling overhead by storing
// metrics and reloading them if the same input pipeline and model are trained again". Here the launcher keeps T and
// gives it back in the options; no store does it.
func TestAKnownThroughputIsNotMeasured(t *testing.T) {
	f := newFake(t, 1000, []int{0}, []int{1})
	var steps atomic.Int64
	step := Step{Run: func(context.Context, *tensor.MiniBatch) error { steps.Add(1); return nil }}
	j, err := Submit(t.Context(), f, Options{Pipeline: spec(), Ranks: []Step{step}, RowsPerSecond: 1500})
	require.NoError(t, err)
	assert.Zero(t, steps.Load())
	assert.InDelta(t, 1500, j.Allocation().RowsPerSecond, 0)
	assert.Equal(t, 2, j.Allocation().Drives)
}
