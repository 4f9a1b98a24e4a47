package simd

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheProcessorSelectsTheVariant(t *testing.T) {
	for _, c := range []struct {
		vendor    string
		signature uint32 // EAX of CPUID's leaf 1
		want      Variant
	}{
		{"GenuineIntel", 0x00050654, Shifts},   // Skylake-X
		{"GenuineIntel", 0x000806f8, Shifts},   // Sapphire Rapids
		{"GenuineIntel", 0x000c06f2, Shifts},   // Emerald Rapids
		{"GenuineIntel", 0x00400f10, Shifts},   // family 19, which is not listed
		{"AuthenticAMD", 0x00a10f11, Products}, // Zen 4
		{"AuthenticAMD", 0x00b00f21, Products}, // Zen 5
		{"AuthenticAMD", 0x00000654, Products}, // family 6, of another vendor
		{"GenuineIntel", 0x00000513, Products}, // family 5
		{"SomeoneElse ", 0x000806f8, Products},
		{"", 0, Products},
	} {
		require.Equal(t, c.want, fitting(c.vendor, familyOf(c.signature)), "%s %#x", c.vendor, c.signature)
	}
	require.EqualValues(t, 6, familyOf(0x000c06f2))
	require.EqualValues(t, 19, familyOf(0x00400f10))
	require.EqualValues(t, 26, familyOf(0x00b00f21))
}

func TestTheEnvironmentSelectsAVariant(t *testing.T) {
	for _, v := range Variants() {
		got, ok := variantOf("avx512-" + v.String())
		require.True(t, ok)
		require.Equal(t, v, got)
		require.Equal(t, AVX512, lowered(AVX512, "avx512-"+v.String()))
		require.Equal(t, AVX2, lowered(AVX2, "avx512-"+v.String()), "what the processor lacks is not used")
	}
	require.Len(t, Variants(), int(variants))
	for _, slip := range []string{"", "avx512", "avx512-", "avx512-shift", "avx2-shifts", "shifts", "AVX512-shifts"} {
		_, ok := variantOf(slip)
		require.False(t, ok, slip)
	}
	require.Equal(t, Generic, lowered(AVX512, "avx512-shift"))
}

func TestForceVariant(t *testing.T) {
	before := CurrentVariant()
	for _, v := range Variants() {
		restore := ForceVariant(v)
		require.Equal(t, v, CurrentVariant())
		inner := ForceVariant(Products)
		require.Equal(t, Products, CurrentVariant())
		inner()
		require.Equal(t, v, CurrentVariant())
		restore()
		require.Equal(t, before, CurrentVariant())
	}
}
