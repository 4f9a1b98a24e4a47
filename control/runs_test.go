package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// attachAs attaches a rank of a training run.
func attachAs(t testing.TB, c *client, req *apiv1.AttachRequest) (*apiv1.AttachResponse, error) {
	return callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.AttachResponse, error) {
		return m.Attach(ctx, req)
	})
}

// take gets the given number of leases of the rank's epoch, and acknowledges them.
func (k *consumer) take(leases int) error {
	for range leases {
		r, err := k.lease(1, k.epoch, 5)
		if err != nil {
			return err
		}
		if len(r.Grants) != 1 {
			return fmt.Errorf("%d leases were granted: %v", len(r.Grants), r)
		}
		if err := k.acknowledge(r.Grants[0]); err != nil {
			return err
		}
	}
	return nil
}

// partlyConsumed returns the detail of an error that reports that another run has consumed mini-batches of a rank,
// or nil.
func partlyConsumed(err error) *apiv1.PartlyConsumed {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return nil
	}
	for _, d := range ce.Details() {
		if v, err := d.Value(); err == nil {
			if p, ok := v.(*apiv1.PartlyConsumed); ok {
				return p
			}
		}
	}
	return nil
}

// TestAnotherRunIsToldWhatWasConsumed: the mini-batches that one run acknowledged are not delivered to another run,
// so the other run must state that it continues.
func TestAnotherRunIsToldWhatWasConsumed(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 500)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Epochs: 2, Ranks: 2, Plan: &apiv1.PlanOptions{SplitBatches: 4}})

	// Nothing was acknowledged: any run that attaches is the first.
	for _, run := range []string{"a", "b", "", "a"} {
		_, err := attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: run})
		require.NoError(t, err, run)
	}
	k := newConsumer(t, c, st.Id, 0)
	k.run = "a"
	require.NoError(t, k.attach(nil))
	require.NoError(t, k.take(2))
	token, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse,
		error) {
		return m.Checkpoint(ctx, &apiv1.CheckpointRequest{Id: st.Id, Session: k.session})
	})
	require.NoError(t, err)

	refused := func(req *apiv1.AttachRequest, delivered string) *apiv1.PartlyConsumed {
		t.Helper()
		_, err := attachAs(t, c, req)
		require.Error(t, err)
		assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
		for _, says := range []string{"another run", "rank 0 is in epoch 1 of 2", delivered + " of its 25", "resume",
			"another name", "cancel"} {
			assert.ErrorContains(t, err, says)
		}
		p := partlyConsumed(err)
		require.NotNil(t, p)
		return p
	}
	p := refused(&apiv1.AttachRequest{Id: "job", Run: "b"}, "8")
	assert.Equal(t, []uint64{0, 2, 8, 25}, []uint64{p.Epoch, p.Epochs, p.Delivered, p.Minibatches})
	assert.Equal(t, st.Id, p.Job)
	assert.False(t, p.Finished)

	// A refused run does not affect the run that trains, and a late rank of the training run may attach.
	require.NoError(t, k.take(1))
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Rank: 1, Run: "a"})
	require.NoError(t, err)
	again := newConsumer(t, c, st.Id, 0)
	again.run = "a"
	require.NoError(t, again.attach(nil))

	// Rank 1 has acknowledged nothing, but another run has consumed the job. A rank that does not exist belongs to no
	// run.
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Rank: 1, Run: "b"})
	p = partlyConsumed(err)
	require.NotNil(t, p, "%v", err)
	assert.EqualValues(t, 0, p.Rank, "the rank that was consumed")
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Rank: 2, Run: "b"})
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err))

	// A launcher without a run may still attach. Its acknowledgements count as those of another run.
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id})
	require.NoError(t, err)
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: "a"})
	require.NotNil(t, partlyConsumed(err))

	// With a token, or with resume, the caller states that it continues; then the job belongs to its run.
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: "c", Token: token.Token})
	require.NoError(t, err)
	for range 2 {
		_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: "c"})
		require.NoError(t, err)
	}
	refused(&apiv1.AttachRequest{Id: st.Id, Run: "a"}, "8")
	// The other ranks of a run that continues from checkpoints may attach one after the other, and may attach
	// repeatedly.
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Rank: 1, Run: "c", Token: token.Token})
	require.NoError(t, err)
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: "d", Resume: true})
	require.NoError(t, err)
	refused(&apiv1.AttachRequest{Id: st.Id, Run: "c"}, "8")
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: "d"})
	require.NoError(t, err)

	// The length of the run's name is bounded.
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: strings.Repeat("x", 256), Resume: true})
	require.NoError(t, err)
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: strings.Repeat("x", 256+1), Resume: true})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
}

// TestAFurtherEpochIsConsumedToo: nothing of the epoch that the rank is in was acknowledged, but epochs before it were.
func TestAFurtherEpochIsConsumedToo(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 40)}})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Epochs: 2, Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	k := newConsumer(t, c, st.Id, 0)
	k.run = "a"
	require.NoError(t, k.attach(nil))
	require.NoError(t, k.take(1))
	r, err := k.lease(1, 1, 1)
	require.NoError(t, err)
	require.Len(t, r.Grants, 1, "epoch 1 has begun")
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: "job", Run: "b"})
	p := partlyConsumed(err)
	require.NotNil(t, p, "%v", err)
	assert.Equal(t, []uint64{1, 0}, []uint64{p.Epoch, p.Delivered})
}

