package endtoend

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestAWorkerWithACard: a job that a worker makes alone on a drive without flash, which the worker reaches over
// NVMe/TCP. The drive is killed while splits are under way: the worker says why it takes no splits, their leases come
// back, and each mini-batch comes once, and is that of one machine, after the drive was started again. Another worker,
// whose drive is in its own process, makes the same mini-batches.
func TestAWorkerWithACard(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049)
	want := onOneMachine(t, data, 1)
	s := startControl(t, controlOptions(t.TempDir()))
	runNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data)))
	k := card{Listen: freePorts(t, 1)[0], NQN: nqn, SLM: 32 << 20}
	served := start(t, role{Card: &k})
	remoteCard := workerConfig("w0", []string{s.URL()})
	remoteCard.Drive, remoteCard.Threads = served.said[0], 0
	w := startWorker(t, remoteCard)
	defer func() { assert.NoError(t, w.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	awaitReady(t, c, "w0")
	assert.Equal(t, []string{"card", "any", "card"}, describeWorker(t, c, "w0"))

	take := func(meanwhile func(taken int)) *result {
		t.Helper()
		st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Placement: "pool"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		j, err := c.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 40_000, Deadline: 2 * time.Second})
		require.NoError(t, err)
		got := newResult()
		for mb, err := range j.MiniBatches(ctx) {
			require.NoError(t, err)
			got.add(t, mb)
			meanwhile(len(got.sums))
		}
		require.NoError(t, j.Close())
		st = awaitDone(t, c, st.Id)
		assert.Zero(t, st.SplitsHeld)
		assert.Positive(t, st.SplitsAny)
		return got
	}
	check(t, want, take(func(taken int) {
		if taken != 12 {
			return
		}
		served.kill()
		assert.Contains(t, awaitDriveState(t, c, "w0", false), "failed: ")
		served = start(t, role{Card: &k})
		awaitDriveState(t, c, "w0", true)
	}), false)

	_, err := c.Drain(t.Context(), "w0", true)
	require.NoError(t, err)
	own := workerConfig("w1", []string{s.URL()})
	own.Drive, own.Threads = "mem:?size=0&slm=64MiB&commands=standard", 0
	other := startWorker(t, own)
	defer func() { assert.NoError(t, other.Close()) }()
	awaitReady(t, c, "w1")
	check(t, want, take(func(int) {}), false)
}

// workerDrive returns the only drive of a worker, as the control plane lists it, or nil.
func workerDrive(t *testing.T, c *remote.Client, name string) *apiv1.Drive {
	t.Helper()
	list, err := c.Nodes(t.Context())
	require.NoError(t, err)
	for _, n := range list {
		if s := n.GetStatus(); s.GetName() == name && len(s.Drives) == 1 {
			return s.Drives[0]
		}
	}
	return nil
}

// describeWorker returns the name, the reach and the processor of a worker's drive.
func describeWorker(t *testing.T, c *remote.Client, name string) []string {
	t.Helper()
	d := workerDrive(t, c, name)
	require.NotNil(t, d)
	return []string{d.Name, d.Reach, d.ComputesOn}
}

// awaitDriveState waits until a worker's drive is ready, or is not, and returns its state.
func awaitDriveState(t *testing.T, c *remote.Client, name string, ready bool) string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if d := workerDrive(t, c, name); d != nil && (d.State == "ready") == ready {
			return d.State
		}
	}
	require.FailNow(t, "the drive's state does not change", "%s: want ready %t", name, ready)
	return ""
}
