package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// lively are the states of a node that sends heartbeats: on a loaded machine it sometimes misses one.
var lively = []string{"ready", "silent"}

// nodeRecord returns the listed record of a node.
func nodeRecord(t *testing.T, s *Server, name string) *apiv1.NodeRecord {
	t.Helper()
	r, err := s.ListNodes(patient(t), &apiv1.ListNodesRequest{})
	require.NoError(t, err)
	for _, n := range r.Nodes {
		if n.Status.Name == name {
			return n
		}
	}
	return nil
}

// TestLeasesOfADeadNodeComeBack: the node dies while it has leases; another holder makes the rest of them.
func TestLeasesOfADeadNodeComeBack(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	s, c := start(t, o)
	both := []*apiv1.Partition{partition(t, "p0", 400)}
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": both})
	b := newNode(t, "b", map[string][]*apiv1.Partition{"d": both})
	stopA := a.beats(t, c)
	b.beats(t, c)
	await(t, c, "a", "b")
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	k := attachedRank(t, c, st.Id, 0)
	// All leases that both drives can take at once.
	on := func(node string) (n int) {
		for _, g := range k.held {
			if g.Node == node {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool {
		_, err := k.lease(4, 0, 0.1)
		require.NoError(t, err)
		return on("a") == 2 && on("b") == 2
	}, time.Minute, time.Millisecond)
	stopA()
	require.Eventually(t, func() bool {
		_, err := k.lease(0, 0, 0)
		require.NoError(t, err)
		return on("a") == 0
	}, time.Minute, 5*time.Millisecond, "revoked")
	assert.Equal(t, 2, on("b"), "and only those")
	assert.Equal(t, "dead", nodeRecord(t, s, "a").State)
	require.NoError(t, k.consume(0))
	st = until(t, c, "job", "done")
	assert.Len(t, k.got, 40)
	assert.EqualValues(t, 2, st.Redelivered)
}

// TestARestartedNodeIsPreparedAgain: the node is prepared before leases are granted on it.
func TestARestartedNodeIsPreparedAgain(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	n := liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	k := attachedRank(t, c, st.Id, 0)
	_, err := k.lease(1, 0, 10)
	require.NoError(t, err)
	require.Len(t, k.held, 1)
	n.mu.Lock()
	n.status.Incarnation = "n-2"
	clear(n.prepared)
	n.mu.Unlock()
	require.Eventually(t, func() bool {
		_, err := k.lease(0, 0, 0)
		require.NoError(t, err)
		return len(k.held) == 0
	}, time.Minute, 5*time.Millisecond, "what ran there is gone")
	_, err = k.lease(1, 0, 20)
	require.NoError(t, err)
	require.NotEmpty(t, k.held)
	n.mu.Lock()
	assert.Equal(t, 1, n.prepared[string(st.Digest)])
	n.mu.Unlock()
	require.NoError(t, k.consume(0))
	assert.Len(t, k.got, 40)
}

// TestANodeForgetsWhatEndedWithoutIt: a node forgets a job that ended while the node was away.
func TestANodeForgetsWhatEndedWithoutIt(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	n.status.Jobs = []string{strings.Repeat("ab", 32), "no digest"}
	n.beats(t, c)
	require.Eventually(t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.finished[strings.Repeat("\xab", 32)] > 0
	}, time.Minute, 5*time.Millisecond)
}

// TestANodeThatJoinsTakesPart: a node with another copy joins while the job runs, and makes splits of the job.
func TestANodeThatJoinsTakesPart(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 2}})
	b := newNode(t, "b", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}, "e": {partition(t, "other",
		10)}})
	b.beats(t, c)
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.prepared[string(st.Digest)] > 0
	}, time.Minute, 5*time.Millisecond)
}

