package endtoend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote"
)

// TestANodeIsLostAmongFragments trains two ranks on mini-batches that go on across files of odd sizes on three nodes
// with replicas, and one of the nodes ends when both ranks have begun. The ranks together get each mini-batch of one
// machine once, byte for byte, in both orders.
func TestANodeIsLostAmongFragments(t *testing.T) {
	data := files(t, 130, 75, 7, 410, 49, 260, 33, 112)
	spec, err := pipeline.Parse([]byte(narrowDocument))
	require.NoError(t, err)
	want := jobOnOneMachine(t, trainmgr.Options{Pipeline: spec, Batch: 20, SplitBatches: 3, Seed: 9, Epochs: 1,
		Boundary: dataset.BoundaryNone, Shuffle: dataset.ShuffleSplits}, data)
	require.Len(t, want.sums, 54, "1076 rows")
	for _, order := range []string{"fastest", "deterministic"} {
		t.Run(order, func(t *testing.T) {
			s := startControl(t, controlOptions(t.TempDir()))
			held, parts := map[string]bool{}, deal(data, 3)
			var lost *node.Agent
			for i := range parts {
				both := maps.Clone(parts[i])
				maps.Copy(both, parts[(i+1)%3])
				config := nodeConfig(fmt.Sprint("n", i), []string{s.URL()}, makeDrive(t, "mem", both))
				held[config.Name] = true
				if i < 2 {
					runNode(t, config)
					continue
				}
				lost = startNode(t, config, node.Options{})
			}
			c := dial(t, s.URL())
			awaitPartitions(t, c, held, len(data))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			st, err := c.Submit(ctx, &apiv1.JobSpec{Pipeline: []byte(narrowDocument), Order: order, Epochs: 1, Ranks: 2,
				RankTail: "keep", Plan: &apiv1.PlanOptions{Batch: 20, SplitBatches: 3, Seed: 9, Shuffle: "splits",
					Boundary: "none"}})
			require.NoError(t, err)
			got, begun := []*result{newResult(), newResult()}, make(chan struct{}, 2)
			closed, ended := make(chan struct{}), make(chan error, 2)
			for rank := range got {
				train := func() error {
					j, err := c.Attach(ctx, st.Id, remote.AttachOptions{Rank: uint32(rank), QueueBytes: 20_000,
						Deadline: 5 * time.Second})
					if err != nil {
						return err
					}
					for mb, err := range j.MiniBatches(ctx) {
						if err != nil {
							return err
						}
						if got[rank].add(t, mb); len(got[rank].order) == 4 {
							begun <- struct{}{}
							<-closed
						}
					}
					return j.Close()
				}
				go func() {
					err := errors.New("a mini-batch was wrong")
					defer func() { ended <- err }()
					err = train()
				}()
			}
			for range got {
				select {
				case <-begun:
				case err := <-ended:
					require.NoError(t, err)
					require.Fail(t, "a rank has ended before the node is lost")
				}
			}
			assert.NoError(t, lost.Close())
			close(closed)
			for range got {
				require.NoError(t, <-ended)
			}
			both := newResult()
			for _, r := range got {
				if order == "deterministic" {
					assert.True(t, slices.IsSorted(r.order), "%v", r.order)
				}
				for name, sum := range r.sums {
					require.NotContains(t, both.sums, name, "both ranks got it")
					both.sums[name] = sum
				}
			}
			check(t, want, both, false)
		})
	}
}
