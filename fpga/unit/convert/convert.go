package convert

// nan is the NaN that arithmetic makes, whatever the processor would.
const nan = 0x7fc00000

// Int64ToFloat32 sets dst[i] to the float32 nearest to src[i] for every i of src. dst must be at least as long as src.
func Int64ToFloat32(dst []float32, src []int64) { int64ToFloat32.Pick()(dst[:len(src)], src) }

// Int64ToFloat64 sets dst[i] to the float64 nearest to src[i] for every i of src. dst must be at least as long as src.
func Int64ToFloat64(dst []float64, src []int64) { int64ToFloat64.Pick()(dst[:len(src)], src) }

// Float32ToFloat64 sets dst[i] to src[i] for every i of src. dst must be at least as long as src.
func Float32ToFloat64(dst []float64, src []float32) { float32ToFloat64.Pick()(dst[:len(src)], src) }

// Float64ToFloat32 sets dst[i] to the float32 nearest to src[i] for every i of src. dst must be at least as long as src.
func Float64ToFloat32(dst []float32, src []float64) { float64ToFloat32.Pick()(dst[:len(src)], src) }
