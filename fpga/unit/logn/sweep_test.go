package logn

import (
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

const chunk = 4096 // inputs that sweep takes at a time

// loopOf is a loop of a path, which the length of its input selects, and its output for a chunk.
type loopOf struct {
	level simd.Level
	piece int
	dst   []float32
}

// loops are those that this machine can run: AVX-512 has one for 32 values, one for 16 and one under a mask, the others
// have one each.
func loops() (all []loopOf) {
	for _, l := range []loopOf{
		{level: simd.Generic, piece: chunk}, {level: simd.AVX2, piece: chunk},
		{level: simd.AVX512, piece: chunk}, {level: simd.AVX512, piece: 16}, {level: simd.AVX512, piece: 15},
		{level: simd.NEON, piece: chunk},
	} {
		if slices.Contains(simd.Levels(), l.level) {
			l.dst = make([]float32, chunk)
			all = append(all, l)
		}
	}
	return all
}

// sweep compares every path of Log, in every loop it has, with the verifier at first, first+stride, ... of the 2^32
// inputs. It returns how many verdicts needed math/big, and the smallest distance from where rounding turns that it
// met, relative, among them.
func sweep(t *testing.T, first, end uint64, stride uint64) (undecided int64, nearest float64) {
	src := make([]float32, 0, chunk)
	paths := loops()
	nearest = math.Inf(1)
	for bits := first; bits < end; {
		src = src[:0]
		for ; bits < end && len(src) < chunk; bits += stride {
			src = append(src, math.Float32frombits(uint32(bits)))
		}
		for _, p := range paths {
			for at := 0; at < len(src); at += p.piece {
				end := min(at+p.piece, len(src))
				log[p.level](p.dst[at:end], src[at:end], 0, float32(math.Inf(-1)), float32(math.Inf(1)))
			}
		}
		for i, x := range src {
			want, decided := verify(x)
			if !decided {
				undecided++
				nearest = min(nearest, distance(x))
				want = Reference(x, 0)
			}
			for _, p := range paths {
				if math.Float32bits(want) != math.Float32bits(p.dst[i]) {
					t.Errorf("ln %08x is %08x, got %08x at level %v, %d at a time", math.Float32bits(x),
						math.Float32bits(want), math.Float32bits(p.dst[i]), p.level, p.piece)
					return undecided, nearest
				}
			}
		}
	}
	return undecided, nearest
}

func TestStridedSweep(t *testing.T) {
	undecided, _ := sweep(t, 0, 1<<32, 4099)
	require.Zero(t, undecided)
	// Where floats are dense around 1, and where they are sparse, at the ends.
	for _, from := range []uint64{0, 0x3f7f8000, 0x7f7f0000, 0x80000000, 0xffff0000} {
		sweep(t, from, from+1<<16, 1)
	}
}

// TestSweep checks all 2^32 inputs: MILLRACE_SWEEP=1 go test ./fpga/unit/logn -run TestSweep -timeout 2h -v.
// It takes about two CPU minutes, over all processors.
func TestSweep(t *testing.T) {
	if os.Getenv("MILLRACE_SWEEP") == "" {
		t.Skip("set MILLRACE_SWEEP=1 to check all 2^32 inputs")
	}
	const pieces = 1 << 10
	var next, undecided atomic.Int64
	var mu sync.Mutex
	nearest := math.Inf(1)
	start := time.Now()
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for p := next.Add(1) - 1; p < pieces && !t.Failed(); p = next.Add(1) - 1 {
				u, d := sweep(t, uint64(p)<<22, uint64(p+1)<<22, 1)
				undecided.Add(u)
				mu.Lock()
				nearest = min(nearest, d)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	t.Logf("2^32 inputs in %v; %d verdicts by math/big; nearest to a turn, relative: 2^%.1f",
		time.Since(start).Round(time.Second), undecided.Load(), math.Log2(nearest))
	require.Greater(t, nearest, math.Ldexp(1, -80), "hard decides by the sign of a low half that is good to 2^-90")
}

// verify returns ln x rounded to float32 by arithmetic that shares nothing with the kernel: no table, a series in
// (m-1)/(m+1), its first terms in pairs of float64. It is not decided where the pair, good to 2^-70, is within 2^-55
// of where rounding turns.
func verify(x float32) (want float32, decided bool) {
	switch {
	case x == 0:
		return float32(math.Inf(-1)), true
	case !(x > 0):
		return math.Float32frombits(0x7fc00000), true
	case x > math.MaxFloat32:
		return x, true
	}
	m, e := math.Frexp(float64(x))
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	// ln x = e ln 2 + 2 s (1 + s^2/3 + s^4/5 + ...), |s| < 0.1716.
	den := m + 1
	s := (m - 1) / den
	sLow := math.FMA(-s, den, m-1) / den
	q := s * s
	tail := 0.0 // from s^8/9 on, 2^-20 of the sum
	for n := 43.0; n >= 9; n -= 2 {
		tail = float64(tail*q) + 1/n
	}
	qLow := math.FMA(s, s, -q) + float64(2*s*sLow)
	hi, lo := tail, 0.0
	for n := 7.0; n >= 1; n -= 2 {
		// hi:lo = 1/n + q hi:lo
		p := q * hi
		pLow := math.FMA(q, hi, -p) + float64(q*lo) + float64(qLow*hi)
		c := 1 / n
		cLow := math.FMA(-c, n, 1) / n
		hi = c + p
		lo = ((c - hi) + p) + pLow + cLow
	}
	p := s * hi
	pLow := math.FMA(s, hi, -p) + float64(s*lo) + float64(sLow*hi)
	// ln 2 in three parts; the first two have trailing zeros, so that their products with e are exact.
	const ln2High, ln2Mid, ln2Low = 0x1.62e42fefap-1, 0x1.cf79abc9ep-40, 0x1.d9cc01f97b57ap-79
	a := float64(e) * ln2High
	sum := a + 2*p
	err := 0.0
	if math.Abs(a) >= math.Abs(2*p) {
		err = (a - sum) + 2*p
	} else {
		err = (2*p - sum) + a
	}
	err += 2*pLow + float64(float64(e)*ln2Mid) + float64(float64(e)*ln2Low)
	total := sum + err
	rest := (sum - total) + err
	// How far total is from half way between two float32.
	low := int64(math.Float64bits(total)&(1<<29-1)) - 1<<28
	if low == 0 {
		margin := math.Abs(total) * 0x1p-55
		if math.Abs(rest) <= margin {
			return 0, false
		}
		total = math.Nextafter(total, math.Copysign(math.Inf(1), rest))
	}
	return float32(total), true
}

// distance returns how far ln x is from half way between two float32, relative to it.
func distance(x float32) float64 {
	ln := bigLog(float64(x))
	f, _ := ln.Float32()
	d := math.Inf(1)
	for _, to := range []float32{float32(math.Inf(1)), float32(math.Inf(-1))} {
		g := math.Nextafter32(f, to)
		middle := newBig().SetFloat64((float64(f) + float64(g)) / 2)
		miss, _ := middle.Sub(middle, ln).Quo(middle, ln).Float64()
		d = min(d, math.Abs(miss))
	}
	return d
}

// The verifier itself, against math/big.
func TestVerifier(t *testing.T) {
	for bits := uint64(1); bits < 0x7f800000; bits += 1000003 {
		x := math.Float32frombits(uint32(bits))
		if got, decided := verify(x); decided {
			require.Equal(t, Reference(x, 0), got, "%x", x)
		}
	}
	// Two values of the textbook's.
	want, _ := newBig().SetString("2.302585092994045684017991454684364207601101488628772976033327900967" +
		"572609677352480235997205089598298341967784")
	miss, _ := newBig().Sub(bigLog(10), want).Float64()
	require.Less(t, math.Abs(miss), 1e-55)
	want, _ = newBig().SetString("0.69314718055994530941723212145817656807550013436025525412068000949339362" +
		"1969694715605863326996418687")
	miss, _ = newBig().Sub(bigLog(2), want).Float64()
	require.Less(t, math.Abs(miss), 1e-55)
}
