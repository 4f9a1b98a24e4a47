package proving

import (
	"testing"
)

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
