package control

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// leasesOn counts the leases that a rank holds on a node.
func (k *consumer) leasesOn(node string) (n int) {
	for _, g := range k.held {
		if g.Node == node {
			n++
		}
	}
	return n
}

// holdOn asks for leases until the rank holds some on a node.
func (k *consumer) holdOn(t *testing.T, node string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := k.lease(8, 0, 0.1)
		require.NoError(t, err)
		return k.leasesOn(node) > 0
	}, time.Minute, time.Millisecond, "no lease on %s", node)
}

// releaseOn gives the leases on a node back.
func (k *consumer) releaseOn(t *testing.T, node, reason string) {
	t.Helper()
	var leases []uint64
	for id, g := range k.held {
		if g.Node == node {
			leases = append(leases, id)
			delete(k.held, id)
		}
	}
	_, err := callControl(t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse, error) {
		return m.Release(ctx, &apiv1.ReleaseRequest{Id: k.id, Session: k.session, Leases: leases, Reason: reason})
	})
	require.NoError(t, err)
}

// TestAWorkerFillsTheGap: a worker makes the difference between T and the drives' throughput. It is killed while it
// has leases, comes back, and nothing is lost.
func TestAWorkerFillsTheGap(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	s, c := start(t, o)
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 4000)}})
	w := newWorker(t, "w")
	a.beats(t, c)
	stopW := w.beats(t, c)
	await(t, c, "a", "w")
	submit(t, c, &apiv1.JobSpec{Name: "job", TRowsPerSecond: 3000, Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	st := until(t, c, "job", "running")
	assert.Contains(t, st.Allocation, "workers without data are allowed for the rest")
	assert.Positive(t, st.Workers)
	k := attachedRank(t, c, st.Id, 0)
	k.holdOn(t, "w")
	assert.Equal(t, 2, k.leasesOn("a"), "holders first")
	for _, g := range k.held {
		assert.Equal(t, map[string]string{"a": "", "w": "any"}[g.Node], g.Reach)
	}
	st = get(t, c, "job")
	assert.EqualValues(t, 1, st.WorkersReady)
	assert.Positive(t, st.SplitsAny)
	assert.Positive(t, st.SplitsHeld)

	stopW()
	require.Eventually(t, func() bool {
		_, err := k.lease(0, 0, 0)
		require.NoError(t, err)
		return k.leasesOn("w") == 0
	}, time.Minute, 5*time.Millisecond, "revoked")
	assert.Equal(t, "dead", nodeRecord(t, s, "w").State)
	assert.Equal(t, 2, k.leasesOn("a"), "and only those")
	w.set(func(s *apiv1.NodeStatus) { s.Incarnation = "w-2" })
	w.beats(t, c)
	k.holdOn(t, "w")
	require.NoError(t, k.consume(0))
	st = until(t, c, "job", "done")
	assert.Len(t, k.got, 400)
	assert.Positive(t, st.Redelivered)
	require.Eventually(t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.finished[string(st.Digest)] > 0
	}, time.Minute, time.Millisecond, "the worker forgets the job")
}

