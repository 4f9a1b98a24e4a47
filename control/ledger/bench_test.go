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

// million makes a ledger with one job of 10^6 splits of 16 mini-batches on 8 drives, and attaches its ranks.
func million(t testing.TB, ranks int) (*Ledger, []Session, time.Time) {
	const partitions, splits = 1000, 1000
	var data []string
	drives := make([]Drive, 8)
	for p := range partitions {
		data = append(data, fmt.Sprintf("p%d:%d", p, splits*16))
		d := &drives[p%len(drives)]
		d.Partitions = append(d.Partitions, fmt.Sprintf("p%d", p))
	}
	plan, names := testPlan(t, 0, dataset.Options{Batch: 1}, data...)
	require.Equal(t, partitions*splits, plan.Splits())
	now := scriptStart
	l := New(Config{Fence: 1})
	require.NoError(t, l.AddJob(Job{ID: "x", Ranks: ranks, Drives: 4}))
	require.NoError(t, l.Begin(Epoch{Job: "x", Digest: digestOf("x"), Plan: plan, Partitions: names}, now))
	for i := range drives {
		drives[i].ID, drives[i].Streams = DriveID{"n", fmt.Sprint(i)}, 2
		require.NoError(t, l.PutDrive(drives[i], now))
	}
	sessions := make([]Session, ranks)
	for r := range sessions {
		a, err := l.Attach("x", uint32(r), nil, now)
		require.NoError(t, err)
		sessions[r] = a.Session
	}
	return l, sessions, now
}

// heap returns the bytes that are in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMillionSplitsFitInMemory checks that the ledger, with its plan, takes at most 40 MB with 10^6 splits, at the
// start and with every other split acknowledged, which is the most state that a ledger has.
func TestMillionSplitsFitInMemory(t *testing.T) {
	const limit = 40 << 20
	before := heap()
	l, sessions, now := million(t, 4)
	require.NoError(t, l.Want("x", sessions[0], 0, 4, now))
	fresh := heap() - before
	for r, s := range sessions {
		var runs []dataset.Range
		for p := uint64(r) * 250_000; p < uint64(r+1)*250_000; p += 2 {
			if runs = append(runs, dataset.Range{From: 16 * p, To: 16*p + 16}); len(runs) == 5000 {
				require.NoError(t, l.Acknowledge("x", s, 0, runs, now))
				runs = runs[:0]
			}
		}
	}
	half := heap() - before
	t.Logf("%d bytes fresh, %d with every other split delivered", fresh, half)
	assert.Less(t, fresh, uint64(limit))
	assert.Less(t, half, uint64(limit))
	runtime.KeepAlive(l)
}

// BenchmarkMillionSplits grants, acknowledges and flushes 10^6 splits, in group commits of 4,096.
func BenchmarkMillionSplits(b *testing.B) {
	for _, ranks := range []int{1, 8} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				l, sessions, now := million(b, ranks)
				b.StartTimer()
				done, records := 0, 0
				for r := range sessions {
					require.NoError(b, l.Want("x", sessions[r], 0, 1<<30, now))
				}
				for done < 1_000_000 {
					e := l.Ready()
					require.NotEmpty(b, e.Grants)
					for _, g := range e.Grants {
						require.NoError(b, l.Acknowledge("x", sessions[g.Rank], 0, []dataset.Range{{From: g.From,
							To: g.To}}, now))
						if done++; done%4096 == 0 {
							for part := l.Flush(100); len(part) > 0; part = l.Flush(100) {
								records += len(part)
							}
						}
					}
				}
				b.ReportMetric(float64(records)/1e6, "records/split")
			}
			b.ReportMetric(float64(b.N)*1e6/b.Elapsed().Seconds(), "splits/s")
		})
	}
}

