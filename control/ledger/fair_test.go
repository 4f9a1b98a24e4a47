package ledger

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/control/ledger/numberset"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestWeightsWithinOneSplit draws sizes of splits and times at which streams become free. While two jobs both wait
// for a drive, their granted rows, divided by their weights, differ by at most one split of each.
func TestWeightsWithinOneSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "jobs")
		l := New(Config{Fence: 1})
		drive := DriveID{"n", "d"}
		streams := rapid.IntRange(1, 3).Draw(t, "streams")
		var weights, most []float64
		var sessions []Session
		for i := range n {
			id := fmt.Sprintf("j%d", i)
			split := rapid.IntRange(1, 20).Draw(t, "split")
			weights = append(weights, float64(rapid.IntRange(1, 5).Draw(t, "weight")))
			most = append(most, float64(10*split))
			plan, names := rapidPlan(t, 0, dataset.Options{Batch: 10, SplitBatches: split}, "p0:60000", "p1:13333")
			require.NoError(t, l.AddJob(Job{ID: id, Weight: weights[i]}))
			require.NoError(t, l.Begin(Epoch{Job: id, Plan: plan, Partitions: names}, scriptStart))
			a, err := l.Attach(id, 0, nil, scriptStart)
			require.NoError(t, err)
			sessions = append(sessions, a.Session)
		}
		require.NoError(t, l.PutDrive(Drive{ID: drive, Streams: streams, Partitions: []string{"p0", "p1"}}, scriptStart))
		granted := make([]float64, n) // since both jobs began to wait
		var out []Grant
		from := slices.Clone(granted)
		for step := range rapid.IntRange(10, 300).Draw(t, "steps") {
			if step == 0 || rapid.IntRange(0, 40).Draw(t, "pause") == 0 { // some job waits for nothing for a while
				i := rapid.IntRange(0, n-1).Draw(t, "who")
				want := 0
				if step == 0 || rapid.Bool().Draw(t, "wants") {
					want = 1 << 20
				}
				require.NoError(t, l.Want(fmt.Sprintf("j%d", i), sessions[i], 0, want, scriptStart))
				from = nil
			}
			for _, g := range l.Ready().Grants {
				i := int(g.Job[1] - '0')
				e := l.jobs[i].epochs[0]
				granted[i] += float64(e.rowsOf(e.split(g.Split), g.From, g.To))
				out = append(out, g)
			}
			if from == nil {
				from = slices.Clone(granted)
			}
			for i := range n {
				for k := range i {
					if l.jobs[i].ranks[0].want == 0 || l.jobs[k].ranks[0].want == 0 {
						continue
					}
					apart := math.Abs((granted[i]-from[i])/weights[i] - (granted[k]-from[k])/weights[k])
					require.LessOrEqual(t, apart, most[i]/weights[i]+most[k]/weights[k]+1e-6)
				}
			}
			if len(out) > 0 {
				at := rapid.IntRange(0, len(out)-1).Draw(t, "ends")
				g := out[at]
				out = slices.Delete(out, at, at+1)
				i := int(g.Job[1] - '0')
				require.NoError(t, l.Acknowledge(g.Job, sessions[i], 0, []dataset.Range{{From: g.From, To: g.To}},
					scriptStart))
			}
		}
		require.NoError(t, l.verify())
	})
}

// TestOneJobAloneIsNotHeldBack: a job that waits for nothing has no turn, and gets no compensation for it when it
// waits again.
func TestOneJobAloneIsNotHeldBack(t *testing.T) {
	l := New(Config{Fence: 1})
	sessions := map[string]Session{}
	for _, id := range []string{"a", "b"} {
		plan, names := testPlan(t, 0, dataset.Options{Batch: 10, SplitBatches: 1, Shuffle: dataset.ShuffleNone},
			"p:10000")
		require.NoError(t, l.AddJob(Job{ID: id}))
		require.NoError(t, l.Begin(Epoch{Job: id, Plan: plan, Partitions: names}, scriptStart))
		at, err := l.Attach(id, 0, nil, scriptStart)
		require.NoError(t, err)
		sessions[id] = at.Session
	}
	require.NoError(t, l.PutDrive(Drive{ID: DriveID{"n", "d"}, Streams: 1, Partitions: []string{"p"}}, scriptStart))
	next := func() string {
		g := l.Ready().Grants
		require.Len(t, g, 1)
		require.NoError(t, l.Acknowledge(g[0].Job, sessions[g[0].Job], 0, []dataset.Range{{From: g[0].From, To: g[0].To}},
			scriptStart))
		return g[0].Job
	}
	require.NoError(t, l.Want("a", sessions["a"], 0, 1<<20, scriptStart))
	for range 100 {
		require.Equal(t, "a", next())
	}
	require.NoError(t, l.Want("b", sessions["b"], 0, 1<<20, scriptStart))
	count := map[string]int{}
	for range 100 {
		count[next()]++
	}
	assert.InDelta(t, 50, count["b"], 1, "b shares from when it came: it neither catches up nor waits")
}

