package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/machine"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// leads returns the member that leads.
func leads(t *testing.T, members []*Server) (which int) {
	t.Helper()
	require.Eventually(t, func() bool {
		for i, m := range members {
			if m != nil && m.Leads() {
				which = i
				return true
			}
		}
		return false
	}, time.Minute, 5*time.Millisecond)
	return which
}

// TestTheLeaderDies: of three members the leader dies in the middle of an epoch, while a consumer holds two leases
// and has acknowledged two. Nothing is lost, nothing is delivered twice, and the new leader adopts the held leases.
func TestTheLeaderDies(t *testing.T) {
	t.Parallel()
	members, c := startCluster(t, 3)
	defer closeAll(t, members)
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000), partition(t, "p1", 1000)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 5}})
	k := attachedRank(t, c, st.Id, 0)
	require.NoError(t, k.consume(6))
	r, err := k.lease(1, 0, 5)
	require.NoError(t, err)
	require.NotEmpty(t, k.held)
	held := len(k.held)

	at := leads(t, members)
	old := members[at].leading.Load()
	members[at] = nil
	require.NoError(t, kill(old.s))

	next := leads(t, members)
	assert.NotEqual(t, at, next)
	// The rank still holds its leases: the new leader adopts them.
	after, err := k.lease(0, 0, 0)
	require.NoError(t, err)
	assert.False(t, after.UnknownSession)
	assert.Empty(t, after.Revoked)
	assert.Len(t, k.held, held)
	assert.Greater(t, after.Fence, r.Fence)
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 200)
}

// TestFailoverUnderTenSeconds uses the default times of a cluster. It runs only with MILLRACE_LONG=1, because a
// machine may be busy.
func TestFailoverUnderTenSeconds(t *testing.T) {
	o, err := Options{}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, o.LeaderTTL)
	require.Equal(t, time.Second, o.Beat)
	if os.Getenv("MILLRACE_LONG") == "" {
		t.Skip("MILLRACE_LONG=1 measures how long a cluster is without a leader")
	}
	for name, end := range map[string]func(*Server){
		"its process dies":                     func(s *Server) { require.NoError(t, s.http.Close()) },
		"its host is gone, and nobody refuses": func(*Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			peers := freePeers(t, 3, "http")
			members := make([]*Server, 3)
			var wg sync.WaitGroup
			for i := range members {
				wg.Go(func() {
					s, err := Start(patient(t), Options{Data: t.TempDir(), Name: memberName(i), Peers: peers,
						Listen: "127.0.0.1:0", Logger: testLogger(t)})
					if assert.NoError(t, err) {
						members[i] = s
					}
				})
			}
			wg.Wait()
			defer func() { closeAll(t, members) }()
			at := leads(t, members)
			for i, m := range members { // the other members have seen it lead
				require.Eventually(t, func() bool { l, _ := m.store.Leader(); return l == members[at].URL() },
					time.Minute, time.Millisecond, "member %d", i)
			}
			_ = wait.Sleep(t.Context(), 3*time.Second)
			dead := members[at]
			members[at] = nil
			begin := time.Now()
			end(dead)
			require.NoError(t, dead.store.Close()) // no notice to other members
			leads(t, members)
			took := time.Since(begin)
			t.Logf("%s: another leads after %v", name, took.Round(time.Millisecond))
			assert.Less(t, took, 10*time.Second)
			dead.stop()
			assert.NoError(t, dead.http.Close())
			dead.wg.Wait()
			dead.metrics.unregister()
		})
	}
}

// kill ends a member without notice to the other members, as when its process is killed. etcd ends first, so that
// the member resigns nothing and writes nothing. The other members find out when its lease has run out.
func kill(s *Server) error {
	err := errors.Join(s.http.Close(), s.store.Close())
	s.stop()
	s.wg.Wait()
	s.metrics.unregister()
	return err
}

