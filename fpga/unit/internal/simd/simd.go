// Package simd says how much of the processor the kernels may use, and picks among a kernel's paths.
//
// # Overview
//
// On amd64 a kernel has up to three paths: plain Go, AVX2 (with FMA and BMI2, as every processor with AVX2 has) and
// AVX-512 (F, BW, DQ and VL, the set of every such processor since 2017). On arm64 it has up to two: plain Go and NEON,
// which every 64-bit Arm processor has. All paths give the same bits; plain Go is the oracle and the only path on other
// architectures and with -tags purego.
//
// Where processors with AVX-512 differ much in an instruction's cost, a kernel has two variants of that path, which
// give the same bits: see Variant. A table by vendor and family of processor selects one.
//
// The environment variable MILLRACE_CPU, read once, lowers what is used: generic, and avx2 or avx512 on amd64, neon on
// arm64. It never raises it above what the processor and the system offer. avx512-products and avx512-shifts select a
// variant of AVX-512, too, on any processor that has AVX-512. Any other value, and so a level of another architecture,
// means generic, so that a slip shows as slowness and not as a path that was thought to be tested.
//
// # Concurrency
//
// Everything may be called by any goroutine. Force and ForceVariant are for tests that run alone.
//
// # Errors
//
// There are none.
//
// # Debugging
//
// MILLRACE_CPU=generic shows whether a wrong result comes from one path or from all paths.
package simd

import (
	"os"
	"sync"
	"sync/atomic"
)

// Level is a set of instructions. Of the levels of one architecture, higher ones include lower ones.
type Level int32

// The levels. Those of an architecture go from the lowest up.
const (
	Generic Level = iota // plain Go, on every architecture
	AVX2                 // amd64
	AVX512               // amd64
	NEON                 // arm64
	levels
)

// Variable names the environment variable that lowers the level.
const Variable = "MILLRACE_CPU"

// String returns the level's name as Variable takes it.
func (l Level) String() string { return [levels]string{"generic", "avx2", "avx512", "neon"}[l] }

// Levels returns the levels that this processor, system and build offer, from the lowest.
func Levels() []Level {
	var offered []Level
	for l := range levels {
		if l.within(Detected()) == l {
			offered = append(offered, l)
		}
	}
	return offered
}

// within returns l if highest includes it, highest if that is a lower level of the same architecture, and Generic if l
// is a level of another architecture.
func (l Level) within(highest Level) Level {
	if (l == NEON) != (highest == NEON) {
		return Generic
	}
	return min(l, highest)
}

// Detected returns the highest level that this processor, system and build offer.
var Detected = sync.OnceValue(detect)

// chosen is Detected, lowered by the environment.
var chosen = sync.OnceValue(func() Level { return lowered(Detected(), os.Getenv(Variable)) })

func lowered(detected Level, wish string) Level {
	if wish == "" {
		return detected
	}
	for l := range levels {
		if l.String() == wish {
			return l.within(detected)
		}
	}
	if _, ok := variantOf(wish); ok {
		return AVX512.within(detected)
	}
	return Generic
}

// forced is 1 more than the level that a test set, or 0.
var forced atomic.Int32

// Current returns the level in use.
func Current() Level {
	if f := forced.Load(); f != 0 {
		return Level(f - 1)
	}
	return chosen()
}

// Force lowers the level in use to l until restore is called, for tests.
func Force(l Level) (restore func()) {
	before := forced.Swap(int32(l.within(Detected())) + 1)
	return func() { forced.Store(before) }
}

// vbmi is asked once.
var vbmi = sync.OnceValue(detectVBMI)

// VBMI reports whether a kernel may also use AVX-512's permutations and compressions of bytes (VBMI and VBMI2): those
// of every processor with AVX-512 since Ice Lake and Zen 4. It is false below AVX512.
func VBMI() bool { return Current() == AVX512 && vbmi() }

// Paths are a kernel's functions by level. A level without a function of its own holds the function of the level
// below. Levels that an architecture or a build cannot reach hold nothing.
type Paths[F any] [levels]F

// Plain returns the paths of a kernel that has plain Go alone on an architecture: every level has that function.
func Plain[F any](generic F) Paths[F] {
	var p Paths[F]
	for l := range p {
		p[l] = generic
	}
	return p
}

// Pick returns the function of the current level.
func (p *Paths[F]) Pick() F { return p[Current()] }