// TestWorkersAreNotPreparedForNothing: while the drives sustain the trainer, no worker is asked to prepare the job.
func TestWorkersAreNotPreparedForNothing(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	w := newWorker(t, "w")
	a.beats(t, c)
	w.beats(t, c)
	await(t, c, "a", "w")
	for _, spec := range []*apiv1.JobSpec{
		{Name: "slow", TRowsPerSecond: 500}, {Name: "unknown"},
		{Name: "held", TRowsPerSecond: 5000, Placement: "held"},
	} {
		submit(t, c, spec)
		st := until(t, c, spec.Name, "running")
		assert.Zero(t, st.Workers)
		k := attachedRank(t, c, st.Id, 0)
		require.NoError(t, k.consume(0))
		until(t, c, spec.Name, "done")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Empty(t, w.prepared)
}

// TestAPool makes every split on workers without data: the node that holds the partition is not prepared, and is only
// read. While there is no worker, the job grants no lease and names the reason.
func TestAPool(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	a := liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	st := submit(t, c, &apiv1.JobSpec{Name: "job", Placement: "pool", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	k := newConsumer(t, c, st.Id, 0)
	require.Eventually(t, func() bool {
		st = get(t, c, "job")
		return strings.HasPrefix(st.State, "running") || strings.HasPrefix(st.State, "waiting")
	}, time.Minute, time.Millisecond, "%v", st)
	assert.Equal(t, "pool", st.Spec.Placement)
	require.NoError(t, k.attach(nil))
	r, err := k.lease(1, 0, 0)
	require.NoError(t, err)
	assert.Empty(t, r.Grants)
	assert.Contains(t, r.Waiting, "no drive that may make splits of the job holds partition p0")

	w := newWorker(t, "w")
	w.beats(t, c)
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 40)
	sources := w.preparedSources(t, st.Digest)
	require.Len(t, sources, 1)
	assert.Equal(t, "a", sources[0].Copies[0].Node)
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.Empty(t, a.prepared, "the node that is read from is not prepared")
}

// TestAStoreWithoutNodes: partitions that lie at URLs, which a worker's agent was given, make a data set and a job.
func TestAStoreWithoutNodes(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	p := partition(t, "p0", 400)
	w := newWorker(t, "w")
	w.set(func(s *apiv1.NodeStatus) {
		s.Partitions, s.Schemas, s.Inventory = []*apiv1.Partition{p}, []*apiv1.Schema{testSchema(t)}, []byte("with p0")
		s.Sources = []*apiv1.PartitionSource{{Partition: "p0", Url: "s3://bucket/p0", Identity: "etag"}}
	})
	v := newWorker(t, "v") // its agent was given no URLs, and it makes the same splits
	stopW := w.beats(t, c)
	v.beats(t, c)
	await(t, c, "w", "v")
	st := submit(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	require.Eventually(t, func() bool { return get(t, c, "job").WorkersReady == 2 }, time.Minute, time.Millisecond)
	k := attachedRank(t, c, st.Id, 0)
	require.NoError(t, k.consume(3))
	sources, err := locate(t, c, st.Digest, "p0")
	require.NoError(t, err)
	assert.Equal(t, "s3://bucket/p0", sources[0].Url)
	assert.Equal(t, "etag", sources[0].Identity)
	for _, n := range []*fakeNode{w, v} {
		assert.Equal(t, "s3://bucket/p0", n.preparedSources(t, st.Digest)[0].Url)
	}

	stopW() // no live agent knows where p0 lies any more
	require.Eventually(t, func() bool {
		return strings.Contains(get(t, c, "job").WaitsFor, "no live node holds it")
	}, time.Minute, time.Millisecond)
	w.beats(t, c)
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 40)
}

// TestWhatADrainedDriveHoldsIsMadeElsewhere: a worker makes the splits of a drained drive, whose bytes can still be
// read.
func TestWhatADrainedDriveHoldsIsMadeElsewhere(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	w := newWorker(t, "w")
	a.beats(t, c)
	w.beats(t, c)
	await(t, c, "a", "w")
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	k := attachedRank(t, c, st.Id, 0)
	k.holdOn(t, "a")
	assert.Zero(t, k.leasesOn("w"))
	a.set(func(s *apiv1.NodeStatus) { s.Drives[0].State = "loading image" })
	require.NoError(t, k.consume(0))
	st = until(t, c, "job", "done")
	assert.Len(t, k.got, 40)
	assert.Positive(t, st.SplitsAny, "the worker made the rest")
}

// TestEachRankHasItsOwnWorker: a worker that serves one rank alone, like the trainer's own CPUs, gets splits of that
// rank only.
func TestEachRankHasItsOwnWorker(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	st := submit(t, c, &apiv1.JobSpec{Name: "job", Ranks: 2, Placement: "trainer"})
	for rank, name := range []string{"w0", "w1", "w2"} { // the job has no rank 2
		w := newWorker(t, name)
		w.set(func(s *apiv1.NodeStatus) { s.Drives[0].Serves = &apiv1.RankName{Job: st.Id, Rank: uint32(rank)} })
		w.beats(t, c)
	}
	for rank, name := range []string{"w0", "w1"} {
		k := newConsumer(t, c, st.Id, uint32(rank))
		require.Eventually(t, func() bool { return k.attach(nil) == nil }, time.Minute, 10*time.Millisecond)
		k.holdOn(t, name)
		assert.Len(t, k.held, k.leasesOn(name), "of its own worker alone")
		require.NoError(t, k.consume(0))
	}
	st = until(t, c, "job", "done")
	assert.Zero(t, st.SplitsHeld)
}

// TestAWorkerThatFailsIsSetAside: operators see the reason, and the report of the worker alone does not end the job.
func TestAWorkerThatFailsIsSetAside(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 4000)}})
	w := newWorker(t, "w")
	a.beats(t, c)
	w.beats(t, c)
	await(t, c, "a", "w")
	st := submit(t, c, &apiv1.JobSpec{Name: "job", Placement: "pool", Plan: &apiv1.PlanOptions{SplitBatches: 1}})
	require.Eventually(t, func() bool { return get(t, c, "job").WorkersReady == 1 }, time.Minute, time.Millisecond)
	k := attachedRank(t, c, st.Id, 0)
	k.holdOn(t, "w")
	k.releaseOn(t, "w", "data: page 3 of column a")
	for range 2 {
		k.holdOn(t, "w") // a second later
		k.releaseOn(t, "w", "node: read http://a: connection refused")
	}
	var trouble []*apiv1.WorkerTrouble
	require.Eventually(t, func() bool {
		trouble = nodeRecord(t, s, "w").Troubles
		return len(trouble) == 1 && trouble[0].SetAside != ""
	}, time.Minute, time.Millisecond)
	assert.Equal(t, "w", trouble[0].Drive)
	assert.GreaterOrEqual(t, trouble[0].Failures, uint64(3))
	assert.Contains(t, trouble[0].SetAside, "connection refused")
	assert.Positive(t, trouble[0].SetAsideSeconds)
	assert.Empty(t, nodeRecord(t, s, "a").Troubles)
	assert.Equal(t, "running", get(t, c, "job").State, "one worker's word that the data are bad is not enough")
}