// TestALeaderThatRefusesConnectionsIsDeposed: the other members depose the leader long before its lease runs out.
func TestALeaderThatRefusesConnectionsIsDeposed(t *testing.T) {
	t.Parallel()
	members, _ := startCluster(t, 3)
	defer closeAll(t, members)
	// The leader keeps its lease in etcd alive without end, and refuses all connections. On a busy machine another member
	// may become the leader meanwhile: the test waits until one leader has accepted a connection of every other member.
	at, old := 0, (*leader)(nil)
	require.Eventually(t, func() bool {
		at = leads(t, members)
		old = members[at].leading.Load()
		for i, m := range members {
			if i != at && m.reached.Load() != members[at].URL() {
				return false
			}
		}
		return old != nil
	}, time.Minute, 10*time.Millisecond)
	dead := members[at]
	members[at] = nil
	require.NoError(t, dead.http.Close())
	leads(t, members)
	assert.ErrorIs(t, old.term.Check(patient(t)), store.ErrFenced)
	// A deposed leader does not know what later leaders did, so it refuses no call for good.
	assert.True(t, isNotLeader(old.confirm(patient(t))))
	assert.True(t, isNotLeader(old.wireError(machine.ErrDeposed)))
	dead.stop()
	dead.wg.Wait()
	dead.metrics.unregister()
	assert.NoError(t, dead.store.Close())
}

func TestKnocking(t *testing.T) {
	s, _ := start(t, testOptions(t))
	assert.NoError(t, tryConnect(patient(t), s.URL(), time.Second))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	assert.ErrorIs(t, tryConnect(patient(t), "http://"+l.Addr().String(), time.Second), syscall.ECONNREFUSED)
	assert.Error(t, tryConnect(patient(t), "unix:"+t.TempDir()+"/none", time.Second))
	assert.Error(t, tryConnect(patient(t), "http://%zz", time.Second))
}

// TestAMemberThatDoesNotLeadNamesTheLeader: every call names the leader, and the member at the named URL leads.
func TestAMemberThatDoesNotLeadNamesTheLeader(t *testing.T) {
	t.Parallel()
	members, _ := startCluster(t, 3)
	defer closeAll(t, members)
	at := leads(t, members)
	for i, m := range members {
		if i == at {
			continue
		}
		require.NoError(t, m.WaitReady(patient(t)))
		k := apiv1connect.NewControlClient(http.DefaultClient, m.URL())
		_, err := k.ListJobs(patient(t), &apiv1.ListJobsRequest{})
		require.True(t, isNotLeader(err), "%v", err)
		assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
		assert.ErrorContains(t, err, members[at].URL())
		stream, err := k.WatchJob(patient(t), &apiv1.WatchJobRequest{Id: "x"})
		require.NoError(t, err)
		assert.False(t, stream.Receive())
		assert.True(t, isNotLeader(stream.Err()), "%v", stream.Err())
		assert.NoError(t, stream.Close())
	}
}

// TestAStaleLeaderWritesNothing: a leader that does not know that another member leads cannot acknowledge, submit or
// cancel.
func TestAStaleLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	s, c := start(t, o)
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 5}})
	k := attachedRank(t, c, st.Id, 0)
	_, err := k.lease(1, 0, 5)
	require.NoError(t, err)
	require.NotEmpty(t, k.held)

	// The leader's key is deleted, as when the leader's lease runs out while it is cut off. The leader gets no notice.
	l := s.leading.Load()
	require.NoError(t, l.term.Commit(patient(t), deleteElection()))
	ctx := patient(t)
	for id, g := range k.held {
		_, err := s.Acknowledge(ctx, &apiv1.AcknowledgeRequest{Id: k.id, Session: k.session, Epoch: g.Epoch,
			Numbers: []*apiv1.NumberRange{{From: g.From, To: g.To}}})
		require.True(t, isNotLeader(err), "lease %d: %v", id, err)
	}
	require.Eventually(t, func() bool { n := s.leading.Load(); return n != nil && n != l }, time.Minute,
		time.Millisecond, "it stands again")
	// Mini-batches that were not acknowledged are granted again.
	require.NoError(t, k.attach(nil))
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 100)
}

