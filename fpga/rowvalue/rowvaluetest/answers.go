// Package rowvaluetest compares the references of operators with known answers, in tests.
package rowvaluetest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/rowvalue"
)

// Check makes the reference of each answer in the environment of a program without modules and tables, and compares.
func Check(t *testing.T, construct rowvalue.Constructor, answers []rowvalue.Answer) {
	t.Helper()
	CheckIn(t, rowvalue.NewEnvironment(&program.Program{}), construct, answers)
}

// CheckIn does as Check does in a given environment.
func CheckIn(t *testing.T, env *rowvalue.Environment, construct rowvalue.Constructor, answers []rowvalue.Answer) {
	t.Helper()
	for i, a := range answers {
		name := fmt.Sprintf("answer %d: %T of %v", i, a.Op, a.Inputs)
		reference, err := construct(a.Op, a.InputTypes(), env)
		require.NoError(t, err, name)
		for range 2 { // the second time, results may be kept ones
			got, err := reference(a.Inputs)
			if a.Fails {
				require.ErrorIs(t, err, rowvalue.ErrData, name)
				continue
			}
			require.NoError(t, err, name)
			assert.Equal(t, bits(a.Want), bits(got), "%s: %v, want %v", name, got, a.Want)
		}
	}
}

// float is a float32 or a float64 as its bits, so that NaN equals NaN and -0 differs from 0.
type float struct {
	size int
	bits uint64
}

// bits returns a value with the bits of its floats in place of them.
func bits(v any) any {
	var list []any
	switch x := v.(type) {
	case float32:
		return float{4, uint64(math.Float32bits(x))}
	case float64:
		return float{8, math.Float64bits(x)}
	case []float32:
		for _, e := range x {
			list = append(list, bits(e))
		}
		return list
	case []any:
		for _, e := range x {
			list = append(list, bits(e))
		}
		return [1]any{list} // a list that is not null
	case rowvalue.ScoredList:
		return [2]any{bits(x.IDs), bits(x.Scores)}
	}
	return v
}