// TestAPartitionThatVanishesOrChanges: a running job is granted no splits of the partition, its status names the
// partition and why it waits, and the job goes on when the partition is back.
func TestAPartitionThatVanishesOrChanges(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	whole := map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100), partition(t, "p@1", 100)}}
	n := liveNode(t, c, "n", whole)
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 5}})
	k := attachedRank(t, c, st.Id, 0)
	assert.Empty(t, get(t, c, "job").WaitsFor)
	waits := func(want string) {
		t.Helper()
		require.Eventually(t, func() bool { return get(t, c, "job").WaitsFor == want }, time.Minute,
			5*time.Millisecond, want)
	}
	n.holds(t, map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	waits("partition p@1: no live node holds it")
	other := partition(t, "p@1", 100)
	other.ContentSha256 = make([]byte, 32)
	n.holds(t, map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100), other}})
	waits("partition p@1: the file of this name on node n is not the one that the job was submitted with")
	for len(k.got) < 10 {
		r, err := k.lease(1, 0, 0.05)
		require.NoError(t, err)
		for _, g := range r.Grants {
			k.deliver(g)
			require.NoError(t, k.acknowledge(g))
		}
	}
	r, err := k.lease(1, 0, 0.05)
	require.NoError(t, err)
	assert.Empty(t, r.Grants)
	assert.Contains(t, r.Waiting, "no drive holds partition p@1")
	n.holds(t, whole)
	_, err = callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.DrainNodeResponse,
		error) {
		return m.DrainNode(ctx, &apiv1.DrainNodeRequest{Node: "n", Drain: true})
	})
	require.NoError(t, err)
	waits("partition p@1: node n holds it and does not take work on it")
	_, err = callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.DrainNodeResponse,
		error) {
		return m.DrainNode(ctx, &apiv1.DrainNodeRequest{Node: "n", Drain: false})
	})
	require.NoError(t, err)
	waits("")
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 20)
}

// TestADriveThatJoinsIsMeasured: T/P covers all drives that hold data, including drives that joined later.
func TestADriveThatJoinsIsMeasured(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	a := newNode(t, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000)}})
	a.p["d"] = 500
	a.beats(t, c)
	await(t, c, "a")
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", TRowsPerSecond: 2000, Epochs: 100})
	assert.EqualValues(t, 4, st.DrivesWanted)
	b := newNode(t, "b", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000)}, "e": {partition(t, "p0",
		1000)}})
	b.p["d"], b.p["e"] = 1500, 1500
	b.beats(t, c)
	measured := func() map[string]float64 {
		l := s.leading.Load()
		l.mu.Lock()
		defer l.mu.Unlock()
		return maps.Clone(l.mu.jobs[st.Id].State().P)
	}
	require.Eventually(t, func() bool { return len(measured()) == 3 }, time.Minute, 5*time.Millisecond)
	assert.Equal(t, map[string]float64{"a/d": 500, "b/d": 1500, "b/e": 1500}, measured())
	st = get(t, c, st.Id)
	assert.InDelta(t, 3500.0/3, st.PRowsPerSecond, 1)
	assert.EqualValues(t, 2, st.DrivesWanted)
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.Equal(t, []string{strconv.FormatUint(s.leading.Load().term.Fence(), 10)}, a.fences,
		"every call says which leader makes it")
}

