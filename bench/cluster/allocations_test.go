package cluster_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/bench/cluster/clustertest"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestTheServiceAllocatesNothingForRowsAndColumns counts the allocations of a storage node and of a launcher for each
// mini-batch of RM5, whose 546 columns become 588 features, over a unix socket. One more allocation for each row, or
// for each column, exceeds the bounds. What is counted is mostly net/http's, on both sides; the node's share is also
// that of the column chunks, which begin once for every 32 mini-batches. Heartbeats, leases and acknowledgements count,
// too. It takes long on a busy machine, because a node makes 500 mini-batches of RM5: sizes of buffers are learned in
// the first 100, and the others are many enough for a mean that repeats.
func TestTheServiceAllocatesNothingForRowsAndColumns(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const (
		batch      = 512
		warm       = 100 // mini-batches before the count, in which sizes are learned and memory is touched
		counted    = 400
		ofNode     = 700
		ofLauncher = 600
	)
	m, err := workload.Find("rm5")
	require.NoError(t, err)
	dir := t.TempDir()
	files, err := workload.Generate(t.Context(), workload.Options{
		Model: m, Rows: 64 * batch, Partitions: 2, Out: filepath.Join(dir, "data"),
	})
	require.NoError(t, err)
	uri, err := workload.MakeDrive(t.Context(), filepath.Join(dir, "flash"), files, nil)
	require.NoError(t, err)
	c, err := cluster.Start(t.Context(), clustertest.Program(t), cluster.Unix)
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	node, err := c.StartNode(t.Context(), cluster.NodeOptions{Name: "n0", Drive: uri, Threads: 1,
		Measure: 50 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, c.AwaitNodes(t.Context(), 1))
	document, err := pipeline.Document("rm5")
	require.NoError(t, err)
	spec := &apiv1.JobSpec{Pipeline: document, Plan: &apiv1.PlanOptions{Batch: batch}, Epochs: 1 << 10}

	taken, before, after := 0, int64(0), int64(0)
	var own, ownAfter runtime.MemStats
	err = c.Take(t.Context(), spec, remote.AttachOptions{}, func(*tensor.MiniBatch) (more bool, err error) {
		switch taken++; taken {
		case warm:
			if before, err = node.Allocations(t.Context()); err == nil {
				runtime.ReadMemStats(&own)
			}
		case warm + counted:
			runtime.ReadMemStats(&ownAfter)
			after, err = node.Allocations(t.Context())
		}
		return taken < warm+counted, err
	})
	require.NoError(t, err)
	require.Equal(t, warm+counted, taken)
	atNode := float64(after-before) / counted
	atLauncher := float64(ownAfter.Mallocs-own.Mallocs) / counted
	t.Logf("allocations for a mini-batch: %.0f by the node, %.0f by the launcher", atNode, atLauncher)
	assert.Positive(t, atNode)
	assert.Less(t, atNode, float64(ofNode))
	assert.Less(t, atLauncher, float64(ofLauncher))
}
