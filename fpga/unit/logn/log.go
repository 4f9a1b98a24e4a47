package logn

//go:generate go run gen.go

// Log sets dst[i] to the float32 nearest to ln(float32(src[i] + add)) for every i of src. dst must be at least as
// long as src and may be src.
func Log(dst, src []float32, add float32) {
	log.Pick()(dst[:len(src)], src, add)
}
