package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
)

// joiner is a consumer of a job whose mini-batches have fragments in several splits.
type joiner struct {
	*consumer
	plan         *dataset.Plan
	has          map[uint64]bool // fragments
	acknowledged map[uint64]bool // mini-batches
}

// attachJoiner attaches the only rank of a job, and makes the plan of its epoch.
func attachJoiner(t testing.TB, c *client, id string) *joiner {
	k := &joiner{consumer: newConsumer(t, c, id, 0), has: map[uint64]bool{}, acknowledged: map[uint64]bool{}}
	k.fetched = map[uint64]bool{}
	r, err := callControl(t, c, func(ctx context.Context, m apiv1connect.ControlClient) (*apiv1.AttachResponse, error) {
		return m.Attach(ctx, &apiv1.AttachRequest{Id: id, Joins: true})
	})
	require.NoError(t, err)
	k.session, k.epoch, k.owned = r.Session, r.Epoch, r.Owned
	manifest, err := dataset.ReadManifest(r.Manifest)
	require.NoError(t, err)
	o, err := apiv1.ReadPlan(r.Job.Spec.Plan)
	require.NoError(t, err)
	k.plan, err = dataset.NewPlan(manifest, o)
	require.NoError(t, err)
	return k
}

// take takes every fragment that the rank is granted, and acknowledges the mini-batches that are whole then. It reports
// whether the job is done.
func (k *joiner) take() (done bool) {
	r, err := k.lease(2, k.epoch, 1)
	require.NoError(k.t, err)
	require.False(k.t, r.UnknownSession)
	for id, g := range k.held {
		first, err := k.plan.Fragment(g.From)
		require.NoError(k.t, err)
		if r := g.MiniBatch; r != nil {
			assert.Equal(k.t, first.MiniBatch, *r)
		}
		for n := g.From; n < g.To; n++ {
			k.has[n] = true
		}
		k.fetched[id] = true
	}
	var whole []*apiv1.NumberRange
	for n := range k.plan.MiniBatches() {
		mb, err := k.plan.MiniBatch(n)
		require.NoError(k.t, err)
		all := !k.acknowledged[n]
		for i := range mb.Fragments {
			all = all && k.has[mb.FirstFragment+uint64(i)]
		}
		if all {
			k.acknowledged[n] = true
			whole = append(whole, &apiv1.NumberRange{From: n, To: n + 1})
		}
	}
	if len(whole) > 0 {
		_, err := callControl(k.t, k.c, func(ctx context.Context, m apiv1connect.ControlClient) (
			*apiv1.AcknowledgeResponse, error) {
			return m.Acknowledge(ctx, &apiv1.AcknowledgeRequest{Id: k.id, Session: k.session, Epoch: k.epoch, Numbers: whole})
		})
		require.NoError(k.t, err)
	}
	for id, g := range k.held {
		last, err := k.plan.Fragment(g.To - 1)
		require.NoError(k.t, err)
		first, err := k.plan.Fragment(g.From)
		require.NoError(k.t, err)
		all := true
		for n := first.MiniBatch; n <= last.MiniBatch; n++ {
			all = all && k.acknowledged[n]
		}
		if all {
			delete(k.held, id)
		}
	}
	return r.JobDone
}

// TestMiniBatchesOfSeveralPartitions delivers an epoch whose mini-batches go on across the partitions of two nodes. The
// leader dies while the rank holds fragments of mini-batches that are not whole. All that a user reads counts
// mini-batches.
func TestMiniBatchesOfSeveralPartitions(t *testing.T) {
	t.Parallel()
	members, c := startCluster(t, 3)
	defer closeAll(t, members)
	drives := [2][]*apiv1.Partition{}
	rows := int64(0)
	for i := range 24 {
		p := partition(t, fmt.Sprintf("p%02d", i), int64(13+i))
		drives[i%2] = append(drives[i%2], p)
		rows += p.Rows
	}
	liveNode(t, c, "a", map[string][]*apiv1.Partition{"d": drives[0]})
	liveNode(t, c, "b", map[string][]*apiv1.Partition{"d": drives[1]})
	st := submitRunning(t, c, &apiv1.JobSpec{Name: "job", Plan: &apiv1.PlanOptions{SplitBatches: 2, Boundary: "none"}})
	assert.Equal(t, "none", st.Spec.Plan.Boundary)
	miniBatches := uint64(rows+9) / 10
	assert.Equal(t, miniBatches, st.Minibatches)
	assert.Zero(t, st.LeftOutRows)
	assert.EqualValues(t, 1, st.ShortMinibatches, "the epoch's last")

	err := newConsumer(t, c, st.Id, 0).attach(nil)
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "%v", err)
	assert.ErrorContains(t, err, "upgrade the launcher")
	k := attachJoiner(t, c, st.Id)
	require.Equal(t, miniBatches, k.plan.MiniBatches())
	require.Greater(t, k.plan.Fragments(), miniBatches)
	require.Len(t, k.owned, 1)
	assert.Equal(t, []uint64{0, miniBatches}, []uint64{k.owned[0].From, k.owned[0].To})
	for uint64(len(k.acknowledged)) < miniBatches/3 {
		k.take()
	}
	at := leads(t, members)
	old := members[at].leading.Load()
	members[at] = nil
	require.NoError(t, kill(old.s))
	leads(t, members)
	assert.Equal(t, uint64(len(k.acknowledged)), get(t, c, st.Id).Delivered)
	for end := time.Now().Add(2 * time.Minute); !k.take(); {
		require.True(t, time.Now().Before(end), "%v", get(t, c, st.Id))
	}
	assert.Len(t, k.acknowledged, int(miniBatches))
	assert.Equal(t, miniBatches, until(t, c, "job", "done").Delivered)
}
