package ledger

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/dataset"
)

// heapBytes returns the bytes of live objects.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestWorkersKeepNoSplits: the ledger of an epoch of a million splits does not grow with the workers whose reach is
// any, and does grow with the holders, since a holder has a list of splits.
func TestWorkersKeepNoSplits(t *testing.T) {
	const partitions, splits, workers = 1000, 1_000_000, 100
	var data []string
	for p := range partitions {
		data = append(data, fmt.Sprintf("p%04d:%d", p, 10*splits/partitions))
	}
	plan, names := testPlan(t, 0, dataset.Options{Batch: 10, SplitBatches: 1, Shuffle: dataset.ShuffleSplits}, data...)
	require.Equal(t, splits, plan.Splits())
	now := scriptStart
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 8}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, now))
	var sessions []Session
	for r := range uint32(8) {
		a, err := l.Attach("x", r, nil, now)
		require.NoError(t, err)
		sessions = append(sessions, a.Session)
	}
	holder := func(i int) Drive {
		return Drive{ID: DriveID{"n", fmt.Sprintf("d%d", i)}, Streams: 1, Partitions: names}
	}
	require.NoError(t, l.PutDrive(holder(0), now))
	require.NoError(t, l.AllowWorkers("x", AllWorkers, now))
	granted := 0
	ask := func(n int) {
		for _, s := range sessions {
			require.NoError(t, l.Want("x", s, 0, n, now))
		}
		for _, g := range l.Ready().Grants {
			granted++
			require.NoError(t, l.Acknowledge("x", sessions[g.Rank], 0, []dataset.Range{{From: g.From, To: g.To}}, now))
		}
	}
	ask(1)
	before := heapBytes()
	for i := range workers {
		id := DriveID{fmt.Sprintf("w%03d", i), "w"}
		require.NoError(t, l.PutDrive(Drive{ID: id, Streams: 2, Reach: Any}, now))
		require.NoError(t, l.Enlist("x", id, true, now))
	}
	for range 200 {
		ask(64)
	}
	grown := heapBytes() - before
	require.Greater(t, granted, 10_000)
	assert.Less(t, grown, int64(2<<20), "bytes, of %d workers without data over %d splits", workers, splits)
	byWorkers, err := l.GrantedSplits("x")
	require.NoError(t, err)
	assert.Greater(t, byWorkers.Any, uint64(9_000))

	before = heapBytes()
	for i := range 4 {
		require.NoError(t, l.PutDrive(holder(1+i), now))
	}
	ask(1)
	assert.Greater(t, heapBytes()-before, int64(4*splits*3), "bytes, of four holders")
	require.NoError(t, l.verify())
	runtime.KeepAlive(l)
}

// TestPartnersAreBounded: with a hundred ranks and a hundred workers, each rank is granted leases on few workers,
// and each worker serves few ranks.
func TestPartnersAreBounded(t *testing.T) {
	const ranks, workers = 100, 100
	plan, names := testPlan(t, 0, dataset.Options{Batch: 10, SplitBatches: 1, Shuffle: dataset.ShuffleNone}, "p:400000")
	now := scriptStart
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x", Ranks: ranks, Makers: NoDrives | NoCPUs | NoCards}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, now))
	require.NoError(t, l.PutDrive(Drive{ID: DriveID{"n", "d"}, Streams: 1, Partitions: names}, now))
	require.NoError(t, l.AllowWorkers("x", AllWorkers, now))
	for i := range workers {
		id := DriveID{fmt.Sprintf("w%03d", i), "w"}
		require.NoError(t, l.PutDrive(Drive{ID: id, Streams: 2, Reach: Any}, now))
		require.NoError(t, l.Enlist("x", id, true, now))
	}
	var sessions []Session
	for r := range uint32(ranks) {
		a, err := l.Attach("x", r, nil, now)
		require.NoError(t, err)
		sessions = append(sessions, a.Session)
	}
	ofRank, ofWorker := map[uint32]map[DriveID]bool{}, map[DriveID]map[uint32]bool{}
	for range 10 {
		for _, s := range sessions {
			require.NoError(t, l.Want("x", s, 0, 8, now))
		}
		for _, g := range l.Ready().Grants {
			if ofRank[g.Rank] == nil {
				ofRank[g.Rank] = map[DriveID]bool{}
			}
			if ofWorker[g.Drive] == nil {
				ofWorker[g.Drive] = map[uint32]bool{}
			}
			ofRank[g.Rank][g.Drive], ofWorker[g.Drive][g.Rank] = true, true
			require.NoError(t, l.Acknowledge("x", sessions[g.Rank], 0, []dataset.Range{{From: g.From, To: g.To}}, now))
		}
		now = now.Add(time.Second)
	}
	require.Len(t, ofRank, ranks, "no rank starves")
	require.Len(t, ofWorker, workers, "no worker idles")
	for r, of := range ofRank {
		assert.LessOrEqual(t, len(of), partnersOfRank, "rank %d", r)
	}
	for w, of := range ofWorker {
		assert.LessOrEqual(t, len(of), partnersOfRank, "worker %v", w)
	}
}

// TestADriveThatComputesAgain: a node starts again with other engines while an epoch runs. A job gets splits of a drive
// from the moment at which the job employs it.
func TestADriveThatComputesAgain(t *testing.T) {
	plan, names := testPlan(t, 0, dataset.Options{Batch: 10, SplitBatches: 1, Shuffle: dataset.ShuffleNone}, "p:100")
	id := DriveID{"n", "d"}
	for name, before := range map[string]Drive{
		"it was computed on the node's cores": {ID: id, Streams: 1, Compute: OnCPU, Partitions: names},
		"it was only read":                    {ID: id, Reach: Source, Partitions: names},
	} {
		t.Run(name, func(t *testing.T) {
			now := scriptStart
			l := New(Config{Fence: 1})
			require.NoError(t, l.AddJob(Job{ID: "x", Ranks: 1, Makers: NoCPUs}))
			require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, now))
			require.NoError(t, l.PutDrive(before, now))
			a, err := l.Attach("x", 0, nil, now)
			require.NoError(t, err)
			require.NoError(t, l.Want("x", a.Session, 0, 1, now))
			require.Empty(t, l.Ready().Grants)
			require.NoError(t, l.PutDrive(Drive{ID: id, Streams: 1, Partitions: names}, now))
			require.NoError(t, l.Want("x", a.Session, 0, 1, now))
			require.Len(t, l.Ready().Grants, 1)
			require.NoError(t, l.verify())
		})
	}
}
