package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoot20(t *testing.T) {
	for x := 1.0; x < 1<<32; x *= 1.37 {
		assert.InEpsilon(t, math.Pow(x, 0.05), root20(x), 1e-14, "%v", x)
		assert.InEpsilon(t, x, hInverse(hIntegral(x)), 1e-12, "%v", x)
		assert.InEpsilon(t, math.Pow(x, -ZipfExponent), hDensity(x), 1e-13, "%v", x)
	}
}

// zipfMass is the sum of k^-1.05 for k from a to b, by the definition for small k and Euler and Maclaurin's formula
// beyond.
func zipfMass(a, b float64) float64 {
	sum := 0.0
	for ; a <= b && a < 10_000; a++ {
		sum += math.Pow(a, -ZipfExponent)
	}
	if a <= b {
		f := func(x float64) float64 { return math.Pow(x, -ZipfExponent) }
		sum += 20*(math.Pow(a, -0.05)-math.Pow(b, -0.05)) + (f(a)+f(b))/2
	}
	return sum
}

// Ranks have the probabilities of the definition: chi-squared over the first ranks and ever longer stretches of the
// rest.
func TestZipf(t *testing.T) {
	const draws = 2_000_000
	edges := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20, 50, 100, 300, 1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, IDs + 1}
	z, s := newZipf(), stream(1)
	counts := make([]float64, len(edges)-1)
	most := uint64(0)
	for range draws {
		k := z.draw(&s)
		require.True(t, k >= 1 && k <= IDs)
		most = max(most, k)
		for i := range counts {
			if float64(k) < edges[i+1] {
				counts[i]++
				break
			}
		}
	}
	all, chi := zipfMass(1, IDs), 0.0
	for i, have := range counts {
		want := draws * zipfMass(edges[i], edges[i+1]-1) / all
		chi += (have - want) * (have - want) / want
	}
	assert.Less(t, chi, 48.3, "21 degrees of freedom: the 99.94 % point") // the seed is fixed, so this cannot flake
	assert.Greater(t, most, uint64(IDs/100*99), "the last ranks are drawn too")
}

func TestScatterIsABijection(t *testing.T) {
	inverse := func(y, key uint64) uint64 {
		const mask = IDs - 1
		odd := func(a uint64) uint64 { // a^-1 modulo 2^31, by Newton
			x := a
			for range 6 {
				x *= 2 - a*x
			}
			return x
		}
		y = (y - key>>32) & mask
		y ^= y >> 16
		y = y * odd(0x846ca68b) & mask
		y ^= y>>15 ^ y>>30
		y = y * odd(0x7feb352d) & mask
		y ^= y >> 16
		return (y ^ key) & mask
	}
	s := stream(3)
	for range 100_000 {
		k, rank := s.next(), s.next()%IDs
		id := scatter(rank, k)
		require.Less(t, id, uint64(IDs))
		require.Equal(t, rank, inverse(id, k))
	}
}

func TestStreamIsSplitmix64(t *testing.T) {
	var s stream
	assert.Equal(t, []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f},
		[]uint64{s.next(), s.next(), s.next()})
}

func BenchmarkZipf(b *testing.B) {
	z, s := newZipf(), stream(1)
	for b.Loop() {
		z.draw(&s)
	}
}
