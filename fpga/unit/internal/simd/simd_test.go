package simd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEnvironmentOnlyLowers(t *testing.T) {
	for _, c := range []struct {
		detected Level
		wish     string
		want     Level
	}{
		{AVX512, "", AVX512}, {AVX512, "avx512", AVX512}, {AVX512, "avx2", AVX2}, {AVX512, "generic", Generic},
		{AVX2, "", AVX2}, {AVX2, "avx512", AVX2}, {AVX2, "generic", Generic},
		{Generic, "", Generic}, {Generic, "avx512", Generic},
		{AVX512, "AVX2", Generic}, {AVX512, "avx", Generic}, {AVX2, " ", Generic},
	} {
		require.Equal(t, c.want, lowered(c.detected, c.wish), "%v lowered to %q", c.detected, c.wish)
	}
}

func TestForce(t *testing.T) {
	paths := Paths[string]{"plain", "narrow", "wide"}
	before := Current()
	for l := range levels {
		restore := Force(l)
		require.Equal(t, min(l, Detected()), Current())
		require.Equal(t, paths[min(l, Detected())], paths.Pick())
		inner := Force(Generic)
		require.Equal(t, "plain", paths.Pick())
		inner()
		require.Equal(t, min(l, Detected()), Current())
		restore()
		require.Equal(t, before, Current())
	}
}

func TestVBMIWantsAVX512(t *testing.T) {
	for l := range AVX512 {
		restore := Force(l)
		require.False(t, VBMI())
		restore()
	}
	defer Force(AVX512)()
	require.Equal(t, Detected() == AVX512 && detectVBMI(), VBMI())
}
