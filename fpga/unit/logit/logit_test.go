package logit

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/floatpair"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

// logit1 returns the kernel's result for one value.
func logit1(t require.TestingT, x, eps float32) float32 {
	r, err := Bounds(eps)
	require.NoError(t, err)
	v := []float32{x}
	r.Logit(v, v)
	return v[0]
}

func TestSpecialValues(t *testing.T) {
	f, inf := math.Float32frombits, float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		x, eps float32
		want   uint32
	}{
		{"NaN", f(0x7fc00000), 1e-6, 0x7fc00000},
		{"NaN with a sign", f(0xffc00000), 1e-6, 0x7fc00000},
		{"NaN with a payload", f(0x7fc12345), -1, 0x7fc00000},
		{"signalling NaN", f(0x7f800001), 0, 0x7fc00000},
		{"half", 0.5, 1e-6, 0},
		{"half, no clamp", 0.5, -1, 0},
		{"0 without eps", 0, 0, 0xff800000},
		{"-0 without eps", f(0x80000000), 0, 0xff800000},
		{"below 0 without eps", -3, 0, 0xff800000},
		{"1 without eps", 1, 0, 0x7f800000},
		{"above 1 without eps", inf, 0, 0x7f800000},
		{"0, no clamp", 0, -1, 0xff800000},
		{"1, no clamp", 1, -1, 0x7f800000},
		{"below 0, no clamp", f(0x80000001), -1, 0x7fc00000},
		{"above 1, no clamp", f(0x3f800001), -1, 0x7fc00000},
		{"+Inf, no clamp", inf, -1, 0x7fc00000},
		{"-Inf, no clamp", -inf, -1, 0x7fc00000},
		{"an eps that 1 - eps does not notice", 1, 1e-9, 0x7f800000},
		{"clamped to one half from below", -inf, 0.5, 0},
		{"clamped to one half from above", inf, 0.5, 0},
		{"smallest", f(1), -1, 0xc2ce8ed0},
		{"largest below 1", f(0x3f7fffff), -1, 0x41851592},
		{"-Inf is clamped", -inf, 1e-6, math.Float32bits(Reference(1e-6, -1))},
		{"+Inf is clamped", inf, 1e-6, math.Float32bits(Reference(1-float32(1e-6), -1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, fmt.Sprintf("%08x", c.want), fmt.Sprintf("%08x", math.Float32bits(logit1(t, c.x, c.eps))))
			assert.Equal(t, fmt.Sprintf("%08x", c.want), fmt.Sprintf("%08x", math.Float32bits(Reference(c.x, c.eps))))
		})
	}
}

func TestBounds(t *testing.T) {
	for _, eps := range []float32{0.50000006, 1, float32(math.Inf(1)), float32(math.NaN())} {
		_, err := Bounds(eps)
		require.ErrorIs(t, err, ErrEps)
	}
	r, err := Bounds(0.5)
	require.NoError(t, err)
	require.Equal(t, Range{0.5, 0.5}, r)
}

func TestKernelEqualsReference(t *testing.T) {
	bits := rapid.Map(rapid.Uint32(), math.Float32frombits)
	value := rapid.OneOf(bits, rapid.Float32Range(0, 1), rapid.Float32Range(0.41, 0.59), rapid.Float32Range(0.999, 1))
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(value, 0, 20).Draw(t, "src")
		eps := rapid.OneOf(rapid.Float32Range(0, 0.5), rapid.SampledFrom([]float32{-1, 0, 1e-6, 1e-5})).Draw(t, "eps")
		r, err := Bounds(eps)
		require.NoError(t, err)
		dst := make([]float32, len(src)+1)
		dst[len(src)] = 77
		r.Logit(dst, src)
		for i, x := range src {
			require.Equal(t, math.Float32bits(Reference(x, eps)), math.Float32bits(dst[i]), "%x, eps %x", x, eps)
		}
		require.Equal(t, float32(77), dst[len(src)])
		r.Logit(src, src)
		for i := range src {
			require.Equal(t, math.Float32bits(dst[i]), math.Float32bits(src[i]), "in place")
		}
	})
}

// TestAroundTheFormulasEdges takes both sides of one half, where the formula changes, and the ends.
func TestAroundTheFormulasEdges(t *testing.T) {
	edges := []float32{0.5, 5. / 12, 7. / 12, 0.25, 0.75, 0x1p-29, 0x1p-30, 0x1p-126, 1}
	for _, edge := range edges {
		x := edge
		for range 40 {
			x = math.Nextafter32(x, 0)
		}
		for range 80 {
			require.Equal(t, math.Float32bits(Reference(x, -1)), math.Float32bits(logit1(t, x, -1)), "%x", x)
			x = math.Nextafter32(x, 2)
		}
	}
}