// BenchmarkFlushUnfinishedSplits acknowledges one mini-batch of each of 32 ranks and flushes, in a job of a million
// splits in which every rank has 8 splits half delivered. It reports the records and bytes of a flush.
func BenchmarkFlushUnfinishedSplits(b *testing.B) {
	const ranks, unfinished = 32, 8
	l, sessions, now := million(b, ranks)
	first := func(rank int) uint64 { return uint64(rank) * 1_000_000 / ranks * 16 }
	for r, s := range sessions {
		var runs []dataset.Range
		for p := range uint64(unfinished) {
			runs = append(runs, dataset.Range{From: first(r) + 16*p, To: first(r) + 16*p + 4})
		}
		require.NoError(b, l.Acknowledge("x", s, 0, runs, now))
	}
	for part := l.Flush(100); len(part) > 0; {
		part = l.Flush(100)
	}
	records, bytes, place := 0, 0, uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		place++
		for r, s := range sessions { // inside a further split, so that the number is new
			n := first(r) + 16*unfinished + place%100_000
			if err := l.Acknowledge("x", s, 0, []dataset.Range{{From: n, To: n + 1}}, now); err != nil {
				b.Fatal(err)
			}
		}
		for part := l.Flush(100); len(part) > 0; part = l.Flush(100) {
			records += len(part)
			for _, rec := range part {
				bytes += len(rec.Data)
			}
		}
	}
	b.ReportMetric(float64(records)/float64(b.N), "records/op")
	b.ReportMetric(float64(bytes)/float64(b.N), "bytes/op")
}

// BenchmarkGaps acknowledges every other mini-batch of a split in one call.
func BenchmarkGaps(b *testing.B) {
	for _, gaps := range []uint64{1 << 10, 1 << 13, 1 << 16} {
		b.Run(fmt.Sprintf("gaps=%d", gaps), func(b *testing.B) {
			plan, names := testPlan(b, 0, dataset.Options{Batch: 1, SplitBatches: int(2 * gaps)}, fmt.Sprintf("a:%d", 2*gaps))
			var runs []dataset.Range
			for i := range gaps {
				runs = append(runs, dataset.Range{From: 2 * i, To: 2*i + 1})
			}
			for b.Loop() {
				l := New(Config{Fence: 1})
				require.NoError(b, l.AddJob(Job{ID: "x"}))
				require.NoError(b, l.Begin(Epoch{Job: "x", Plan: plan, Partitions: names}, scriptStart))
				a, err := l.Attach("x", 0, nil, scriptStart)
				require.NoError(b, err)
				require.NoError(b, l.Acknowledge("x", a.Session, 0, runs, scriptStart))
			}
		})
	}
}

// BenchmarkBusyCluster measures one acknowledgement and the grant that follows it, while 10 jobs of 8 ranks all wait
// for 200 drives whose streams are all in use.
func BenchmarkBusyCluster(b *testing.B) {
	const jobs, ranks, drives = 10, 8, 200
	var data []string
	for d := range drives {
		data = append(data, fmt.Sprintf("p%d:%d", d, 100_000))
	}
	now := scriptStart
	l := New(Config{Fence: 1})
	sessions := map[string][]Session{}
	for j := range jobs {
		id := fmt.Sprint("j", j)
		plan, names := testPlan(b, 0, dataset.Options{Batch: 1}, data...)
		require.NoError(b, l.AddJob(Job{ID: id, Ranks: ranks, Drives: 100}))
		require.NoError(b, l.Begin(Epoch{Job: id, Plan: plan, Partitions: names}, now))
		for r := range uint32(ranks) {
			a, err := l.Attach(id, r, nil, now)
			require.NoError(b, err)
			sessions[id] = append(sessions[id], a.Session)
		}
	}
	for d := range drives {
		require.NoError(b, l.PutDrive(Drive{ID: DriveID{"n", fmt.Sprint(d)}, Streams: 2,
			Partitions: []string{fmt.Sprintf("p%d", d)}}, now))
	}
	for id := range sessions {
		for r := range sessions[id] {
			require.NoError(b, l.Want(id, sessions[id][r], 0, 1<<30, now))
		}
	}
	out := l.Ready().Grants
	for id := range sessions { // makes its lists, once
		_, err := l.Status(id, now)
		require.NoError(b, err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		g := out[0]
		out = out[1:]
		if err := l.Acknowledge(g.Job, sessions[g.Job][g.Rank], 0, []dataset.Range{{From: g.From, To: g.To}},
			now); err != nil {
			b.Fatal(err)
		}
		out = append(out, l.Ready().Grants...)
	}
}
