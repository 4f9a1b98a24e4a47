package delivery

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/tensor"
)

func TestJoinerReturnsAMiniBatchWhenItsLastFragmentComes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type place struct {
			number uint64
			tensor.Fragment
		}
		var all []place
		missing := map[uint64]int{}
		for number := range uint64(rapid.IntRange(1, 4).Draw(rt, "mini-batches")) {
			of := rapid.IntRange(2, 5).Draw(rt, "fragments")
			for i := range of {
				all = append(all, place{number, tensor.Fragment{Index: i, Of: of}})
			}
			missing[number] = of
		}
		j := joiner{waiting: map[uint64][]*tensor.MiniBatch{}}
		alive := 0
		order := rapid.Permutation(all).Draw(rt, "order")
		come := rapid.IntRange(0, len(order)).Draw(rt, "come")
		for _, p := range order[:come] {
			alive++
			part := tensor.New(&tensor.Schema{Label: true}, 0, func() { alive-- })
			part.Name.Number, part.Fragment = p.number, p.Fragment
			whole := j.add(part)
			missing[p.number]--
			require.Equal(rt, missing[p.number] == 0, whole != nil)
			for i, w := range whole {
				require.Equal(rt, p.number, w.Name.Number)
				require.Equal(rt, i, w.Fragment.Index)
				w.Release()
			}
		}
		if come == len(order) {
			require.Empty(rt, j.waiting)
			require.Zero(rt, alive)
		}
		j.drain()
		require.Zero(rt, alive)
	})
}

// TestAFragmentThatWaitsIsNotLent: what waits holds no memory of a drive, which can then be given up.
func TestAFragmentThatWaitsIsNotLent(t *testing.T) {
	lent := true
	part := tensor.New(&tensor.Schema{Label: true}, 2, func() { lent = false })
	part.Label, part.Fragment = []float32{1, 2}, tensor.Fragment{Index: 1, Of: 2}
	d := &Delivery{joiner: joiner{waiting: map[uint64][]*tensor.MiniBatch{}}}
	require.NoError(t, d.join(part))
	require.False(t, lent)
	require.Equal(t, []float32{1, 2}, d.joiner.waiting[0][0].Label)
}