func TestNodesThatAreRefused(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	a := liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 10)}})

	twin := newNode(t, "twin", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 10)}})
	twin.status.Drives[0].Uuid = a.status.Drives[0].Uuid
	err := twin.beat(t, c)
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	assert.ErrorContains(t, err, "is node a's, which claimed it first")
	assert.Contains(t, nodeRecord(t, s, "twin").State, "refused: ")
	assert.Contains(t, lively, nodeRecord(t, s, "a").State, "the first is not harmed")

	// An old agent with this control plane, and an agent that is newer than the control plane.
	old := newNode(t, "old", nil)
	old.status.Protocol = apiv1.Oldest - 1
	err = old.beat(t, c)
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	assert.ErrorContains(t, err, "too old")
	newer := newNode(t, "newer", map[string][]*apiv1.Partition{"d": {partition(t, "p9", 10)}})
	newer.status.Protocol = apiv1.Protocol + 7
	assert.NoError(t, newer.beat(t, c), "fields are only ever added")

	for name, change := range map[string]func(*apiv1.NodeStatus){
		"a name":    func(s *apiv1.NodeStatus) { s.Name = "" },
		"slashes":   func(s *apiv1.NodeStatus) { s.Name = "a/b" },
		"URLs":      func(s *apiv1.NodeStatus) { s.Urls = nil },
		"two drive": func(s *apiv1.NodeStatus) { s.Drives = append(s.Drives, s.Drives[0]) },
	} {
		bad := newNode(t, "bad", map[string][]*apiv1.Partition{"d": {partition(t, "p8", 10)}})
		change(bad.status)
		assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(bad.beat(t, c)), name)
	}
	_, err = s.Heartbeat(patient(t), &apiv1.HeartbeatRequest{})
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
}

// TestClocksMinutesApartDoNotMatter: the skew is only shown.
func TestClocksMinutesApartDoNotMatter(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	n.status.ClockSeconds += 600
	n.beats(t, c)
	await(t, c, "n")
	r := nodeRecord(t, s, "n")
	assert.InDelta(t, 600, r.ClockSkewSeconds, 60)
	assert.Contains(t, lively, r.State)
	submitRunning(t, c, &apiv1.JobSpec{Name: "job"})
	k := attachedRank(t, c, "job", 0)
	require.NoError(t, k.consume(0))
	assert.Len(t, k.got, 10)
}

// TestADrainedNodeIsGrantedNothing: no lease is granted on a drained node until the drain is revoked; the same holds
// for a failed drive.
func TestADrainedNodeIsGrantedNothing(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	n := liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	k := attachedRank(t, c, "job", 0)
	_, err := k.lease(1, 0, 10)
	require.NoError(t, err)
	drain := func(on bool) *apiv1.DrainNodeResponse {
		r, err := s.DrainNode(patient(t), &apiv1.DrainNodeRequest{Node: "n", Drain: on})
		require.NoError(t, err)
		return r
	}
	assert.EqualValues(t, 1, drain(true).Leases)
	for id, g := range k.held { // the granted leases end
		require.NoError(t, k.acknowledge(g), id)
	}
	r, err := k.lease(1, 0, 0.05)
	require.NoError(t, err)
	assert.Empty(t, r.Grants)
	assert.NotEmpty(t, r.Waiting, "and it says why")
	told := func(want bool) func() bool {
		return func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.drains) > 0 && n.drains[len(n.drains)-1] == want
		}
	}
	require.Eventually(t, told(true), time.Minute, 5*time.Millisecond)
	require.Eventually(t, func() bool { return nodeRecord(t, s, "n").State == "draining" }, time.Minute,
		5*time.Millisecond)
	drain(false)
	require.Eventually(t, told(false), time.Minute, 5*time.Millisecond)
	_, err = k.lease(1, 0, 20)
	require.NoError(t, err)
	require.NotEmpty(t, k.held)

	n.mu.Lock()
	n.status.Drives[0].State = "failed: it does not answer"
	n.mu.Unlock()
	require.Eventually(t, func() bool {
		_, err := k.lease(0, 0, 0)
		require.NoError(t, err)
		return len(k.held) == 0
	}, time.Minute, 5*time.Millisecond)
	n.mu.Lock()
	n.status.Drives[0].State = "ready"
	n.mu.Unlock()
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	_, err = s.DrainNode(patient(t), &apiv1.DrainNodeRequest{Node: "nobody"})
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

