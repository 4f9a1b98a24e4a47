package remote

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/tensor"
)

// acrossPartitions is a job of 34 mini-batches whose rows go on across 9 partitions of 37 rows, one split each.
var acrossPartitions = clusterOptions{rows: 37, parts: 9, batch: 10, split: 4, nodes: 2, across: true}

// TestFragmentsAreJoined takes mini-batches whose fragments come by several leases, and a node dies meanwhile. Every
// mini-batch comes once, whole, and is acknowledged by its own number.
func TestFragmentsAreJoined(t *testing.T) {
	for _, order := range []string{"fastest", "deterministic"} {
		t.Run(order, func(t *testing.T) {
			o := acrossPartitions
			o.order = order
			c := newCluster(t, o)
			require.EqualValues(t, 34, c.plan[0].MiniBatches())
			require.EqualValues(t, 42, c.plan[0].Fragments())
			var mu sync.Mutex
			acknowledged := map[uint64]int{}
			c.acknowledged = func(r *apiv1.AcknowledgeRequest) {
				mu.Lock()
				defer mu.Unlock()
				for _, numbers := range r.Numbers {
					for n := numbers.From; n < numbers.To; n++ {
						acknowledged[n]++
					}
				}
			}
			j := c.attach(t, c.dial(t), AttachOptions{QueueBytes: 1000})
			n := 0
			got := take(t, c, j, -1, func(mb *tensor.MiniBatch) {
				require.Zero(t, mb.Fragment)
				if n++; n == 8 {
					c.nodes[0].kill()
				}
			})
			require.NoError(t, got.err)
			require.NoError(t, j.Close())
			if order == "deterministic" {
				require.Equal(t, all(0, 34), got.numbers)
			}
			require.Equal(t, all(0, 34), sorted(got.numbers))
			require.Len(t, acknowledged, 34)
			for n, times := range acknowledged {
				assert.Equal(t, 1, times, "mini-batch %d", n)
			}
		})
	}
}

// TestALauncherStartsAgainAmongFragments checks that a launcher that starts again with a token gets both halves of each
// mini-batch that was not acknowledged, also if one half came before.
func TestALauncherStartsAgainAmongFragments(t *testing.T) {
	c := newCluster(t, acrossPartitions)
	c.spec.Order = "deterministic"
	client := c.dial(t)
	j := c.attach(t, client, AttachOptions{})
	first := take(t, c, j, 3, nil)
	require.NoError(t, first.err)
	token, err := j.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	j = c.attach(t, client, AttachOptions{Token: token})
	rest := take(t, c, j, -1, nil)
	require.NoError(t, rest.err)
	require.NoError(t, j.Close())
	assert.Equal(t, all(0, 3), first.numbers)
	assert.Equal(t, all(3, 34), rest.numbers, "mini-batch 3 has rows of two partitions")
}

// TestFramesOfOtherFragmentsAreRefused checks that the lease of a node goes back if the node sends something else than
// the fragment that was asked for, and that the other node's fragments are joined.
func TestFramesOfOtherFragmentsAreRefused(t *testing.T) {
	for name, change := range map[string]func(c *cluster, number uint64, mb *tensor.MiniBatch) *tensor.MiniBatch{
		"another fragment of the mini-batch": func(_ *cluster, _ uint64, mb *tensor.MiniBatch) *tensor.MiniBatch {
			mb.Fragment.Index = 1 - mb.Fragment.Index
			return mb
		},
		"a fragment of more": func(_ *cluster, _ uint64, mb *tensor.MiniBatch) *tensor.MiniBatch {
			mb.Fragment.Of++
			return mb
		},
		"a whole mini-batch": func(_ *cluster, _ uint64, mb *tensor.MiniBatch) *tensor.MiniBatch {
			mb.Fragment = tensor.Fragment{}
			return mb
		},
		"fewer rows": func(_ *cluster, _ uint64, mb *tensor.MiniBatch) *tensor.MiniBatch {
			part := makeBatch(mb.Name, mb.Rows-1)
			part.Fragment = mb.Fragment
			return part
		},
		"the next fragment": func(c *cluster, number uint64, _ *tensor.MiniBatch) *tensor.MiniBatch {
			next, err := c.makeFragment(0, number+1)
			if err != nil {
				panic(err)
			}
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, acrossPartitions)
			c.nodes[0].do(func(number uint64, w http.ResponseWriter, _ *http.Request, frame []byte) bool {
				mb, err := tensor.ReadFrame(frame)
				if err != nil {
					panic(err)
				}
				if mb.Fragment == (tensor.Fragment{}) {
					return false
				}
				frame, err = tensor.AppendFrame(nil, change(c, number, mb))
				if err != nil {
					panic(err)
				}
				send(w, frame)
				return true
			})
			j := c.attach(t, c.dial(t), AttachOptions{})
			got := take(t, c, j, -1, nil)
			require.NoError(t, got.err)
			require.NoError(t, j.Close())
			require.Equal(t, all(0, 34), sorted(got.numbers))
			c.mu.Lock()
			defer c.mu.Unlock()
			assert.True(t, slices.ContainsFunc(c.reasons, func(why string) bool {
				return strings.HasPrefix(why, "node: node n0")
			}), "reasons: %q", c.reasons)
		})
	}
}