// TestAFormerLeaderGivesNoFinalAnswer: a leader that does not know that another member leads, and has never heard of a
// job and its session, sends callers to another member. Callers that ask at once get the same answer.
func TestAFormerLeaderGivesNoFinalAnswer(t *testing.T) {
	t.Parallel()
	members, c := startCluster(t, 3)
	defer closeAll(t, members)
	at := leads(t, members)
	former := members[at].leading.Load()
	require.NotNil(t, former)
	require.NoError(t, former.term.Commit(patient(t), deleteElection()))
	others := slices.Clone(members)
	others[at] = nil
	next := members[leads(t, others)]
	liveNode(t, newClient(next), "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000)}})
	st := submitRunning(t, newClient(next), &apiv1.JobSpec{Name: "job"})
	k := attachedRank(t, newClient(next), st.Id, 0)

	// No write has shown the former leader that its term is over.
	stale := apiv1connect.NewControlClient(http.DefaultClient, members[at].URL())
	ctx := patient(t)
	calls := []func() error{
		func() error { _, err := stale.GetJob(ctx, &apiv1.GetJobRequest{Id: st.Id}); return err },
		func() error { _, err := stale.Attach(ctx, &apiv1.AttachRequest{Id: st.Id, Resume: true}); return err },
		func() error {
			_, err := stale.Attach(ctx, &apiv1.AttachRequest{Id: st.Id, Token: []byte("not a token")})
			return err
		},
		func() error {
			_, err := stale.Lease(ctx, &apiv1.LeaseRequest{Id: st.Id, Session: k.session})
			return err
		},
		func() error { _, err := stale.Lease(ctx, &apiv1.LeaseRequest{Id: st.Id}); return err },
		func() error {
			stream, err := stale.WatchJob(ctx, &apiv1.WatchJobRequest{Id: st.Id})
			if err != nil {
				return err
			}
			defer stream.Close()
			stream.Receive()
			return stream.Err()
		},
	}
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() {
			err := call()
			assert.True(t, isNotLeader(err), "call %d: %v", i, err)
		})
	}
	wg.Wait()
	_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.GetJobResponse, error) {
		return m.GetJob(ctx, &apiv1.GetJobRequest{Id: "no such job"})
	})
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "the leader's answer is final: %v", err)
}

// deleteElection deletes the keys of the election.
func deleteElection() store.Op { return store.DeletePrefix("leader/") }

// TestARestartGoesOn: a single member is stopped and started, and still has its jobs, acknowledgements, drained
// nodes and ended jobs.
func TestARestartGoesOn(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	c := newClient(s)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 1000)}})
	gone := newNode(t, "gone", map[string][]*apiv1.Partition{"d": {partition(t, "q0", 10)}})
	stop := n.beats(t, c)
	require.NoError(t, gone.beat(t, c))
	require.NoError(t, gone.beat(t, c))
	await(t, c, "n", "gone")
	_, err = callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.DrainNodeResponse,
		error) {
		return m.DrainNode(ctx, &apiv1.DrainNodeRequest{Node: "gone", Drain: true})
	})
	require.NoError(t, err)
	st := submit(t, c, &apiv1.JobSpec{Name: "job", Partitions: []string{"p*"},
		Plan: &apiv1.PlanOptions{SplitBatches: 5}})
	over := submit(t, c, &apiv1.JobSpec{Name: "over", Partitions: []string{"p*"}})
	_, err = callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CancelJobResponse,
		error) {
		return m.CancelJob(ctx, &apiv1.CancelJobRequest{Id: "over"})
	})
	require.NoError(t, err)
	until(t, c, "job", "running")
	k := attachedRank(t, c, st.Id, 0)
	require.NoError(t, k.consume(4))
	token, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse,
		error) {
		return m.Checkpoint(ctx, &apiv1.CheckpointRequest{Id: st.Id})
	})
	require.NoError(t, err)
	before := get(t, c, "job")
	stop()
	require.NoError(t, s.Close())

	s, c = start(t, o)
	n.beats(t, c)
	await(t, c, "n")
	after := get(t, c, "job")
	assert.Equal(t, before.Delivered, after.Delivered)
	assert.EqualValues(t, 10*before.Delivered, before.DeliveredRows)
	assert.Equal(t, before.DeliveredRows, after.DeliveredRows)
	assert.Equal(t, before.Digest, after.Digest)
	assert.Equal(t, "running", after.State)
	assert.Equal(t, "cancelled", get(t, c, over.Id).State)
	nodes, err := s.ListNodes(patient(t), &apiv1.ListNodesRequest{})
	require.NoError(t, err)
	assert.Equal(t, "gone", nodes.Nodes[0].Status.Name)
	assert.Equal(t, "dead", nodes.Nodes[0].State)
	assert.True(t, s.leading.Load().mu.fleet.Asked("gone"))

	// The token from before the restart is valid, on the rank's own session and on a new one.
	k.c = c
	require.NoError(t, k.attach(token.Token))
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 100)
	assert.EqualValues(t, 1000, get(t, c, "job").DeliveredRows)
	var tok dataset.Token
	require.NoError(t, tok.UnmarshalBinary(token.Token[4:len(token.Token)-32]))
	assert.Equal(t, dataset.Digest(st.Digest), tok.Job)
}