// TestAFullEtcdDegrades: acknowledgements and submissions fail with an error that explains it, and leases go on.
// When there is room again, everything goes on.
func TestAFullEtcdDegrades(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.EtcdQuota = 4 << 20
	s, c := start(t, o)
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	k := attachedRank(t, c, st.Id, 0)
	_, err := k.lease(1, 0, 10)
	require.NoError(t, err)

	l := s.leading.Load()
	fill(t, l.term)
	refused := func(err error) {
		assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
		assert.ErrorContains(t, err, "etcd is full")
	}
	for _, g := range k.held {
		k.deliver(g) // the trainer has the mini-batches, even if the acknowledgement fails
		_, err := s.Acknowledge(patient(t), &apiv1.AcknowledgeRequest{Id: k.id, Session: k.session,
			Numbers: []*apiv1.NumberRange{{From: g.From, To: g.To}}})
		refused(err)
	}
	_, err = s.SubmitJob(patient(t), &apiv1.SubmitJobRequest{Spec: &apiv1.JobSpec{Name: "more",
		Pipeline: []byte(testPipeline)}})
	refused(err)
	r, err := k.lease(1, 0, 10)
	require.NoError(t, err)
	assert.NotEmpty(t, r.Grants, "leases go on")
	require.Eventually(t, func() bool {
		code, body := fetch(t, s.URL()+"/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "etcd alarm NOSPACE")
	}, time.Minute, 20*time.Millisecond)

	require.NoError(t, l.term.Commit(patient(t), store.DeletePrefix("fill/")))
	l.wg.Add(1)
	l.makeRoom()
	for _, g := range k.held {
		k.deliver(g)
		require.NoError(t, k.acknowledge(g))
	}
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 40)
}

// fill writes until etcd refuses.
func fill(t *testing.T, term *store.Term) {
	t.Helper()
	value := []byte(strings.Repeat("x", 256<<10))
	for i := 0; ; i++ {
		err := term.Commit(patient(t), store.Put(fmt.Sprintf("fill/%d", i%32), value))
		if errors.Is(err, store.ErrNoSpace) {
			return
		}
		require.NoError(t, err)
		time.Sleep(5 * time.Millisecond) // etcd checks the size of its file only from time to time
	}
}

