package tensor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestCompactorTakesTheChosenRows compares with Gather, whose first rows are the chosen ones.
func TestCompactorTakesTheChosenRows(t *testing.T) {
	for name, s := range compactSchemas() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				sizes := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 4).Draw(rt, "rows")
				var window []*MiniBatch
				var chosen, others []uint32
				first, perBatch := 0, make([][]uint32, len(sizes))
				for i, rows := range sizes {
					window = append(window, randomBatch(rt, s, rows))
					for row := range rows {
						if rapid.Bool().Draw(rt, "chosen") {
							chosen = append(chosen, uint32(first+row))
							perBatch[i] = append(perBatch[i], uint32(row))
						} else {
							others = append(others, uint32(first+row))
						}
					}
					first += rows
				}
				gathered, err := Gather(window, append(append([]uint32{}, chosen...), others...))
				require.NoError(rt, err)
				c, err := NewCompactor(s, len(chosen))
				require.NoError(rt, err)
				for i, rows := range perBatch {
					require.NoError(rt, c.Append(window[i], rows))
				}
				require.Zero(rt, c.Missing())
				got, err := c.MiniBatch()
				require.NoError(rt, err)
				require.NoError(rt, got.Validate())
				require.Equal(rt, len(chosen), got.Rows)
				require.Equal(rt, splitRows(gathered)[:len(chosen)], splitRows([]*MiniBatch{got}))
			})
		})
	}
}

// compactSchemas are schemas with each kind of tensor.
func compactSchemas() map[string]*Schema {
	fixed := []Key{{Name: "a"}, {Name: "b"}}
	lists := []Key{{Name: "a", List: true}, {Name: "b"}}
	return map[string]*Schema{
		"label":         {Label: true},
		"dense":         {Label: true, Dense: []string{"x", "y", "z"}},
		"bfloat16":      {Dense: []string{"x", "y"}, DenseType: BFloat16},
		"fixed int32":   {Keys: fixed, IDs: Int32, Dense: []string{"x"}},
		"fixed weights": {Keys: fixed, IDs: Int64, Weights: true},
		"lists":         {Keys: lists, IDs: Int32},
		"list weights":  {Label: true, Keys: lists, IDs: Int64, Weights: true},
	}
}

// randomBatch draws a mini-batch whose numbers all differ.
func randomBatch(t *rapid.T, s *Schema, rows int) *MiniBatch {
	values, lengths := rows*len(s.Keys), []int32(nil)
	if len(s.Keys) > 0 && !s.Fixed() {
		values = 0
		for key := range s.Keys {
			for range rows {
				n := 1
				if s.Keys[key].List {
					n = rapid.IntRange(0, 3).Draw(t, "length")
				}
				lengths, values = append(lengths, int32(n)), values+n
			}
		}
	}
	m, err := Make(s, rows, values)
	require.NoError(t, err)
	copy(m.Lengths, lengths)
	next := rapid.IntRange(1, 1000).Draw(t, "number")
	number := func() int { next++; return next }
	for i := range m.Label {
		m.Label[i] = float32(number())
	}
	for i := range m.Dense {
		m.Dense[i] = float32(number())
	}
	for i := range m.Dense16 {
		m.Dense16[i] = uint16(number())
	}
	for i := range m.Values32 {
		m.Values32[i] = int32(number())
	}
	for i := range m.Values64 {
		m.Values64[i] = int64(number())
	}
	for i := range m.Weights {
		m.Weights[i] = float32(number())
	}
	return m
}

// splitRow is what one row has of every tensor.
type splitRow struct {
	label, dense []float32
	dense16      []uint16
	ids          [][]int64
	weights      [][]float32
}

// splitRows returns the rows of mini-batches.
func splitRows(list []*MiniBatch) (rows []splitRow) {
	rows = []splitRow{}
	for _, m := range list {
		offsets, d := m.Offsets(nil), len(m.Schema.Dense)
		for i := range m.Rows {
			r := splitRow{}
			if m.Label != nil {
				r.label = m.Label[i:][:1]
			}
			if m.Dense != nil {
				r.dense = m.Dense[i*d:][:d]
			}
			if m.Dense16 != nil {
				r.dense16 = m.Dense16[i*d:][:d]
			}
			for key := range m.Schema.Keys {
				lo, hi := offsets[key*m.Rows+i], offsets[key*m.Rows+i+1]
				ids := []int64{}
				for at := lo; at < hi; at++ {
					if m.Schema.IDs == Int32 {
						ids = append(ids, int64(m.Values32[at]))
					} else {
						ids = append(ids, m.Values64[at])
					}
				}
				r.ids = append(r.ids, ids)
				if m.Weights != nil {
					r.weights = append(r.weights, append([]float32{}, m.Weights[lo:hi]...))
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

func TestCompactorRefuses(t *testing.T) {
	s := &Schema{Label: true, Keys: []Key{{Name: "a", List: true}}, IDs: Int64}
	make2 := func() (*Compactor, *MiniBatch) {
		c, err := NewCompactor(s, 2)
		require.NoError(t, err)
		m, err := Make(s, 3, 3)
		require.NoError(t, err)
		copy(m.Lengths, []int32{1, 0, 2})
		return c, m
	}
	c, m := make2()
	for _, rows := range [][]uint32{{3}, {1, 1}, {2, 1}, {0, 1, 2}} {
		require.ErrorIs(t, c.Append(m, rows), ErrShape, "rows %d", rows)
	}
	_, err := c.MiniBatch()
	require.ErrorIs(t, err, ErrShape, "rows are missing")
	m.Lengths[2] = 1
	require.ErrorIs(t, c.Append(m, []uint32{0}), ErrShape, "lists of fewer values")
	m.Lengths[2] = 2
	m.Unique = []int32{1}
	require.ErrorIs(t, c.Append(m, []uint32{0}), ErrShape)
	other, err := Make(&Schema{Label: true}, 1, 0)
	require.NoError(t, err)
	require.ErrorIs(t, c.Append(other, []uint32{0}), ErrShape)
	_, err = NewCompactor(&Schema{}, 1)
	require.ErrorIs(t, err, ErrShape)
}
