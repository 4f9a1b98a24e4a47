package convert

import "math"

// The paths of plain Go, and the oracles of the others.

func convertGeneric[D float32 | float64, S int64 | float32](dst []D, src []S) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = D(x)
	}
}

func narrowGeneric(dst []float32, src []float64) {
	dst = dst[:len(src)]
	for i, x := range src {
		if x != x {
			dst[i] = math.Float32frombits(nan)
			continue
		}
		dst[i] = float32(x)
	}
}
