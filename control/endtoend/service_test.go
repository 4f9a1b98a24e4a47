package endtoend

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestTheServiceGivesWhatOneMachineGives: the service gives the same mini-batches by the same names, byte for byte, in
// both orders, over two nodes with drives in files, to one rank and to two.
func TestTheServiceGivesWhatOneMachineGives(t *testing.T) {
	data := files(t, 700, 401, 300, 49, 650)
	want := onOneMachine(t, data, 2)
	s := startControl(t, controlOptions(t.TempDir()))
	held := deal(data, 2)
	for i, name := range []string{"n0", "n1"} {
		runNode(t, nodeConfig(name, []string{s.URL()}, makeDrive(t, "file", held[i])))
	}
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	for _, order := range []string{"fastest", "deterministic"} {
		for _, ranks := range []uint32{1, 2} {
			st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Epochs: 2,
				Order: order, Ranks: ranks, RankTail: "keep"})
			require.NoError(t, err)
			got := newResult()
			var per [2][]uint64
			for rank := range ranks {
				j, err := c.Attach(t.Context(), st.Id, remote.AttachOptions{Rank: rank, QueueBytes: 50_000})
				require.NoError(t, err)
				for mb, err := range j.MiniBatches(t.Context()) {
					require.NoError(t, err)
					got.add(t, mb)
					per[rank] = append(per[rank], mb.Name.Number)
				}
				r, err := j.Report(t.Context())
				require.NoError(t, err)
				assert.EqualValues(t, len(per[rank]), r.MiniBatches)
				assert.NotEmpty(t, r.PerDrive)
				require.NoError(t, j.Close())
			}
			check(t, want, got, order == "deterministic" && ranks == 1)
			assert.InDelta(t, len(per[0]), len(want.order)-len(per[0]), float64(len(want.order))*float64(2-ranks)+2)
			awaitDone(t, c, st.Id)
		}
	}
}

// TestACheckpointOfTheService: a token brings a trainer back to its position, although the trainer acknowledged more
// mini-batches since. A bare token and a token of another job do not. A new job resumes from the token.
func TestACheckpointOfTheService(t *testing.T) {
	data := files(t, 700, 401)
	want := onOneMachine(t, data, 1)
	_, c := oneNode(t, data)
	spec := &apiv1.JobSpec{Name: "a", Pipeline: []byte(document), Plan: plan()}
	st, err := c.Submit(t.Context(), spec)
	require.NoError(t, err)
	j, err := c.Attach(t.Context(), "a", remote.AttachOptions{})
	require.NoError(t, err)
	got := newResult()
	var token []byte
	take := func(j *remote.Job, n int, keep bool) {
		for mb, err := range j.MiniBatches(t.Context()) {
			require.NoError(t, err)
			if keep {
				got.add(t, mb)
			}
			if n--; n == 0 {
				require.NoError(t, j.Acknowledge(mb.Name))
				break
			}
		}
	}
	take(j, 7, true)
	token, err = j.Checkpoint(t.Context())
	require.NoError(t, err)
	take(j, 5, false) // acknowledged after the checkpoint: the model forgets them
	require.NoError(t, j.Flush(t.Context()))
	require.NoError(t, j.Close())
	bare, err := j.Token().MarshalBinary()
	require.NoError(t, err)
	_, err = c.Attach(t.Context(), "a", remote.AttachOptions{Token: bare})
	require.Error(t, err)
	_, err = c.Attach(t.Context(), "a", remote.AttachOptions{Token: append([]byte(nil),
		append(token[:len(token)-1:len(token)-1], token[len(token)-1]^1)...)})
	require.Error(t, err)
	j, err = c.Attach(t.Context(), "a", remote.AttachOptions{Token: token})
	require.NoError(t, err)
	take(j, 3, true)
	token, err = j.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	require.NoError(t, c.Cancel(t.Context(), st.Id))
	_, err = c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.ErrorIs(t, err, remote.ErrEnded)
	// Another cluster's etcd may be gone with the job; the trainer's token is the truth.
	spec.Name, spec.Resume = "b", token
	_, err = c.Submit(t.Context(), spec)
	require.NoError(t, err)
	j, err = c.Attach(t.Context(), "b", remote.AttachOptions{})
	require.NoError(t, err)
	take(j, -1, true)
	// Everything is delivered and durable, but the trainer dies before its last checkpoint: it can still go back.
	last, err := j.Checkpoint(t.Context())
	require.NoError(t, err)
	back, err := c.Attach(t.Context(), "b", remote.AttachOptions{Token: token})
	require.NoError(t, err)
	again := 0
	for mb, err := range back.MiniBatches(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, got.sums[mb.Name], sum(mb))
		again++
	}
	require.Equal(t, len(want.sums)-10, again)
	require.NoError(t, back.Close())
	awaitDone(t, c, "b")
	_, err = c.Attach(t.Context(), "b", remote.AttachOptions{Token: last})
	require.ErrorIs(t, err, remote.ErrEnded)
	_ = j.Close() // another attached as this rank, and the job has ended
	check(t, want, got, false)
	spec.Name, spec.Plan.Seed = "c", 10
	_, err = c.Submit(t.Context(), spec)
	require.ErrorContains(t, err, "another job")
}
