package convert

import (
	"math"
	"math/big"
)

// ReferenceFloat32 returns the float32 nearest to x, ties to even; the NaN 7fc00000h for every NaN.
func ReferenceFloat32[T int64 | float64](x T) float32 {
	switch v := any(x).(type) {
	case int64:
		f, _ := new(big.Float).SetInt64(v).Float32()
		return f
	case float64:
		if v != v {
			return math.Float32frombits(nan)
		}
		f, _ := big.NewFloat(v).Float32()
		return f
	}
	return 0
}
