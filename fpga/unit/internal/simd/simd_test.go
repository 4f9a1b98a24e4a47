package simd

import (
	"runtime"
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
		{NEON, "", NEON}, {NEON, "neon", NEON}, {NEON, "generic", Generic}, {NEON, "avx2", Generic},
		{NEON, "avx512", Generic}, {NEON, "avx512-shifts", Generic}, {NEON, "NEON", Generic},
		{AVX512, "neon", Generic}, {AVX2, "neon", Generic}, {Generic, "neon", Generic},
		{AVX512, "AVX2", Generic}, {AVX512, "avx", Generic}, {AVX2, " ", Generic},
	} {
		require.Equal(t, c.want, lowered(c.detected, c.wish), "%v lowered to %q", c.detected, c.wish)
	}
}

func TestForce(t *testing.T) {
	paths := Paths[string]{"plain", "narrow", "wide", "arm"}
	before := Current()
	for l := range levels {
		restore := Force(l)
		require.Equal(t, l.within(Detected()), Current())
		require.Equal(t, paths[l.within(Detected())], paths.Pick())
		inner := Force(Generic)
		require.Equal(t, "plain", paths.Pick())
		inner()
		require.Equal(t, l.within(Detected()), Current())
		restore()
		require.Equal(t, before, Current())
	}
}

func TestLevelsAreThoseOfTheArchitecture(t *testing.T) {
	all := Levels()
	require.Equal(t, Generic, all[0])
	require.Equal(t, Detected(), all[len(all)-1])
	require.IsIncreasing(t, all)
	for _, l := range all {
		require.Equal(t, runtime.GOARCH == "arm64" && l != Generic, l == NEON)
		require.Equal(t, l, lowered(Detected(), l.String()))
	}
}

func TestPlainHoldsOneFunctionForEveryLevel(t *testing.T) {
	paths := Plain("plain")
	for l := range levels {
		require.Equal(t, "plain", paths[l])
	}
}

func TestVBMIWantsAVX512(t *testing.T) {
	for l := range levels {
		restore := Force(l)
		require.True(t, !VBMI() || l == AVX512)
		restore()
	}
	defer Force(AVX512)()
	require.Equal(t, Detected() == AVX512 && detectVBMI(), VBMI())
}
