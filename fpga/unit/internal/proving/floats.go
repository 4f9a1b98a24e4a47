package proving

import (
	"encoding/binary"
	"math"
	"testing"
)

// FloatsOf returns the float32 values in data, little-endian, at most limit of them.
func FloatsOf(data []byte, limit int) []float32 {
	values := make([]float32, min(len(data)/4, limit))
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return values
}

// SameFloats fails unless kernel gives the bits of reference for every value of src.
func SameFloats(t *testing.T, src []float32, kernel func(dst, src []float32), reference func(x float32) float32) {
	t.Helper()
	dst := make([]float32, len(src))
	kernel(dst, src)
	if i := differentFloat(src, dst, reference); i >= 0 {
		t.Fatalf("value %d, %v (bits %#08x): the kernel gives bits %#08x, the reference %#08x", i, src[i],
			math.Float32bits(src[i]), math.Float32bits(dst[i]), math.Float32bits(reference(src[i])))
	}
}

// differentFloat returns the index of the first value of dst whose bits are not those of reference, or -1.
func differentFloat(src, dst []float32, reference func(x float32) float32) int {
	for i, x := range src {
		if math.Float32bits(reference(x)) != math.Float32bits(dst[i]) {
			return i
		}
	}
	return -1
}

// BenchmarkFloats runs a kernel over 2,048 values, of which the i-th is value(i), and reports nanoseconds a value.
func BenchmarkFloats(b *testing.B, value func(i int) float32, kernel func(dst, src []float32)) {
	b.Helper()
	src, dst := make([]float32, 2048), make([]float32, 2048)
	for i := range src {
		src[i] = value(i)
	}
	for b.Loop() {
		kernel(dst, src)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/value")
}
