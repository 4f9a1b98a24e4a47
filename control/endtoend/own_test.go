package endtoend

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/trainmgr/remote"
)

// awaitOwn waits until each rank of a job has the given number of own workers that take its splits, or the job no
// longer runs.
func awaitOwn(ctx context.Context, t testing.TB, c *remote.Client, job string, workers int32) {
	t.Helper()
	awaitJob(ctx, t, c, job, "the ranks' own workers", func(s *apiv1.JobStatus) bool {
		ready := len(s.Ranks) > 0
		for _, r := range s.Ranks {
			ready = ready && r.OwnWorkers == workers
		}
		return ready || s.GetState() != "running" && s.GetState() != "preparing" && s.GetState() != "measuring"
	})
}

// awaitJob waits until a job meets a condition.
func awaitJob(ctx context.Context, t testing.TB, c *remote.Client, job, what string,
	holds func(*apiv1.JobStatus) bool) {
	t.Helper()
	var last *apiv1.JobStatus
	for ctx.Err() == nil {
		st, err := c.Get(ctx, job)
		if err == nil && holds(st) {
			return
		}
		last = st
		time.Sleep(20 * time.Millisecond)
	}
	require.FailNow(t, "it does not happen", "%s: %v", what, last)
}

// TestEachRanksOwnCPUs: two ranks in processes of their own each have a worker of their own beside the drives, which
// make half of the rank's splits each. The test kills a rank's worker, then a rank, then the leader, and starts them
// again. Every mini-batch comes once, in the order of the plan, with the bytes of one machine.
func TestEachRanksOwnCPUs(t *testing.T) {
	data := files(t, 2500, 2401, 1900, 2049)
	want := onOneMachine(t, data, 1)
	o := controlOptions(t.TempDir())
	o.Logger, o.Listen, o.DeadAfter = nil, freePorts(t, 1)[0], 2*time.Second
	member := start(t, role{Member: &o})
	url := member.said[0]
	a := startNode(t, nodeConfig("n0", []string{url}, makeDrive(t, "mem", data)), node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
	c := dial(t, url)
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	st, err := c.Submit(ctx, &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Ranks: 2, RankTail: "keep",
		Order: "deterministic", Offload: "0.5"})
	require.NoError(t, err)
	hire := func(rank uint32) *process {
		w := workerConfig("", []string{url})
		return start(t, role{Worker: &w, Serves: &worker.Rank{Job: st.Id, Number: rank}})
	}
	own0 := hire(0)
	hire(1)
	awaitOwn(ctx, t, c, st.Id, 1)
	dir := t.TempDir()
	models := []string{filepath.Join(dir, "0"), filepath.Join(dir, "1")}
	train := func(rank int) *process {
		return start(t, role{Trainer: &trainer{Control: []string{url}, Job: st.Id, Rank: uint32(rank), Model: models[rank],
			Every: 5, Step: 60 * time.Millisecond}})
	}
	trainers := []*process{train(0), train(1)}
	reach := func(n uint64) {
		awaitJob(ctx, t, c, st.Id, "progress", func(s *apiv1.JobStatus) bool { return s.Delivered >= n })
	}
	reach(20)
	own0.kill()
	reach(50)
	awaitJob(ctx, t, c, st.Id, "the killed worker is noticed", func(s *apiv1.JobStatus) bool {
		return s.Ranks[0].OwnWorkers == 0
	})
	hire(0)
	awaitOwn(ctx, t, c, st.Id, 1)
	trainers[0].kill()
	trainers[0] = train(0)
	reach(90)
	before, err := c.Get(ctx, st.Id)
	require.NoError(t, err)
	assert.Positive(t, before.Ranks[0].SplitsOwn)
	assert.Positive(t, before.Ranks[1].SplitsOwn)
	assert.Positive(t, before.SplitsHeld)
	assert.InDelta(t, 0.5, before.Ranks[1].ShareElsewhere, 0)
	member.kill()
	start(t, member.role)
	for _, tr := range trainers {
		select {
		case <-tr.done:
			require.NoError(t, tr.err)
		case <-ctx.Done():
			require.FailNow(t, "a trainer does not end")
		}
	}
	got := resultOf(t, [32]byte(st.Digest), models...)
	check(t, want, got, false)
	for _, path := range models {
		m, err := readModel(path)
		require.NoError(t, err)
		for i := 1; i < len(m.Steps); i++ {
			require.Less(t, m.Steps[i-1].Number, m.Steps[i].Number, "in the order of the plan")
		}
	}
}
