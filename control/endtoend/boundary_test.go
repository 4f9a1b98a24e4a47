package endtoend

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote"
)

// narrowNodes starts nodes that hold the partitions in turn, each on one drive that makes one split at a time. It
// returns a client.
func narrowNodes(t *testing.T, member string, nodes int, data map[string][]byte) *remote.Client {
	t.Helper()
	names := map[string]bool{}
	for i, files := range deal(data, nodes) {
		config := nodeConfig(fmt.Sprintf("n%d", i), []string{member}, makeDrive(t, "mem", files))
		config.Drives[0].Streams = 1
		runNode(t, config)
		names[config.Name] = true
	}
	c := dial(t, member)
	awaitPartitions(t, c, names, len(data))
	return c
}

// TestMiniBatchesAcrossNodes trains on mini-batches that go on across files on several drives and nodes (boundary
// none). They are those of one machine, byte for byte, in both orders. Every drive makes one split at a time, the job
// has one drive at a time, and the trainer's queue has room for no second mini-batch: no fragment waits for ever for
// another.
func TestMiniBatchesAcrossNodes(t *testing.T) {
	data := files(t, 130, 75, 7, 410, 49, 260, 33, 12)
	for document, text := range map[string]string{"wide": document, "narrow": narrowDocument} {
		spec, err := pipeline.Parse([]byte(text))
		require.NoError(t, err)
		for _, shuffle := range []dataset.Shuffle{dataset.ShuffleSplits, dataset.ShuffleRows} {
			want := jobOnOneMachine(t, trainmgr.Options{Pipeline: spec, Batch: 50, SplitBatches: 2, Seed: 9, Epochs: 2,
				Boundary: dataset.BoundaryNone, Shuffle: shuffle}, data)
			require.Len(t, want.sums, 2*20, "976 rows")
			for _, nodes := range []int{1, 3} {
				for _, order := range []string{"fastest", "deterministic"} {
					t.Run(fmt.Sprint(document, " ", shuffle, " ", nodes, " ", order), func(t *testing.T) {
						s := startControl(t, controlOptions(t.TempDir()))
						c := narrowNodes(t, s.URL(), nodes, data)
						ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
						defer cancel()
						st, err := c.Submit(ctx, &apiv1.JobSpec{Pipeline: []byte(text), Order: order, Epochs: 2, MaxDrives: 1,
							Plan: &apiv1.PlanOptions{Batch: 50, SplitBatches: 2, Seed: 9, Shuffle: shuffle.String(), Boundary: "none"}})
						require.NoError(t, err)
						j, err := c.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 1, Deadline: 5 * time.Second})
						require.NoError(t, err)
						got := newResult()
						for mb, err := range j.MiniBatches(ctx) {
							require.NoError(t, err)
							got.add(t, mb)
						}
						require.NoError(t, j.Close())
						check(t, want, got, order == "deterministic")
						st, err = c.Get(ctx, st.Id)
						require.NoError(t, err)
						assert.EqualValues(t, 20, st.Delivered)
						assert.EqualValues(t, 20, st.Minibatches)
					})
				}
			}
		}
	}
}

// TestRanksShareMiniBatchesAcrossNodes has two ranks wait for each other's drives, of which each makes one split at a
// time: a fragment of one rank may wait for a drive that makes a split of the other.
func TestRanksShareMiniBatchesAcrossNodes(t *testing.T) {
	data := files(t, 130, 75, 7, 410, 49, 260, 33, 12)
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	want := jobOnOneMachine(t, trainmgr.Options{Pipeline: spec, Batch: 50, SplitBatches: 2, Seed: 9, Epochs: 2,
		Boundary: dataset.BoundaryNone}, data)
	for _, nodes := range []int{1, 2, 3} {
		for _, order := range []string{"fastest", "deterministic"} {
			t.Run(fmt.Sprint(nodes, " ", order), func(t *testing.T) {
				s := startControl(t, controlOptions(t.TempDir()))
				c := narrowNodes(t, s.URL(), nodes, data)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				st, err := c.Submit(ctx, &apiv1.JobSpec{Pipeline: []byte(document), Order: order, Epochs: 2, Ranks: 2,
					Plan: &apiv1.PlanOptions{Batch: 50, SplitBatches: 2, Seed: 9, Boundary: "none"}})
				require.NoError(t, err)
				var ranks sync.WaitGroup
				var got [2]*result
				for rank := range got {
					got[rank] = newResult()
					ranks.Go(func() {
						j, err := c.Attach(ctx, st.Id, remote.AttachOptions{Rank: uint32(rank), QueueBytes: 1,
							Deadline: 5 * time.Second})
						if !assert.NoError(t, err) {
							return
						}
						for mb, err := range j.MiniBatches(ctx) {
							if !assert.NoError(t, err) {
								break
							}
							got[rank].add(t, mb)
						}
						assert.NoError(t, j.Close())
					})
				}
				ranks.Wait()
				all := newResult()
				for _, r := range got {
					assert.Len(t, r.sums, 2*10)
					maps.Copy(all.sums, r.sums)
				}
				check(t, want, all, false)
			})
		}
	}
}
