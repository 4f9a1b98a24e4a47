package fillnull

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

func TestPaths(t *testing.T) {
	proving.Picks(t, &fill64, "fillGeneric", "fill64AVX2", "fill64AVX512", "fill64NEON")
	proving.Picks(t, &fill32, "fillGeneric", "fill32AVX2", "fill32AVX512", "fill32NEON")
}

// valid returns the i-th flag: any byte but 0 is a value, whichever bits it has.
func valid(i int) byte {
	r := uint32(i) * 2654435761
	return []byte{0, 1, 0, 0x80, 1, 0, 0xff, 1}[r>>20&7]
}

func inEveryPlace[T uint32 | uint64](t *testing.T, paths *simd.Paths[func(v []T, valid []byte, fill T)]) {
	proving.EachLevel(t, func(t *testing.T) {
		want := make([]T, proving.Lengths)
		proving.Places(t, valid, func(v []T, valid []byte) {
			for i := range v {
				v[i] = T(uint64(i) * 0x9e3779b97f4a7c15)
				want[i] = v[i]
				if valid[i] == 0 {
					want[i] = ^T(6)
				}
			}
			flags := slices.Clone(valid)
			paths.Pick()(v, valid, ^T(6))
			require.True(t, slices.Equal(want[:len(v)], v), "%d values", len(v))
			require.True(t, slices.Equal(flags, valid), "validity is only read")
		})
	})
}

func TestEveryPathInEveryPlace(t *testing.T) {
	inEveryPlace(t, &fill64)
	inEveryPlace(t, &fill32)
}

func TestFillAllocatesNothing(t *testing.T) {
	v, f, flags := make([]int64, 100), make([]float32, 100), make([]byte, 100)
	proving.EachLevel(t, func(t *testing.T) {
		require.Zero(t, testing.AllocsPerRun(10, func() { Int64(v, flags, 5); Float32(f, flags, 5) }))
	})
}
