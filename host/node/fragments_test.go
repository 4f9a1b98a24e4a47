package node

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// rowsOf returns each row of a mini-batch as text.
func rowsOf(mb *tensor.MiniBatch) []string {
	rows := make([]string, mb.Rows)
	offsets := mb.Offsets(nil)
	for r := range rows {
		d := len(mb.Schema.Dense)
		rows[r] = fmt.Sprint(mb.Label[r], mb.Dense[r*d:(r+1)*d])
		for f := range mb.Schema.Keys {
			at := f*mb.Rows + r
			if mb.Schema.IDs == tensor.Int32 {
				rows[r] += fmt.Sprint(mb.Values32[offsets[at]:offsets[at+1]])
			} else {
				rows[r] += fmt.Sprint(mb.Values64[offsets[at]:offsets[at+1]])
			}
		}
	}
	return rows
}

// TestFragmentsAreCountedAsSuch fetches an epoch of mini-batches that have several fragments: the node counts each
// fragment, and a mini-batch once. Where mini-batches end with partitions both numbers are equal.
func TestFragmentsAreCountedAsSuch(t *testing.T) {
	f := start(t, nil, fill(t, "mem", content(t)))
	var fragments, miniBatches uint64
	for _, boundary := range []dataset.Boundary{dataset.BoundaryPartition, dataset.BoundaryNone} {
		j := f.prepare(dataset.Options{Batch: 70, Shuffle: dataset.ShuffleNone, Boundary: boundary})
		for n := range j.Plan.Fragments() {
			f.frame(j, "d0", n, n+1)
		}
		fragments += j.Plan.Fragments()
		miniBatches += j.Plan.MiniBatches()
		require.Equal(t, boundary == dataset.BoundaryNone, fragments > miniBatches)
		var said []byte
		for _, want := range []string{
			fmt.Sprintf("millrace_node_fragments_total{drive=\"d0\"} %d\n", fragments),
			fmt.Sprintf("millrace_node_minibatches_total{drive=\"d0\"} %d\n", miniBatches),
		} {
			f.wait(want, func() bool { // A fragment is counted after its client has all of it.
				_, said, _ = f.get(f.base + "/metrics")
				return strings.Contains(string(said), want)
			})
		}
	}
}

// TestFragmentsOfSeveralPartitions fetches the fragments of an epoch in an order of their own. Joined, they are the
// rows of the same epoch whose mini-batches end with partitions, in mini-batches of the batch but the last.
func TestFragmentsOfSeveralPartitions(t *testing.T) {
	files := content(t)
	f := start(t, nil, fill(t, "mem", files))
	order := dataset.Options{Batch: 70, SplitBatches: 3, Shuffle: dataset.ShuffleNone}
	var want []string
	for _, frame := range f.epoch(f.prepare(order), "d0") {
		mb, err := tensor.ReadFrame(frame)
		require.NoError(t, err)
		want = append(want, rowsOf(mb)...)
	}
	order.Boundary = dataset.BoundaryNone
	j := f.prepare(order)
	plan := j.Plan
	require.Greater(t, plan.Fragments(), plan.MiniBatches())
	parts := make([][]*tensor.MiniBatch, plan.MiniBatches())
	for n := range parts {
		mb, err := plan.MiniBatch(uint64(n))
		require.NoError(t, err)
		parts[n] = make([]*tensor.MiniBatch, mb.Fragments)
	}
	for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(int(plan.Fragments())) {
		at, err := plan.Fragment(uint64(n))
		require.NoError(t, err)
		split, err := plan.Split(at.Split)
		require.NoError(t, err)
		fragment, err := tensor.ReadFrame(f.frame(j, "d0", at.Number, split.End()))
		require.NoError(t, err)
		require.Equal(t, at.Rows, fragment.Rows)
		if of := len(parts[at.MiniBatch]); of > 1 {
			require.Equal(t, of, fragment.Fragment.Of)
		}
		parts[at.MiniBatch][fragment.Fragment.Index] = fragment
	}
	var have []string
	for n, fragments := range parts {
		whole := fragments[0]
		if len(fragments) > 1 {
			var err error
			whole, err = new(tensor.Memory).Join(fragments)
			require.NoError(t, err)
		}
		require.Zero(t, whole.Fragment)
		if n+1 < len(parts) {
			require.Equal(t, 70, whole.Rows)
		}
		have = append(have, rowsOf(whole)...)
	}
	assert.Equal(t, want, have)
	status, b, _ := f.get(f.link(j, "d0", plan.Fragments(), plan.Fragments()+1))
	assert.Equal(t, http.StatusBadRequest, status, "%s", b)
	assert.Contains(t, string(b), fmt.Sprintf("fragment %d of %d", plan.Fragments(), plan.Fragments()))
}

// TestAFragmentHasNoArrowFile checks that the file of a part cannot be taken for the file of the whole mini-batch.
func TestAFragmentHasNoArrowFile(t *testing.T) {
	f := start(t, nil, fill(t, "mem", content(t)))
	j := f.prepare(dataset.Options{Batch: 70, Shuffle: dataset.ShuffleNone, Boundary: dataset.BoundaryNone})
	for n := range j.Plan.Fragments() {
		at, err := j.Plan.Fragment(n)
		require.NoError(t, err)
		mb, err := j.Plan.MiniBatch(at.MiniBatch)
		require.NoError(t, err)
		status, b, h := f.get(f.link(j, "d0", n, n+1), "Accept", apiv1.ArrowType)
		if mb.Fragments == 1 {
			require.Equal(t, http.StatusOK, status, "%s", b)
			require.Equal(t, apiv1.ArrowType, h.Get("Content-Type"))
			continue
		}
		require.Equal(t, http.StatusBadRequest, status, "%s", b)
		require.Contains(t, string(b), "fragments have no Arrow file, accept "+apiv1.FrameType+" and join them")
		f.frame(j, "d0", n, n+1) // it is still there
	}
}
