package unit_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/cast"
)

// casts runs a case of a cast. Numbers of real types are their bits.
func casts(t *testing.T, c goldenCase) {
	var v struct {
		Fn            string
		Input, Output json.RawMessage
		Fails         bool
	}
	c.into(t, &v)
	switch v.Fn {
	case "float64 to int64":
		checkCast(t, v.Input, v.Output, v.Fails, func(x double) (whole, error) {
			dst := []int64{-1}
			err := cast.FloatToInt64(dst, []float64{float64(x)}, nil)
			requireReference(t, dst[0], err, float64(x))
			return whole(dst[0]), err
		})
	case "float32 to int64":
		checkCast(t, v.Input, v.Output, v.Fails, func(x single) (whole, error) {
			dst := []int64{-1}
			err := cast.FloatToInt64(dst, []float32{float32(x)}, nil)
			requireReference(t, dst[0], err, float64(x))
			return whole(dst[0]), err
		})
	case "uint64 to int64":
		checkCast(t, v.Input, v.Output, v.Fails, func(x unsigned) (whole, error) {
			return whole(x), cast.CheckUint64([]int64{int64(x)}, nil)
		})
	case "uint64 to float32":
		checkCast(t, v.Input, v.Output, v.Fails, func(x unsigned) (single, error) {
			dst := []float32{-1}
			cast.Uint64ToFloat(dst, []int64{int64(x)})
			require.Equal(t, cast.ReferenceFloat32(int64(x)), dst[0])
			return single(dst[0]), nil
		})
	case "uint64 to float64":
		checkCast(t, v.Input, v.Output, v.Fails, func(x unsigned) (double, error) {
			dst := []float64{-1}
			cast.Uint64ToFloat(dst, []int64{int64(x)})
			require.Equal(t, cast.ReferenceFloat64(int64(x)), dst[0])
			return double(dst[0]), nil
		})
	case "float64 to bits":
		checkCast(t, v.Input, v.Output, v.Fails, func(x double) (whole, error) {
			dst := []int64{-1}
			cast.Float64Bits(dst, []float64{float64(x)})
			require.Equal(t, cast.ReferenceBits(float64(x)), dst[0])
			return whole(dst[0]), nil
		})
	default:
		require.Fail(t, "no such cast", v.Fn)
	}
}

// requireReference compares a whole number, or its error, with the reference.
func requireReference(t *testing.T, got int64, err error, x float64) {
	want, fits := cast.ReferenceInt64(x)
	require.Equal(t, fits, err == nil)
	if fits {
		require.Equal(t, want, got)
	}
}

// checkCast compares a cast of each input with the output, or expects that each input fails.
func checkCast[In, Out any](t *testing.T, input, output json.RawMessage, fails bool, cast func(x In) (Out, error)) {
	var in []In
	var out []Out
	require.NoError(t, json.Unmarshal(input, &in))
	require.NotEmpty(t, in)
	if !fails {
		require.NoError(t, json.Unmarshal(output, &out))
		require.Len(t, out, len(in))
	}
	for i, x := range in {
		got, err := cast(x)
		if fails {
			require.Error(t, err, "%v", x)
			continue
		}
		require.NoError(t, err, "%v", x)
		require.Equal(t, out[i], got, "%v", x)
	}
}
