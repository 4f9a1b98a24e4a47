package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control/fleet"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
)

// consumer is a rank that takes and acknowledges every mini-batch that it is granted. It has no data: a lease counts
// as the delivery.
type consumer struct {
	t     testing.TB
	c     *client
	id    string
	rank  uint32
	stays bool // the consumer announces when it is through
	run   string

	session []byte
	epoch   uint64
	owned   []*apiv1.NumberRange
	held    map[uint64]*apiv1.Grant
	fetched map[uint64]bool // by lease: every fragment is there
	digest  dataset.Digest

	mu  sync.Mutex
	got map[string]int // by DIGEST/EPOCH/NUMBER: how often the mini-batch was delivered to the trainer
}

func newConsumer(t testing.TB, c *client, id string, rank uint32) *consumer {
	return &consumer{t: t, c: c, id: id, rank: rank, got: map[string]int{}, held: map[uint64]*apiv1.Grant{}}
}

// attachedRank returns a consumer that is attached to a job.
func attachedRank(t testing.TB, c *client, id string, rank uint32) *consumer {
	t.Helper()
	k := newConsumer(t, c, id, rank)
	require.NoError(t, k.attach(nil))
	return k
}

func (k *consumer) attach(token []byte) error {
	r, err := callControl(k.t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.AttachResponse,
		error) {
		return m.Attach(ctx, &apiv1.AttachRequest{Id: k.id, Rank: k.rank, Token: token, SaysDone: k.stays, Run: k.run})
	})
	if err != nil {
		return err
	}
	k.session, k.epoch, k.owned, k.digest = r.Session, r.Epoch, r.Owned, dataset.Digest(r.Job.Digest)
	clear(k.held)
	return nil
}

// lease makes one Lease call, and presents the held leases when the leader asks for them.
func (k *consumer) lease(want int32, epoch uint64, wait float64) (*apiv1.LeaseResponse, error) {
	adopt := false
	for {
		req := &apiv1.LeaseRequest{Id: k.id, Session: k.session, Epoch: epoch, Want: want, WaitSeconds: wait,
			Report: &apiv1.RankReport{QueueBatches: 1}, SaysDone: k.stays}
		for id, g := range k.held {
			if k.fetched[id] {
				req.Fetched = append(req.Fetched, id)
			} else {
				req.Held = append(req.Held, id)
			}
			if adopt {
				req.Adopt = append(req.Adopt, &apiv1.HeldLease{Lease: id, Epoch: g.Epoch, Split: g.Split, Node: g.Node,
					Drive: g.Drive, From: g.From, To: g.To})
			}
		}
		r, err := callControl(k.t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.LeaseResponse,
			error) {
			return m.Lease(ctx, req)
		})
		if err != nil {
			return nil, err
		}
		for _, id := range r.Revoked {
			delete(k.held, id)
		}
		for _, g := range r.Grants {
			k.held[g.Lease] = g
		}
		if !r.Adopt {
			return r, nil
		}
		adopt = true
	}
}

// deliver hands numbers to the trainer, and drops the numbers that the trainer already has, as launchers do.
func (k *consumer) deliver(g *apiv1.Grant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := g.From; n < g.To; n++ {
		name := fmt.Sprintf("%s/%d/%d", k.digest, g.Epoch, n)
		if k.got[name] == 0 {
			k.got[name]++
		}
	}
}

func (k *consumer) acknowledge(g *apiv1.Grant) error {
	_, err := callControl(k.t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.AcknowledgeResponse,
		error) {
		return m.Acknowledge(ctx, &apiv1.AcknowledgeRequest{Id: k.id, Session: k.session, Epoch: g.Epoch,
			Numbers: []*apiv1.NumberRange{{From: g.From, To: g.To}}})
	})
	if err == nil {
		delete(k.held, g.Lease)
	}
	return err
}

// consume takes mini-batches until the job is done, or until the given number of leases were acknowledged (0: no
// bound). It fails when no lease came for two minutes.
func (k *consumer) consume(most int) error {
	epoch, progress := k.epoch, time.Now()
	for n := 0; most == 0 || n < most; {
		if time.Since(progress) > 2*time.Minute {
			return fmt.Errorf("rank %d: no lease for two minutes after %d pieces", k.rank, n)
		}
		r, err := k.lease(2, epoch, 1)
		if err != nil {
			return err
		}
		if r.UnknownSession {
			return fmt.Errorf("rank %d: the session is unknown", k.rank)
		}
		if r.JobDone {
			return nil
		}
		if len(r.Grants) > 0 && r.Grants[0].Epoch != k.epoch {
			// A further epoch: the answer to Attach lists this rank's numbers and their edition.
			if err := k.attach(nil); err != nil {
				return err
			}
			epoch = k.epoch
			continue
		}
		for _, g := range k.held {
			k.deliver(g)
			if err := k.acknowledge(g); err != nil {
				return err
			}
			n++
			progress = time.Now()
		}
		if r.EpochDone && len(r.Grants) == 0 && len(k.held) == 0 {
			epoch = k.epoch + 1
		}
	}
	return nil
}