// TestWhoStaysIsStored: the next leader knows which ranks announce when they are through, and waits for these ranks
// alone, without a limit.
func TestWhoStaysIsStored(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	c := newClient(s)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 100)}})
	stop := n.beats(t, c)
	await(t, c, "n")
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Ranks: 3})
	ranks := make([]*consumer, 3)
	for i := range ranks {
		ranks[i] = newConsumer(t, c, st.Id, uint32(i))
		ranks[i].stays = i > 0
		require.NoError(t, ranks[i].attach(nil))
	}
	through := func(k *consumer) {
		_, err := callControl(t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ReleaseResponse,
			error) {
			return m.Release(ctx, &apiv1.ReleaseRequest{Id: k.id, Session: k.session, Reason: "done"})
		})
		require.NoError(t, err)
	}
	through(ranks[2])
	stop()
	require.NoError(t, s.Close())

	s, c = start(t, o)
	n.beats(t, c)
	await(t, c, "n")
	l := s.leading.Load()
	l.mu.Lock()
	assert.Equal(t, "010", l.mu.jobs[st.Id].State().Stays)
	l.mu.Unlock()
	for i, k := range ranks {
		k.c, k.stays = c, i == 1
		require.NoError(t, k.attach(nil))
		for range 20 { // three mini-batches each
			r, err := k.lease(4, 0, 0.05)
			require.NoError(t, err)
			for _, g := range k.held {
				require.NoError(t, k.acknowledge(g))
			}
			if r.EpochDone || r.JobDone {
				break
			}
		}
	}
	until(t, c, "job", "waiting: every mini-batch is delivered, for the ranks to say that they are through")
	through(ranks[1])
	until(t, c, "job", "done")
}

// TestAJobInTheMiddleOfBeingMeasured: the next leader prepares and measures the job again. The job's decisions
// replay.
func TestAJobInTheMiddleOfBeingMeasured(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	c := newClient(s)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}, "e": {partition(t, "p1", 200)}})
	n.hang = make(chan struct{})
	stop := n.beats(t, c)
	await(t, c, "n")
	submit(t, c, &apiv1.JobSpec{Name: "job", TRowsPerSecond: 1500})
	until(t, c, "job", "measuring")
	stop()
	require.NoError(t, s.Close())
	close(n.hang)

	s, c = start(t, o)
	n.beats(t, c)
	st := until(t, c, "job", "running")
	assert.EqualValues(t, 2, st.DrivesWanted)
	k := attachedRank(t, c, "job", 0)
	require.NoError(t, k.consume(1))
	var records []autoscale.Record
	require.Eventually(t, func() bool {
		r, err := s.Decisions(patient(t), &apiv1.DecisionsRequest{Id: "job"})
		require.NoError(t, err)
		records = nil
		for _, d := range r.Decisions {
			var v autoscale.Record
			require.NoError(t, json.Unmarshal([]byte(d), &v))
			records = append(records, v)
		}
		return len(records) >= 3
	}, time.Minute, 5*time.Millisecond)
	for i, r := range records[1:] {
		assert.Equal(t, records[i].Decision.After, r.Before, "decision %d follows from the one before", i+1)
	}
	// The leader keeps the latest decisions. On a busy machine the first ones are gone before they are read.
	if assert.ObjectsAreEqual(autoscale.State{}, records[0].Before) {
		law := autoscale.New(records[0].Options)
		for i, r := range records {
			assert.Equal(t, r, law.Decide(r.Inputs), "decision %d follows from its inputs, and from the decision before", i)
		}
	}
	assert.Equal(t, 2, records[0].Inputs.Holders)
	require.NoError(t, k.consume(0))
	until(t, c, "job", "done")
	assert.Len(t, k.got, 40)
}
