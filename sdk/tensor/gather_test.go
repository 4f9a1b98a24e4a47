package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// row is one row of a mini-batch, written out.
type row struct {
	label   []uint32
	dense   []uint32
	ids     [][]int64
	weights [][]float32
}

func rowsOf(m *MiniBatch) []row {
	o := m.Offsets(nil)
	d := len(m.Schema.Dense)
	out := make([]row, m.Rows)
	for r := range out {
		if m.Schema.Label {
			out[r].label = []uint32{math.Float32bits(m.Label[r])}
		}
		for i := r * d; i < (r+1)*d; i++ {
			if m.Schema.DenseDType() == BFloat16 {
				out[r].dense = append(out[r].dense, uint32(m.Dense16[i]))
			} else {
				out[r].dense = append(out[r].dense, math.Float32bits(m.Dense[i]))
			}
		}
		for f := range m.Schema.Keys {
			var ids []int64
			var weights []float32
			for i := o[f*m.Rows+r]; i < o[f*m.Rows+r+1]; i++ {
				if m.Schema.IDs == Int32 {
					ids = append(ids, int64(m.Values32[i]))
				} else {
					ids = append(ids, m.Values64[i])
				}
				if m.Schema.Weights {
					weights = append(weights, m.Weights[i])
				}
			}
			out[r].ids = append(out[r].ids, ids)
			out[r].weights = append(out[r].weights, weights)
		}
	}
	return out
}

func TestGatherMovesWholeRows(t *testing.T) {
	for name, s := range schemas() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				sizes := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 4).Draw(rt, "rows")
				seed := rapid.Uint64().Draw(rt, "seed")
				var window []*MiniBatch
				var all []row
				for i, n := range sizes {
					m := random(t, s, n, uint64(i))
					m.Fragment = Fragment{Index: i, Of: 99}
					window = append(window, m)
					all = append(all, rowsOf(m)...)
				}
				perm := make([]uint32, len(all))
				for i, p := range rand.New(rand.NewPCG(seed, 2)).Perm(len(all)) {
					perm[i] = uint32(p)
				}
				out, err := Gather(window, perm)
				require.NoError(rt, err)
				require.Len(rt, out, len(window))
				at := 0
				for k, m := range out {
					require.NoError(rt, m.Validate())
					require.Equal(rt, window[k].Name, m.Name)
					require.Equal(rt, window[k].Fragment, m.Fragment)
					require.Equal(rt, sizes[k], m.Rows)
					for _, r := range rowsOf(m) {
						require.Equal(rt, all[perm[at]], r)
						at++
					}
				}
			})
		})
	}
}

func TestGatherByIdentityIsACopy(t *testing.T) {
	m := random(t, schemas()["lists int64"], 3, 1)
	out, err := Gather([]*MiniBatch{m}, []uint32{0, 1, 2})
	require.NoError(t, err)
	assert.Empty(t, Diff(m, out[0]))
	m.Label[0]++
	assert.NotEmpty(t, Diff(m, out[0]))
}

func TestGatherRefuses(t *testing.T) {
	s := schemas()["lists int64"]
	m := random(t, s, 3, 1)
	other := random(t, schemas()["fixed int32"], 3, 1)
	broken := random(t, s, 3, 1)
	broken.Lengths[0] = -5
	for name, c := range map[string]struct {
		window []*MiniBatch
		perm   []uint32
	}{
		"no window":       {nil, []uint32{0}},
		"too few rows":    {[]*MiniBatch{m}, []uint32{0, 1}},
		"too many rows":   {[]*MiniBatch{m}, []uint32{0, 1, 2, 3}},
		"a row twice":     {[]*MiniBatch{m}, []uint32{0, 1, 1}},
		"a row beyond":    {[]*MiniBatch{m}, []uint32{0, 1, 3}},
		"a row of 2^32-1": {[]*MiniBatch{m}, []uint32{0, 1, math.MaxUint32}},
		"two schemas":     {[]*MiniBatch{m, other}, []uint32{0, 1, 2, 3, 4, 5}},
		"a broken batch":  {[]*MiniBatch{broken}, []uint32{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Gather(c.window, c.perm)
			require.ErrorIs(t, err, ErrShape)
		})
	}
	out, err := Gather(nil, nil)
	require.NoError(t, err)
	assert.Empty(t, out)
}