func submit(t testing.TB, c *client, spec *apiv1.JobSpec) *apiv1.JobStatus {
	t.Helper()
	if spec.Pipeline == nil {
		spec.Pipeline = []byte(testPipeline)
	}
	r, err := trySubmit(t, c, spec)
	require.NoError(t, err)
	return r
}

func trySubmit(t testing.TB, c *client, spec *apiv1.JobSpec) (*apiv1.JobStatus, error) {
	r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.SubmitJobResponse,
		error) {
		return m.SubmitJob(ctx, &apiv1.SubmitJobRequest{Spec: spec})
	})
	return r.GetJob(), err
}

// submitRunning submits a job and waits until it runs.
func submitRunning(t testing.TB, c *client, spec *apiv1.JobSpec) *apiv1.JobStatus {
	t.Helper()
	return until(t, c, submit(t, c, spec).Id, "running")
}

func get(t testing.TB, c *client, id string) *apiv1.JobStatus {
	t.Helper()
	r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.GetJobResponse, error) {
		return m.GetJob(ctx, &apiv1.GetJobRequest{Id: id})
	})
	require.NoError(t, err)
	return r.Job
}

// await waits until the control plane knows nodes with all their partitions.
func await(t testing.TB, c *client, names ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.ListNodesResponse,
			error) {
			return m.ListNodes(ctx, &apiv1.ListNodesRequest{})
		})
		require.NoError(t, err)
		found := 0
		for _, n := range r.Nodes {
			if slices.Contains(names, n.Status.Name) && n.State != "dead" && (len(n.Status.Partitions) > 0 ||
				slices.ContainsFunc(n.Status.Drives, fleet.ReachesAny)) {
				found++
			}
		}
		return found == len(names)
	}, time.Minute, 5*time.Millisecond)
}

// until waits for a job's state.
func until(t testing.TB, c *client, id, state string) *apiv1.JobStatus {
	t.Helper()
	var last *apiv1.JobStatus
	require.Eventually(t, func() bool {
		last = get(t, c, id)
		return last.State == state
	}, time.Minute, 5*time.Millisecond, "it is %v", &last)
	return last
}

func TestAJobFromSubmissionToItsEnd(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	a := liveNode(t, c, "a", map[string][]*apiv1.Partition{"d0": {partition(t, "p0", 95), partition(t, "p1", 40)}})
	b := liveNode(t, c, "b", map[string][]*apiv1.Partition{
		"d0": {partition(t, "p1", 40)}, "d1": {partition(t, "p2", 200)}})
	st := submit(t, c, &apiv1.JobSpec{Name: "ads", Epochs: 2, Ranks: 2, RankTail: "keep", TRowsPerSecond: 1500,
		Plan: &apiv1.PlanOptions{SplitBatches: 3}})
	assert.EqualValues(t, 335, st.Rows)
	assert.Contains(t, []string{"preparing", "measuring", "running"}, st.State)
	st = until(t, c, "ads", "running")
	assert.EqualValues(t, 2, st.DrivesWanted, "T of 1500 rows/s and P of 1000 a drive")
	assert.EqualValues(t, 1000, st.PRowsPerSecond)

	var wg sync.WaitGroup
	ranks := []*consumer{newConsumer(t, c, st.Id, 0), newConsumer(t, c, st.Id, 1)}
	for _, k := range ranks {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if assert.NoError(t, k.attach(nil)) {
				assert.NoError(t, k.consume(0))
			}
		}()
	}
	wg.Wait()
	st = until(t, c, "ads", "done")
	all := map[string]int{}
	for _, k := range ranks {
		assert.NotEmpty(t, k.got)
		for n, times := range k.got {
			all[n] += times
		}
	}
	assert.Len(t, all, 2*(10+4+20), "every mini-batch of both epochs")
	for n, times := range all {
		assert.Equal(t, 1, times, n)
	}
	for _, n := range []*fakeNode{a, b} {
		require.Eventually(t, func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.finished[string(st.Digest)] == 1
		}, time.Minute, time.Millisecond)
		assert.Equal(t, 1, n.prepared[string(st.Digest)])
	}
}
