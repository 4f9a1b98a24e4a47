package unit_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/scoredlist"
)

// positions runs the case of Enumerate.
func positions(t *testing.T, c goldenCase) {
	var v struct {
		Input   [][]whole
		Indexes [][]int    `json:"output_index"`
		Scores  [][]single `json:"output_scores"`
	}
	c.into(t, &v)
	require.NotEmpty(t, v.Input)
	for i, list := range v.Input {
		require.Len(t, v.Indexes[i], len(list))
		for k, index := range v.Indexes[i] {
			require.Equal(t, float32(index), float32(v.Scores[i][k]))
		}
		sameFloats(t, v.Scores[i], scoredlist.ReferencePositions(wholes(list)), "reference")
		sameFloats(t, v.Scores[i], scoredlist.AppendPositions(nil, []int32{int32(len(list))}), "kernel")
	}
}

// doubleLogs runs the logarithms of float64 numbers that are float32 numbers too: the unit's is the float32 next to
// them. A column of float64 becomes float32 before its logarithm, so the other inputs are not what the unit is given.
func doubleLogs(t *testing.T, c goldenCase) {
	var v struct{ Input, Output []string }
	c.into(t, &v)
	double := func(bits string) float64 {
		n, err := strconv.ParseUint(bits, 0, 64)
		require.NoError(t, err)
		return math.Float64frombits(n)
	}
	compared := 0
	for i := range v.Input {
		x := double(v.Input[i])
		if float64(float32(x)) != x && x == x {
			continue
		}
		compared++
		sameFloats(t, []single{single(double(v.Output[i]))}, logs(t, []float32{float32(x)}, 0), v.Input[i])
	}
	require.Equal(t, 16, compared)
}
