package unit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/onehot"
)

func classes(t *testing.T, c goldenCase) {
	var v struct {
		Classes int64 `json:"C"`
		Input   []int64
		Output  [][]float32
	}
	c.into(t, &v)
	kernel, err := onehot.New(v.Classes)
	require.NoError(t, err)
	got := make([]int64, len(v.Input))
	kernel.IDs(got, v.Input)
	for i, class := range got {
		require.Equal(t, onehot.Reference(v.Input[i], int(v.Classes)), class, "reference")
		columns := make([]float32, v.Classes)
		if class >= 0 {
			columns[class] = 1
		}
		require.Equal(t, v.Output[i], columns, "of %d", v.Input[i])
	}
}

func rangeClasses(t *testing.T, c goldenCase) {
	var v struct {
		Lower, Upper single
		Classes      int64 `json:"num_class"`
		Input        []single
		Index        []int64
	}
	c.into(t, &v)
	kernel, err := onehot.NewRanges(v.Classes, float32(v.Lower), float32(v.Upper))
	require.NoError(t, err)
	got := make([]int64, len(v.Input))
	kernel.Ranges(got, singles(v.Input))
	require.Equal(t, v.Index, got)
	for i, x := range v.Input {
		require.Equal(t, onehot.ReferenceRange(float32(x), float32(v.Lower), float32(v.Upper), int(v.Classes)), got[i],
			"reference")
	}
}
