package simd

import (
	"os"
	"sync"
	"sync/atomic"
)

// Variant is a form of a kernel's AVX-512 path. Few kernels have more than one.
type Variant int32

// The variants.
const (
	// Products takes VPMULLQ, the product of 64-bit lanes, wherever it stands for two instructions or more. VPMULLQ is
	// one operation on AMD's processors since Zen 4, which have more multipliers than ports for shifts.
	Products Variant = iota

	// Shifts takes shifts, additions and products of 32 bits instead, where their result is the same. VPMULLQ is three
	// operations on all of Intel's processors.
	Shifts

	variants
)

// String returns the variant's name, which Variable takes behind "avx512-".
func (v Variant) String() string { return [variants]string{"products", "shifts"}[v] }

// Variants returns all variants. Every processor with AVX-512 can run all of them.
func Variants() []Variant { return []Variant{Products, Shifts} }

// fitted lists the processors with AVX-512, by CPUID's vendor and the first family of which the variant is known to be
// the faster one. No model of these families differs in what selects a variant, and later families are taken to be like
// the last one that is listed.
var fitted = []struct {
	vendor  string
	family  uint32
	variant Variant
}{
	{"AuthenticAMD", 25, Products}, // Zen 4; 26 is Zen 5
	{"GenuineIntel", 6, Shifts},    // from Skylake-X to Granite Rapids
}

// fitting returns the variant for a processor. One that is not listed gets Products, which has the fewest instructions.
func fitting(vendor string, family uint32) Variant {
	variant := Products
	for _, p := range fitted {
		if p.vendor == vendor && p.family <= family {
			variant = p.variant
		}
	}
	return variant
}

// familyOf returns the family that the word EAX of CPUID's leaf 1 means.
func familyOf(signature uint32) uint32 {
	family := signature >> 8 & 15
	if family == 15 {
		family += signature >> 20 & 255
	}
	return family
}

// variantOf returns the variant that a value of Variable selects, if it selects one.
func variantOf(wish string) (_ Variant, ok bool) {
	for v := range variants {
		if wish == AVX512.String()+"-"+v.String() {
			return v, true
		}
	}
	return 0, false
}

// chosenVariant is that of the processor, unless the environment selects another.
var chosenVariant = sync.OnceValue(func() Variant {
	if v, ok := variantOf(os.Getenv(Variable)); ok {
		return v
	}
	return fitting(processor())
})

// forcedVariant is 1 more than the variant that a test set, or 0.
var forcedVariant atomic.Int32

// CurrentVariant returns the variant in use at level AVX512.
func CurrentVariant() Variant {
	if f := forcedVariant.Load(); f != 0 {
		return Variant(f - 1)
	}
	return chosenVariant()
}

// ForceVariant sets the variant in use until restore is called, for tests.
func ForceVariant(v Variant) (restore func()) {
	before := forcedVariant.Swap(int32(v) + 1)
	return func() { forcedVariant.Store(before) }
}
