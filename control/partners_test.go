package control

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// countedWorker is a worker that serves empty mini-batches over real HTTP and records the ranks that fetch from it.
// It does not count TCP connections: Go's client closes a connection on a busy machine and opens another to the same
// worker.
type countedWorker struct {
	*fakeNode
	mu     sync.Mutex
	ranks  map[string]bool
	served int
}

func newCountedWorker(t *testing.T, name string) *countedWorker {
	w := &countedWorker{fakeNode: newWorker(t, name), ranks: map[string]bool{}}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rank := r.Header.Get("Rank")
		if rank == "" { // of a peer of another test that looks for a member that had this port
			http.NotFound(rw, r)
			return
		}
		w.mu.Lock()
		w.served++
		w.ranks[rank] = true
		w.mu.Unlock()
		_, _ = io.WriteString(rw, "frame")
	}))
	t.Cleanup(srv.Close)
	// The control plane calls the fake node at its first URL; launchers use the second URL, of the counted worker.
	w.set(func(s *apiv1.NodeStatus) { s.Urls = append(s.Urls, srv.URL) })
	return w
}

// TestLaunchersTalkToFewWorkers: a hundred ranks and a hundred workers, each rank with connections of its own, over
// real HTTP. Every rank and every worker takes part, and a worker serves at most four ranks.
func TestLaunchersTalkToFewWorkers(t *testing.T) {
	t.Parallel()
	const ranks, workers, fan, splitsOfRank = 100, 100, 4, 8
	o := testOptions(t)
	o.Beat, o.DeadAfter, o.LeaseTTL, o.SessionTTL = time.Second, 10*time.Minute, 10*time.Minute, 10*time.Minute
	_, c := start(t, o)
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", ranks*splitsOfRank*10)}})
	all := make([]*countedWorker, workers)
	beatAll := func() {
		require.NoError(t, a.beat(t, c))
		for _, w := range all {
			require.NoError(t, w.beat(t, c))
		}
	}
	for i := range all {
		all[i] = newCountedWorker(t, fmt.Sprintf("w%03d", i))
	}
	beatAll()
	beatAll() // heartbeats with inventory
	st := submit(t, c, &apiv1.JobSpec{Name: "job", Placement: "pool", Ranks: ranks,
		Plan: &apiv1.PlanOptions{SplitBatches: 1}})
	require.Eventually(t, func() bool { return get(t, c, "job").WorkersReady == workers }, time.Minute,
		20*time.Millisecond)

	var wg sync.WaitGroup
	gate := make(chan struct{}, 8) // ranks that call at once: the machine is small
	for r := range uint32(ranks) {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			transport := &http.Transport{MaxIdleConnsPerHost: 1}
			defer transport.CloseIdleConnections()
			web := &http.Client{Transport: transport}
			k := newConsumer(t, c, st.Id, r)
			if !assert.NoError(t, k.attach(nil)) {
				return
			}
			for left := splitsOfRank; left > 0; {
				_, err := k.lease(8, 0, 1)
				if !assert.NoError(t, err) {
					return
				}
				for _, g := range k.held {
					g = proto.CloneOf(g)
					request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.Urls[len(g.Urls)-1], nil)
					if !assert.NoError(t, err) {
						return
					}
					request.Header.Set("Rank", fmt.Sprint(r))
					resp, err := web.Do(request)
					if !assert.NoError(t, err) {
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					assert.NoError(t, resp.Body.Close())
					assert.NoError(t, k.acknowledge(g))
					left--
				}
			}
		})
	}
	wg.Wait()
	until(t, c, "job", "done")
	total, served := 0, 0
	for _, w := range all {
		w.mu.Lock()
		assert.LessOrEqual(t, len(w.ranks), fan, "ranks of %s", w.name)
		assert.Positive(t, w.served, "mini-batches of %s", w.name)
		total, served = total+len(w.ranks), served+w.served
		w.mu.Unlock()
	}
	assert.Equal(t, ranks*splitsOfRank, served)
	assert.LessOrEqual(t, total, ranks*fan, "pairs of a rank and a worker")
	t.Logf("%d pairs between %d ranks and %d workers", total, ranks, workers)
}
