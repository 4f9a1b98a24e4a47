// Package proving is what the tests of the units' kernels share: a run at every level of the processor, memory that
// ends where an unmapped page begins, which path was picked, and the comparison with a reference bit by bit.
//
// # Concurrency
//
// EachLevel and EachVariant set the level and the variant for the whole process: their tests do not run in parallel.
//
// # Errors
//
// Every failure ends the test. A kernel that reads or writes past its slices ends the process: the runtime reports
// SIGSEGV and the kernel's frame.
//
// # Debugging
//
// MILLRACE_CPU (see package simd) runs a whole suite at one level.
package proving

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// EachLevel runs f as a subtest at every level that this machine has.
func EachLevel(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for _, l := range simd.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			defer simd.Force(l)()
			f(t)
		})
	}
}

// EachVariant runs f as a subtest at every level that this machine has, and at level AVX512 with every variant.
func EachVariant(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	EachLevel(t, func(t *testing.T) {
		if simd.Current() != simd.AVX512 {
			f(t)
			return
		}
		for _, v := range simd.Variants() {
			t.Run(v.String(), func(t *testing.T) {
				defer simd.ForceVariant(v)()
				f(t)
			})
		}
	})
}

// WithVariants calls f with every variant of level AVX512, or once where that level is not in use.
func WithVariants(f func()) {
	if simd.Current() != simd.AVX512 {
		f()
		return
	}
	for _, v := range simd.Variants() {
		restore := simd.ForceVariant(v)
		f()
		restore()
	}
}

// BenchmarkEachLevel runs f as a sub-benchmark at every level up to the current one, and reports nanoseconds a value;
// values is the number of values in one operation.
func BenchmarkEachLevel(b *testing.B, values int, f func()) {
	for _, l := range simd.Levels() {
		if l > simd.Current() {
			break
		}
		b.Run(l.String(), func(b *testing.B) {
			defer simd.Force(l)()
			benchmark(b, values, f)
		})
	}
}

// BenchmarkEachVariant is BenchmarkEachLevel for a kernel with variants: those of level AVX512 are sub-benchmarks of
// their own.
func BenchmarkEachVariant(b *testing.B, values int, f func()) {
	BenchmarkEachLevel(b, values, f)
	if simd.Current() != simd.AVX512 {
		return
	}
	for _, v := range simd.Variants() {
		b.Run(simd.AVX512.String()+"-"+v.String(), func(b *testing.B) {
			defer simd.ForceVariant(v)()
			benchmark(b, values, f)
		})
	}
}

// benchmark reports nanoseconds a value.
func benchmark(b *testing.B, values int, f func()) {
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(values), "ns/value")
}

// Picks fails unless paths picks, at each level that this machine has, the function of that name, and so proves which
// path ran. Where there is no name for a level, which is the case for NEON alone, the kernel has no path of its own for
// it and picks the first function.
func Picks[F any](t *testing.T, paths *simd.Paths[F], names ...string) {
	t.Helper()
	for int(simd.NEON) >= len(names) {
		names = append(names, names[0])
	}
	for _, l := range simd.Levels() {
		restore := simd.Force(l)
		name := runtime.FuncForPC(reflect.ValueOf(paths.Pick()).Pointer()).Name()
		restore()
		name, _, _ = strings.Cut(name, "[") // type arguments
		name = name[strings.LastIndexByte(name, '.')+1:]
		if name != names[l] {
			t.Errorf("at level %v the path is %s, not %s", l, name, names[l])
		}
	}
	if simd.Detected() < simd.AVX512 {
		t.Logf("this machine offers %v only: the paths above it were not run", simd.Detected())
	}
}