// TestAJobThatResumedIsNotConsumed: the token that a job resumed from does not count as consumed.
func TestAJobThatResumedIsNotConsumed(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 200)}})
	spec := func(name string, token []byte) *apiv1.JobSpec {
		return &apiv1.JobSpec{Name: name, Epochs: 2, Resume: token, Plan: &apiv1.PlanOptions{SplitBatches: 4}}
	}
	first := submit(t, c, spec("first", nil))
	until(t, c, "first", "running")
	k := newConsumer(t, c, first.Id, 0)
	k.run = "a"
	require.NoError(t, k.attach(nil))
	require.NoError(t, k.consume(2))
	token, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CheckpointResponse,
		error) {
		return m.Checkpoint(ctx, &apiv1.CheckpointRequest{Id: first.Id})
	})
	require.NoError(t, err)
	second := submit(t, c, spec("second", token.Token))
	until(t, c, "second", "running")
	_, err = attachAs(t, c, &apiv1.AttachRequest{Id: second.Id, Run: "b"})
	require.NoError(t, err)
}

// TestTheNextLeaderKnowsTheRuns: a rank's run is stored before the caller is attached.
func TestTheNextLeaderKnowsTheRuns(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	s, err := Start(patient(t), o)
	require.NoError(t, err)
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	c := newClient(s)
	n := newNode(t, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 400)}})
	stop := n.beats(t, c)
	await(t, c, "n")
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Ranks: 2, Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	ranks := []*consumer{newConsumer(t, c, st.Id, 0), newConsumer(t, c, st.Id, 1)}
	for rank, k := range ranks {
		k.run = fmt.Sprint("run of rank ", rank)
		require.NoError(t, k.attach(nil))
	}
	for _, k := range ranks {
		require.NoError(t, k.take(2))
	}
	stop()
	require.NoError(t, s.Close())
	s, err = Start(patient(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	require.Eventually(t, s.Leads, time.Minute, time.Millisecond)
	c = newClient(s)
	n.beats(t, c)
	await(t, c, "n")
	for rank := range uint32(2) {
		_, err := attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Rank: rank, Run: "run of rank 2"})
		assert.NotNil(t, partlyConsumed(err), "%v", err)
		_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Rank: rank, Run: fmt.Sprint("run of rank ", rank)})
		assert.NoError(t, err)
	}
}

// TestSubmitAfterTheLastMiniBatch: a script that loops to the end and immediately runs again gets all of the data
// again.
func TestSubmitAfterTheLastMiniBatch(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 40)}})
	ids := map[string]bool{}
	for range 5 {
		st := submit(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
		assert.False(t, ids[st.Id], "a job of which nothing is left")
		ids[st.Id] = true
		until(t, c, st.Id, "running")
		k := newConsumer(t, c, st.Id, 0)
		k.run = st.Id
		require.NoError(t, k.attach(nil))
		r, err := k.lease(1, 0, 1)
		require.NoError(t, err)
		require.Len(t, r.Grants, 1)
		require.NoError(t, k.acknowledge(r.Grants[0]))
		// A launcher that attaches to a job that is over learns so, before and after the job's end is stored.
		_, err = attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: "another"})
		assert.Equal(t, connect.CodeAborted, connect.CodeOf(err))
		assert.ErrorContains(t, err, "is done")
	}
	// A job that waits for its trainers is not over.
	st := submit(t, c, &apiv1.JobSpec{Name: "stays", Plan: &apiv1.PlanOptions{SplitBatches: 4}})
	until(t, c, "stays", "running")
	k := newConsumer(t, c, st.Id, 0)
	k.run, k.stays = "a", true
	require.NoError(t, k.attach(nil))
	require.NoError(t, k.consume(1))
	require.Eventually(t, func() bool {
		_, err := attachAs(t, c, &apiv1.AttachRequest{Id: st.Id, Run: "b"})
		p := partlyConsumed(err)
		return p != nil && p.Finished
	}, time.Minute, 10*time.Millisecond)
}

// TestEveryRankSubmits: all ranks submit at the same time, and all get the same job.
func TestEveryRankSubmits(t *testing.T) {
	t.Parallel()
	_, c := start(t, testOptions(t))
	liveNode(t, c, "n", map[string][]*apiv1.Partition{"d": {partition(t, "p0", 40)}})
	for i := range 5 {
		ids := make(chan string, 8)
		for range cap(ids) {
			go func() {
				st, err := trySubmit(t, c, &apiv1.JobSpec{Name: fmt.Sprintf("job-%d", i),
					Pipeline: []byte(testPipeline), Ranks: 2})
				assert.NoError(t, err)
				ids <- st.GetId()
			}()
		}
		first := <-ids
		for range cap(ids) - 1 {
			assert.Equal(t, first, <-ids)
		}
		_, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.CancelJobResponse,
			error) {
			return m.CancelJob(ctx, &apiv1.CancelJobRequest{Id: first})
		})
		require.NoError(t, err)
	}
}
