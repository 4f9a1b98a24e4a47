package logn

//go:generate go run gen.go

// LogClamped sets dst[i] to the float32 nearest to ln(float32(x + add)) for every i of src, where x is src[i] clamped
// to [lo, hi] as package clamp does it: a NaN stays a NaN. lo must not be above hi; infinite bounds clamp nothing.
// dst must be at least as long as src and may be src.
func LogClamped(dst, src []float32, add, lo, hi float32) {
	log.Pick()(dst[:len(src)], src, add, lo, hi)
}
