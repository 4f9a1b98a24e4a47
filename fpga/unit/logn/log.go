package logn

import "math"

// Log sets dst[i] to the float32 nearest to ln(float32(src[i] + add)) for every i of src. dst must be at least as
// long as src and may be src.
func Log(dst, src []float32, add float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = float32(math.Log(float64(x + add)))
	}
}
