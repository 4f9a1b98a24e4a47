package convert

// nan is the NaN that arithmetic makes, on every processor.
const nan = 0x7fc00000

// Int32ToInt64 sets dst[i] to the little-endian int32 at src[4*i:] for every i of dst. src must have 4*len(dst) bytes,
// at any address.
func Int32ToInt64(dst []int64, src []byte) { int32ToInt64.Pick()(dst, src[:4*len(dst)]) }

// Uint32ToInt64 sets dst[i] to the little-endian uint32 at src[4*i:] for every i of dst. src must have 4*len(dst)
// bytes, at any address.
func Uint32ToInt64(dst []int64, src []byte) { uint32ToInt64.Pick()(dst, src[:4*len(dst)]) }

// Int64ToFloat32 sets dst[i] to the float32 nearest to src[i] for every i of src. dst must be at least as long as src.
func Int64ToFloat32(dst []float32, src []int64) { int64ToFloat32.Pick()(dst[:len(src)], src) }

// Int64ToFloat64 sets dst[i] to the float64 nearest to src[i] for every i of src. dst must be at least as long as src.
func Int64ToFloat64(dst []float64, src []int64) { int64ToFloat64.Pick()(dst[:len(src)], src) }

// Float32ToFloat64 sets dst[i] to src[i] for every i of src. dst must be at least as long as src.
func Float32ToFloat64(dst []float64, src []float32) { float32ToFloat64.Pick()(dst[:len(src)], src) }

// Float64ToFloat32 sets dst[i] to the float32 nearest to src[i] for every i of src. dst must be at least as long as
// src.
func Float64ToFloat32(dst []float32, src []float64) { float64ToFloat32.Pick()(dst[:len(src)], src) }
