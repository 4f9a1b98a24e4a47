// Package unit gathers the functions that a drive computes: one folder a unit, each a plain reference and a fast kernel
// that share nothing but their parameter types.
//
// # Overview
//
// A reference reads like the definition in docs/operators.md and is the oracle of the tests; the engine links the
// kernels. Kernels take and return plain slices, allocate nothing once built, and may run in place where they say so.
// Values in flight are int64 (every integer source), float32, float64 and bytes; validity is a byte an element, 1 for a
// value and 0 for a null, and an element that is null holds 0.
//
// A kernel has a path of plain Go, which is always built and is the oracle of the others, and where it pays paths of
// assembly for AVX2 and AVX-512 on amd64 and for NEON on arm64, which the generator in _gen writes (make asm). Package
// internal/simd picks the path. All paths give the same bits; docs/performance-kernels.md gives the cost of
// each.
//
// This package itself holds no code but the tests that span the units: every case of every golden file (golden_test.go)
// and the mutants (mutants_test.go).
//
// # Concurrency
//
// Parameterised kernels (a Hasher, a Table, a Modulus) are immutable once built and may be shared. Decoders hold
// scratch and belong to one goroutine.
//
// # Errors
//
// Parameters are checked where a kernel is built; a value that a kernel cannot take is an error that names its place in
// the slice.
//
// # Debugging
//
// MILLRACE_CPU=generic, or on amd64 avx2, uses less of the processor than there is, avx512-products or avx512-shifts
// selects a variant of the kernels that have two, and -tags purego leaves the assembly out.
// MILLRACE_MUTANTS=1 go test ./fpga/unit -run Mutants proves that off-by-one edits of the kernels fail their tests;
// MILLRACE_SWEEP=1 go test ./fpga/unit/logn -run Sweep -timeout 2h checks the logarithm on all 2^32 inputs.
package unit
