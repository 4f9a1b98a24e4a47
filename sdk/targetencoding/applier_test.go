package targetencoding

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/tensor"
)

// TestApplier replaces the last keys of mini-batches of every form: fixed and jagged, both types of ids and of dense
// features, with weights, and without other keys or dense features.
func TestApplier(t *testing.T) {
	e, err := NewEncoding(tableOf(t, 2, []trainRow{{5, true, 0, 1}, {6, true, 1, 3}}), 0, 0, false)
	require.NoError(t, err)
	bits := func(x float32) uint16 { return uint16(math.Float32bits(x) >> 16) }
	for name, c := range map[string]struct{ made, want *tensor.MiniBatch }{
		"fixed int32": {
			&tensor.MiniBatch{Schema: &tensor.Schema{Label: true, Dense: []string{"a"}, IDs: tensor.Int32,
				Keys: []tensor.Key{{Name: "k"}, {Name: "t"}}}, Rows: 2, Label: []float32{1, 0}, Dense: []float32{7, 8},
				Values32: []int32{1, 2, 6, 5}},
			&tensor.MiniBatch{Schema: &tensor.Schema{Label: true, Dense: []string{"t", "a"}, IDs: tensor.Int32,
				Keys: []tensor.Key{{Name: "k"}}}, Rows: 2, Label: []float32{1, 0}, Dense: []float32{3, 7, 1, 8},
				Values32: []int32{1, 2}},
		},
		"null keys, other keys fixed": {
			&tensor.MiniBatch{Schema: &tensor.Schema{Dense: []string{"a"}, IDs: tensor.Int64,
				Keys: []tensor.Key{{Name: "k"}, {Name: "t", List: true}}}, Rows: 3, Dense: []float32{7, 8, 9},
				Values64: []int64{1, 2, 3, 6, 4}, Lengths: []int32{1, 1, 1, 1, 0, 1}},
			&tensor.MiniBatch{Schema: &tensor.Schema{Dense: []string{"a", "t"}, IDs: tensor.Int64,
				Keys: []tensor.Key{{Name: "k"}}}, Rows: 3, Dense: []float32{7, 3, 8, 2, 9, 2}, Values64: []int64{1, 2, 3}},
		},
		"jagged with weights, bfloat16": {
			&tensor.MiniBatch{Schema: &tensor.Schema{Dense: []string{"a"}, DenseType: tensor.BFloat16, IDs: tensor.Int64,
				Weights: true, Keys: []tensor.Key{{Name: "k", List: true}, {Name: "t"}, {Name: "u"}}}, Rows: 2,
				Dense16: []uint16{1, 2}, Values64: []int64{1, 2, 6, 5, 5, 7}, Lengths: []int32{2, 0, 1, 1, 1, 1},
				Weights: []float32{.5, .25, 1, 1, 1, 1}},
			&tensor.MiniBatch{Schema: &tensor.Schema{Dense: []string{"t", "a", "u"}, DenseType: tensor.BFloat16,
				IDs: tensor.Int64, Weights: true, Keys: []tensor.Key{{Name: "k", List: true}}}, Rows: 2,
				Dense16: []uint16{bits(3), 1, bits(1), bits(1), 2, bits(2)}, Values64: []int64{1, 2}, Lengths: []int32{2, 0},
				Weights: []float32{.5, .25}},
		},
		"nothing else": {
			&tensor.MiniBatch{Schema: &tensor.Schema{IDs: tensor.Int64, Keys: []tensor.Key{{Name: "t"}}}, Rows: 1,
				Values64: []int64{5}},
			&tensor.MiniBatch{Schema: &tensor.Schema{Dense: []string{"t"}, IDs: tensor.Int64}, Rows: 1, Dense: []float32{1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var columns []Column
			for i, dense := range c.want.Schema.Dense {
				if dense != "a" {
					columns = append(columns, Column{Dense: i, Encoding: e})
				}
			}
			a, err := NewApplier(c.made.Schema, c.want.Schema, columns)
			require.NoError(t, err)
			got := a.Apply(c.made, Partition{}, func(i int) int64 { return int64(i) })
			assert.Empty(t, tensor.Diff(c.want, got))
			got.Release()
		})
	}
}

// TestApplierReleasesWhatItTakes: lent memory goes back when the mini-batch that came out is released.
func TestApplierReleasesWhatItTakes(t *testing.T) {
	e, err := NewEncoding(tableOf(t, 2, []trainRow{{5, true, 0, 1}}), 0, 0, false)
	require.NoError(t, err)
	made := &tensor.Schema{IDs: tensor.Int64, Keys: []tensor.Key{{Name: "t"}}}
	a, err := NewApplier(made, &tensor.Schema{Dense: []string{"t"}, IDs: tensor.Int64}, []Column{{0, e}})
	require.NoError(t, err)
	released := 0
	mb := tensor.New(made, 1, func() { released++ })
	mb.Values64 = []int64{5}
	out := a.Apply(mb, Partition{}, func(int) int64 { return 0 })
	assert.Zero(t, released)
	out.Release()
	assert.Equal(t, 1, released)
}

func TestSchemasThatDoNotFit(t *testing.T) {
	e := &Encoding{}
	good := func() (made, schema *tensor.Schema, columns []Column) {
		return &tensor.Schema{Dense: []string{"a"}, IDs: tensor.Int32, Keys: []tensor.Key{{Name: "k"}, {Name: "t"}}},
			&tensor.Schema{Dense: []string{"a", "t"}, IDs: tensor.Int32, Keys: []tensor.Key{{Name: "k"}}}, []Column{{1, e}}
	}
	made, schema, columns := good()
	_, err := NewApplier(made, schema, columns)
	require.NoError(t, err)
	for name, spoil := range map[string]func(made, schema *tensor.Schema, columns []Column) []Column{
		"no column":    func(_, _ *tensor.Schema, _ []Column) []Column { return nil },
		"other keys":   func(made, _ *tensor.Schema, c []Column) []Column { made.Keys = made.Keys[:1]; return c },
		"other dense":  func(_, schema *tensor.Schema, c []Column) []Column { schema.Dense = schema.Dense[:1]; return c },
		"other ids":    func(made, _ *tensor.Schema, c []Column) []Column { made.IDs = tensor.Int64; return c },
		"weights":      func(made, _ *tensor.Schema, c []Column) []Column { made.Weights = true; return c },
		"label":        func(made, _ *tensor.Schema, c []Column) []Column { made.Label = true; return c },
		"type":         func(made, _ *tensor.Schema, c []Column) []Column { made.DenseType = tensor.BFloat16; return c },
		"beyond dense": func(_, _ *tensor.Schema, c []Column) []Column { c[0].Dense = 2; return c },
	} {
		made, schema, columns := good()
		columns = spoil(made, schema, columns)
		_, err := NewApplier(made, schema, columns)
		assert.ErrorIs(t, err, tensor.ErrShape, name)
	}
}
