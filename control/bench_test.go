package control

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// manySplits submits a job of the given number of splits of one mini-batch each, and attaches the job's only rank.
func manySplits(b testing.TB, splits int64) (*Server, *consumer) {
	b.Helper()
	o := testOptions(b)
	o.Beat, o.DeadAfter = 100*time.Millisecond, 10*time.Second
	o.Tick, o.Election = 0, 0 // etcd's defaults
	s, c := start(b, o)
	// Partitions have a million rows, and there are at most ten, because the benchmark does not measure the manifest.
	parts := make([]*apiv1.Partition, 10)
	for i := range parts {
		parts[i] = partition(b, fmt.Sprintf("p%d", i), splits/int64(len(parts)))
	}
	n := newNode(b, "n", map[string][]*apiv1.Partition{"d": parts})
	n.beats(b, c)
	await(b, c, "n")
	st := submit(b, c, &apiv1.JobSpec{Name: "many", Plan: &apiv1.PlanOptions{Batch: 1, SplitBatches: 1}})
	until(b, c, "many", "running")
	k := newConsumer(b, c, st.Id, 0)
	require.NoError(b, k.attach(nil))
	return s, k
}

// BenchmarkAcknowledge measures durable acknowledgements of whole splits by many callers. Each caller waits for its
// own acknowledgement. Run it with -benchtime 2s; the result is splits/s.
func BenchmarkAcknowledge(b *testing.B) {
	for _, callers := range []int{16, 128, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			const splits = 1 << 20 / 10 * 10
			s, k := manySplits(b, splits)
			ctx := patient(b)
			var next atomic.Uint64
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for {
						i := next.Add(1) - 1
						if i >= uint64(b.N) {
							return
						}
						i %= splits
						_, err := s.Acknowledge(ctx, &apiv1.AcknowledgeRequest{Id: k.id, Session: k.session,
							Numbers: []*apiv1.NumberRange{{From: i, To: i + 1}}})
						if err != nil {
							b.Error(err)
							return
						}
					}
				}()
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "splits/s")
		})
	}
}

// BenchmarkAcknowledgeOverHTTP measures the same over the wire, as launchers do it: groups of splits in one call.
func BenchmarkAcknowledgeOverHTTP(b *testing.B) {
	const splits, group, callers = 1 << 20 / 10 * 10, 64, 32
	_, k := manySplits(b, splits)
	var next atomic.Uint64
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				i := next.Add(group) - group
				if i >= uint64(b.N) {
					return
				}
				i %= splits - group
				_, err := k.c.members[0].Acknowledge(patient(b), &apiv1.AcknowledgeRequest{Id: k.id, Session: k.session,
					Numbers: []*apiv1.NumberRange{{From: i, To: i + group}}})
				if err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "splits/s")
}

// TestAMillionSplitsFitIn100MB measures the whole process, including etcd and the test itself. MILLRACE_LONG=1 runs
// it.
func TestAMillionSplitsFitIn100MB(t *testing.T) {
	if os.Getenv("MILLRACE_LONG") == "" {
		t.Skip("MILLRACE_LONG=1 measures the memory of a control plane with a million splits")
	}
	s, k := manySplits(t, 1_000_000)
	for i := uint64(0); i < 1_000_000; i += 50_000 {
		_, err := s.Acknowledge(patient(t), &apiv1.AcknowledgeRequest{Id: k.id, Session: k.session,
			Numbers: []*apiv1.NumberRange{{From: i, To: i + 25_000}}})
		require.NoError(t, err)
	}
	st := get(t, k.c, k.id)
	require.EqualValues(t, 500_000, st.Delivered)
	peak := resident(t)
	runtime.GC()
	debug.FreeOSMemory()
	now := resident(t)
	t.Logf("resident: %d MB, %d MB after a collection", peak>>20, now>>20)
	require.Less(t, now, int64(100<<20))
}

// resident returns the memory of this process in RAM.
func resident(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc here")
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			require.NoError(t, err)
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