// TestHardEqualsReference takes the hard path for values that the fast path decides.
func TestHardEqualsReference(t *testing.T) {
	for bits := uint32(1); bits < 0x3f800000; bits += 1000003 {
		x := math.Float32frombits(bits)
		require.Equal(t, Reference(x, -1), hard(float64(x)), "%x", x)
	}
}

// verify returns the logit of x, in (0, 1), by arithmetic that shares no formula with the kernel's fast path, and
// whether pairs of float64 decide it.
func verify(x float32) (want float32, decided bool) {
	t := floatpair.Pair{Hi: float64(x)}
	logit := floatpair.Log(t).Minus(floatpair.Log(floatpair.Sum(1, -t.Hi)))
	// The difference cancels near one half: to 2^-23 of the logarithms at worst, as x has 24 bits.
	want, _, decided = logit.Round32(0x1p-62)
	return want, decided
}

// sweep compares the kernel with verify at first, first+stride, ... and returns how many comparisons needed
// math/big.
func sweep(t *testing.T, first, end, stride uint32) (undecided int64) {
	src, dst := make([]float32, 0, 4096), make([]float32, 4096)
	r, err := Bounds(-1)
	require.NoError(t, err)
	for bits := first; bits < end; {
		src = src[:0]
		for ; bits < end && len(src) < cap(src); bits += stride {
			src = append(src, math.Float32frombits(bits))
		}
		r.Logit(dst, src)
		for i, x := range src {
			want, decided := verify(x)
			if !decided {
				undecided++
				want = Reference(x, -1)
			}
			if math.Float32bits(want) != math.Float32bits(dst[i]) {
				t.Errorf("logit %08x is %08x, got %08x", math.Float32bits(x), math.Float32bits(want),
					math.Float32bits(dst[i]))
				return undecided
			}
		}
	}
	return undecided
}

func TestStridedSweep(t *testing.T) {
	sweep(t, 1, 0x3f800000, 65537)
	for _, from := range []uint32{1, 0x3effe000, 0x3f7fe000} {
		sweep(t, from, min(from+1<<13, 0x3f800000), 1)
	}
}

// TestSweep checks every float32 in (0, 1): MILLRACE_SWEEP=1 go test ./fpga/unit/logit -run TestSweep -timeout 2h
// -v. MILLRACE_SWEEP_STRIDE=n checks only every n-th.
func TestSweep(t *testing.T) {
	if os.Getenv("MILLRACE_SWEEP") == "" {
		t.Skip("set MILLRACE_SWEEP=1 to check every float32 in (0, 1)")
	}
	stride := uint32(1)
	if s := os.Getenv("MILLRACE_SWEEP_STRIDE"); s != "" {
		_, err := fmt.Sscan(s, &stride)
		require.NoError(t, err)
		require.Positive(t, stride)
	}
	const end, pieces = 0x3f800000, 1 << 10
	var next, undecided atomic.Int64
	start := time.Now()
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for p := next.Add(1) - 1; p < pieces && !t.Failed(); p = next.Add(1) - 1 {
				from, to := uint32(p*end/pieces), uint32((p+1)*end/pieces)
				undecided.Add(sweep(t, max(from, 1), to, stride))
			}
		})
	}
	wait.Wait()
	t.Logf("every float32 in (0, 1), stride %d, in %v; %d verdicts by math/big", stride,
		time.Since(start).Round(time.Second), undecided.Load())
}

func TestLogitAllocatesNothing(t *testing.T) {
	v := []float32{0.1, 0.5, 0.500001, 0.9, 0, 1, 3}
	dst := make([]float32, len(v))
	require.Zero(t, testing.AllocsPerRun(10, func() { Range{0, 1}.Logit(dst, v); _ = hard(0.3) }))
}

func BenchmarkLogit(b *testing.B) {
	r, err := Bounds(1e-6)
	if err != nil {
		b.Fatal(err)
	}
	proving.BenchmarkFloats(b, func(i int) float32 { return float32(i) / 2048 }, r.Logit)
}

func BenchmarkHard(b *testing.B) {
	for b.Loop() {
		_ = hard(0.3)
	}
}
