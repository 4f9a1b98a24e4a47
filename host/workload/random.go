package workload

import "math"

// golden is 2^64 divided by the golden ratio, splitmix64's increment.
const golden = 0x9e3779b97f4a7c15

// mix is splitmix64's finaliser, a bijection.
func mix(z uint64) uint64 {
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	z ^= z >> 31
	return z
}

// key makes one number of several.
func key(parts ...uint64) uint64 {
	var k uint64
	for _, x := range parts {
		k = mix((k ^ x) + golden)
	}
	return k
}

// stream is splitmix64, not math/rand's, so that files are the same in every release of Go.
type stream uint64

func (s *stream) next() uint64 {
	*s += golden
	return mix(uint64(*s))
}

// uniform returns a float64 in [0, 1): a multiple of 2^-53.
func (s *stream) uniform() float64 { return float64(s.next()>>11) * (1.0 / (1 << 53)) }

// ZipfExponent and IDs describe the distribution of ids: rank k of 1..IDs has a probability in proportion to
// k^-ZipfExponent.
const (
	ZipfExponent = 1.05
	IDs          = 1 << 31
)

// zipf draws ranks by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", 1996. The exponent is fixed because at 1.05 the integral of x^-1.05 is
// -20 x^(-1/20), whose inverse needs multiplications only.
type zipf struct{ hFirst, hRange, hLast, squeeze float64 }

func newZipf() zipf {
	last := hIntegral(IDs + 0.5)
	first := hIntegral(1.5) - 1
	return zipf{
		hFirst:  first,
		hLast:   last,
		hRange:  first - last,
		squeeze: 2 - hInverse(hIntegral(2.5)-hDensity(2)),
	}
}

// draw returns a rank, 1 to IDs.
func (z *zipf) draw(s *stream) uint64 {
	for {
		u := z.hLast + float64(s.uniform()*z.hRange)
		x := hInverse(u)
		k := math.Floor(x + 0.5)
		k = max(1, min(k, IDs))
		// The first test spares the roots of the second nearly always.
		if k-x <= z.squeeze || u >= hIntegral(k+0.5)-hDensity(k) {
			return uint64(k)
		}
	}
}

// hDensity is x^-1.05.
func hDensity(x float64) float64 { return 1 / float64(x*root20(x)) }

// hIntegral is the integral of hDensity, up to a constant.
func hIntegral(x float64) float64 { return -20 / root20(x) }

// hInverse is the inverse of hIntegral.
func hInverse(u float64) float64 {
	t := u / -20
	t2 := float64(t * t)
	t4 := float64(t2 * t2)
	t8 := float64(t4 * t4)
	t16 := float64(t8 * t8)
	return 1 / float64(t16*t4)
}

// root20 is the twentieth root of x in [1, 2^32], by square roots and Newton's steps: every operation is correctly
// rounded, so every machine gets the same bits, which math.Pow does not promise.
func root20(x float64) float64 {
	a := math.Sqrt(math.Sqrt(x)) // at most 256; its fifth root at most 3.04
	y := 3.1
	for range 10 {
		y2 := float64(y * y)
		y4 := float64(y2 * y2)
		y = (float64(4*y) + a/y4) / 5
	}
	return y
}

// scatter is a bijection of 0..2^31-1, another one for every key.
func scatter(rank, key uint64) uint64 {
	const mask = IDs - 1
	x := (rank ^ key) & mask
	x ^= x >> 16
	x = x * 0x7feb352d & mask
	x ^= x >> 15
	x = x * 0x846ca68b & mask
	x ^= x >> 16
	x = (x + key>>32) & mask
	return x
}
