package fillnan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/fillnan"
)

// edges are bits of numbers near NaN, of both signs.
var edges = []uint32{0, 1 << 31, 1, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fc00000,
	0x7fffffff, 0xffffffff}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(edges), rapid.Uint32()), 0, 200).Draw(t, "bits")
		fill := rapid.Float32().Draw(t, "fill")
		narrow, wide := make([]float32, len(bits)), make([]float64, len(bits))
		for i, b := range bits {
			narrow[i] = math.Float32frombits(b)
			wide[i] = math.Float64frombits(uint64(b)<<32 | uint64(b&1))
		}
		nan := slices.IndexFunc(narrow, func(x float32) bool { return x != x })
		other := slices.IndexFunc(narrow, func(x float32) bool { return x-x != 0 })
		require.Equal(t, nan, fillnan.FindNaN(narrow))
		require.Equal(t, other, fillnan.FindNonFinite(narrow))
		filled, filledWide := slices.Clone(narrow), slices.Clone(wide)
		fillnan.Float32(filled, fill)
		fillnan.Float64(filledWide, float64(fill))
		for i := range bits {
			require.Equal(t, math.Float32bits(fillnan.Reference(narrow[i], fill)), math.Float32bits(filled[i]))
			require.Equal(t, math.Float64bits(fillnan.Reference(wide[i], float64(fill))),
				math.Float64bits(filledWide[i]))
		}
	})
}

func BenchmarkFindNaN(b *testing.B) {
	v := make([]float32, 2048)
	b.SetBytes(int64(4 * len(v)))
	for b.Loop() {
		fillnan.FindNaN(v)
	}
}
