package logn

import "math"

//go:generate go run gen.go

// Log sets dst[i] to the float32 nearest to ln(float32(src[i] + add)) for every i of src. dst must be at least as
// long as src and may be src.
func Log(dst, src []float32, add float32) {
	LogClamped(dst, src, add, float32(math.Inf(-1)), float32(math.Inf(1)))
}

// LogClamped is Log of src clamped to [lo, hi], as package clamp does it: a NaN stays one. lo must not be above hi.
func LogClamped(dst, src []float32, add, lo, hi float32) {
	log.Pick()(dst[:len(src)], src, add, lo, hi)
}