// TestBound: no more drives work for a job than its bound allows, except a drive for a rank without leases that the
// running drives cannot serve.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		bound := map[string]int{}
		for _, j := range w.jobs {
			bound[j.ID] = j.Drives
		}
		for range rapid.IntRange(5, 80).Draw(t, "steps") {
			before := map[string]int{}
			for _, j := range w.l.jobs {
				before[j.ID] = j.activeDrives()
			}
			leader := w.l
			w.step()
			if w.l != leader {
				continue // the ranks' leases are adopted even above the present bound
			}
			for _, j := range w.l.jobs {
				if j.Drives > 0 {
					require.LessOrEqual(t, j.activeDrives(), max(j.Drives, before[j.ID], len(j.ranks)), "drives of %s",
						j.ID)
				}
			}
		}
	})
}

// TestLockstep has ranks that step only together, queues that hold less than a split, and one stream less than there
// are ranks. A blocked rank's stream goes to the rank that all others wait for, and everything is delivered.
func TestLockstep(t *testing.T) {
	const ranks = 3
	plan, names := testPlan(t, 0, dataset.Options{Batch: 10, SplitBatches: 8, Shuffle: dataset.ShuffleNone}, "a:800",
		"b:800", "c:800")
	for _, c := range []struct {
		name   string
		bound  int
		order  dataset.Order
		drives []Drive
	}{
		{"one stream", 0, dataset.Fastest, []Drive{{ID: DriveID{"n", "0"}, Streams: 1, Partitions: []string{"a", "b",
			"c"}}}},
		{"two streams", 0, dataset.Deterministic, []Drive{{ID: DriveID{"n", "0"}, Streams: 2, Partitions: []string{"a", "b",
			"c"}}}},
		{"one drive at once, each rank's data on another", 1, dataset.Fastest, []Drive{{ID: DriveID{"n", "0"}, Streams: 1,
			Partitions: []string{"a"}}, {ID: DriveID{"n", "1"}, Streams: 1, Partitions: []string{"b"}}, {ID: DriveID{"n",
			"2"}, Streams: 1, Partitions: []string{"c"}}}},
		{"the same in order", 1, dataset.Deterministic, []Drive{{ID: DriveID{"n", "0"}, Streams: 1,
			Partitions: []string{"a"}}, {ID: DriveID{"n", "1"}, Streams: 1, Partitions: []string{"b"}}, {ID: DriveID{"n",
			"2"}, Streams: 1, Partitions: []string{"c"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := scriptStart
			l := New(Config{Fence: 1})
			require.NoError(t, l.AddJob(Job{ID: "x", Ranks: ranks, Drives: c.bound, Order: c.order}))
			require.NoError(t, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, now))
			for _, d := range c.drives {
				require.NoError(t, l.PutDrive(d, now))
			}
			type consumer struct {
				session Session
				leases  []Lease
				queue   numberset.Runs // fetched numbers
				has     numberset.Runs
			}
			all := make([]consumer, ranks)
			for r := range all {
				a, err := l.Attach("x", uint32(r), nil, now)
				require.NoError(t, err)
				all[r].session = a.Session
			}
			const queueLimit = 3
			steps := 0
			for ; steps < 80; steps++ {
				for waits := 0; ; waits++ {
					require.Less(t, waits, 60, "step %d: nobody moves: %+v", steps, l.Drives())
					ready := 0
					for r := range all {
						a := &all[r]
						for i := 0; i < len(a.leases); i++ { // fetch into the queue
							for _, g := range a.has.Gaps(a.leases[i].From, a.leases[i].To) {
								for n := g.From; n < g.To && a.queue.Count(0, 1e9) < queueLimit; n++ {
									a.queue = a.queue.Union(n, n+1)
								}
							}
						}
						blocked := a.queue.Count(0, 1e9) >= queueLimit
						progress := Progress{Blocked: blocked}
						for _, le := range a.leases {
							here := slices.Clone(a.has)
							for _, q := range a.queue {
								here = here.Union(q.From, q.To)
							}
							if here.Covers(le.From, le.To) {
								progress.Fetched = append(progress.Fetched, le.ID)
							} else {
								progress.Held = append(progress.Held, le.ID)
							}
						}
						gone, err := l.Hold("x", a.session, progress, now)
						require.NoError(t, err)
						a.leases = slices.DeleteFunc(a.leases, func(le Lease) bool {
							return slices.Contains(gone,
								le.ID)
						})
						want := 0
						if !blocked && len(progress.Held) == 0 {
							want = 1
						}
						require.NoError(t, l.Want("x", a.session, 0, want, now))
						if len(a.queue) > 0 {
							ready++
						}
					}
					e := l.Ready()
					for _, g := range e.Grants {
						all[g.Rank].leases = append(all[g.Rank].leases, g.Lease)
					}
					require.NoError(t, l.verify())
					if ready == ranks {
						break
					}
					now = now.Add(time.Second)
					l.Tick(now)
				}
				for r := range all { // the step: every rank takes one mini-batch
					a := &all[r]
					n := a.queue[0].From
					a.queue = a.queue.Gaps(0, 1<<20).Gaps(n+1, 1<<20)
					a.has = a.has.Union(n, n+1)
					require.NoError(t, l.Acknowledge("x", a.session, 0, []dataset.Range{{From: n, To: n + 1}}, now))
				}
			}
			for r := range all {
				assert.Equal(t, uint64(80), all[r].has.Count(0, 1e9), "rank %d", r)
			}
		})
	}
}