// TestAFullEtcdCanBeLed: a full etcd grants no lease, without which no member can be elected. A member that starts
// over a full etcd, whose large keys were deleted, leads.
func TestAFullEtcdCanBeLed(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.EtcdQuota = 4 << 20
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	l := s.leading.Load()
	fill(t, l.term)
	require.NoError(t, l.term.Commit(patient(t), store.DeletePrefix("fill/")))
	require.NoError(t, s.Close())
	start(t, o)
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	require.NoError(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(b)
}

// TestMetricsAndReadiness checks the names that alerts use.
func TestMetricsAndReadiness(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.Profile = true
	s, c := start(t, o)
	require.NoError(t, s.WaitReady(patient(t)))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	st := submit(t, c, &apiv1.JobSpec{Name: "job", TRowsPerSecond: 2500, Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	require.NoError(t, setCopies(t, c, &apiv1.PartitionCopies{Partition: "p0", Copies: 2, Rows: 400, Bytes: 3200},
		&apiv1.PartitionCopies{Partition: "gone", Copies: 1, Rows: 1, Bytes: 8}))
	until(t, c, "job", "running")
	k := attachedRank(t, c, st.Id, 0)
	require.NoError(t, k.consume(1))
	_, err := k.lease(1, 0, 10)
	require.NoError(t, err)
	var body string
	require.Eventually(t, func() bool {
		code, b := fetch(t, s.URL()+"/metrics")
		body = b
		return code == http.StatusOK && strings.Contains(body, `millrace_control_nodes{state="ready"} 1`)
	}, time.Minute, 5*time.Millisecond)
	for _, d := range described {
		assert.Contains(t, body, "# HELP "+d.name+" ")
	}
	for _, line := range []string{
		"millrace_control_leader 1", `millrace_control_jobs{phase="running"} 1`,
		"millrace_partitions_short_of_copies 2", "millrace_partitions_lost 1",
		fmt.Sprintf("millrace_job_t_rows_per_second{job=%q} 2500", st.Id),
		fmt.Sprintf(`millrace_job_p_rows_per_second{drive="n/d",job=%q} 1000`, st.Id),
		fmt.Sprintf("millrace_job_drives_wanted{job=%q} 3", st.Id), "millrace_ledger_flush_seconds_count",
		fmt.Sprintf(`millrace_trainer_input_queue_batches{job=%q,rank="0"} 1`, st.Id),
	} {
		assert.Contains(t, body, line)
	}
	assert.NotContains(t, body, "etcd_server", "etcd's own families are not ours")
	require.NoError(t, setCopies(t, c, &apiv1.PartitionCopies{Partition: "p0", Copies: 1, Rows: 400, Bytes: 3200},
		&apiv1.PartitionCopies{Partition: "gone"}))
	_, body = fetch(t, s.URL()+"/metrics")
	assert.Contains(t, body, "millrace_partitions_short_of_copies 0", "the numbers changed")
	assert.Contains(t, body, "millrace_partitions_lost 0")
	code, ready := fetch(t, s.URL()+"/readyz")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, ready, `"ready":true`)
	code, _ = fetch(t, s.URL()+"/debug/pprof/")
	assert.Equal(t, http.StatusOK, code)
}

// TestAJobIsWatched: the stream ends when the job has ended.
func TestAJobIsWatched(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	n := liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	n.hang = make(chan struct{})
	st := submit(t, c, &apiv1.JobSpec{Name: "job"})
	stream, err := c.members[0].WatchJob(patient(t), &apiv1.WatchJobRequest{Id: "job"})
	require.NoError(t, err)
	defer stream.Close()
	require.True(t, stream.Receive())
	assert.Equal(t, st.Id, stream.Msg().Job.Id)
	until(t, c, "job", "measuring")
	_, err = s.Checkpoint(patient(t), &apiv1.CheckpointRequest{Id: "job"})
	assert.Equal(t, connect.CodeAborted, connect.CodeOf(err), "nothing was begun")
	close(n.hang)
	until(t, c, "job", "running")
	_, err = s.CancelJob(patient(t), &apiv1.CancelJobRequest{Id: "job"})
	require.NoError(t, err)
	last := ""
	for stream.Receive() {
		last = stream.Msg().Job.State
	}
	assert.NoError(t, stream.Err())
	assert.Equal(t, "cancelled", last)
}

// TestPeersThatAskTooOftenAreToldSo: the calls of one peer do not use up the rate of another peer.
func TestPeersThatAskTooOftenAreToldSo(t *testing.T) {
	o := testOptions(t)
	o.Rate = 1
	s, _ := start(t, o)
	k := apiv1connect.NewControlClient(http.DefaultClient, s.URL())
	codes := map[connect.Code]int{}
	for range 20 {
		_, err := k.ListJobs(context.Background(), &apiv1.ListJobsRequest{})
		if err != nil {
			codes[connect.CodeOf(err)]++
		}
	}
	assert.Positive(t, codes[connect.CodeResourceExhausted])
}

// TestRequestsAreBounded: requests that are too large are refused before they are unpacked.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	s, c := start(t, testOptions(t))
	_, err := c.members[0].GetJob(patient(t), &apiv1.GetJobRequest{Id: strings.Repeat("x", maxRequest+1)})
	assert.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), "%v", err)
	_, err = s.Lease(patient(t), &apiv1.LeaseRequest{Held: make([]uint64, maxHeld+1)})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	_, err = s.Acknowledge(patient(t), &apiv1.AcknowledgeRequest{Numbers: make([]*apiv1.NumberRange, maxRanges+1)})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	_, err = s.Release(patient(t), &apiv1.ReleaseRequest{Leases: make([]uint64, maxHeld+1)})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	_, err = s.Acknowledge(patient(t), &apiv1.AcknowledgeRequest{Session: []byte("x")})
	assert.Equal(t, connect.CodeAborted, connect.CodeOf(err))
	r, err := s.Lease(patient(t), &apiv1.LeaseRequest{Session: []byte("x")})
	require.NoError(t, err)
	assert.True(t, r.UnknownSession)
}
