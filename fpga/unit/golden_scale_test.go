package unit_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/minmax"
	"github.com/millrace/millrace/fpga/unit/normalize"
)

// normalizes runs the cases of NVTabular's Normalize and NormalizeMinMax, which are float64 numbers: the units' are the
// float32 next to them. A constant column's statistics are its only value. Nulls never reach a unit.
func normalizes(t *testing.T, c goldenCase) {
	var v struct {
		Input     []*float64
		Output    []json.RawMessage
		Mean, Std float64
		Min, Max  float64
	}
	c.into(t, &v)
	constant := strings.Contains(c.text("fn"), "constant")
	for i, in := range v.Input {
		if in == nil {
			require.Equal(t, "null", string(v.Output[i]))
			continue
		}
		want := float32(math.NaN())
		if string(v.Output[i]) != `"NaN"` {
			var exact float64
			require.NoError(t, json.Unmarshal(v.Output[i], &exact))
			want = float32(exact)
		}
		if constant {
			v.Mean, v.Min, v.Max = *in, *in, *in
		}
		got := []float32{float32(*in)}
		var reference float32
		if strings.HasPrefix(c.text("fn"), "NormalizeMinMax") {
			transform, err := minmax.New(v.Min, v.Max)
			require.NoError(t, err)
			transform.Apply(got, got)
			reference = minmax.Reference(float32(*in), v.Min, v.Max)
		} else {
			transform, err := normalize.New(v.Mean, v.Std)
			require.NoError(t, err)
			transform.Apply(got, got)
			reference = normalize.Reference(float32(*in), v.Mean, v.Std)
		}
		require.Equal(t, math.Float32bits(reference), math.Float32bits(got[0]), "reference")
		if want == want || got[0] == got[0] {
			require.Equal(t, want, got[0], "of %v", *in)
		}
	}
}
