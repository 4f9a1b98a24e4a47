package clamp

// clampGeneric is the path of plain Go, and the oracle of the others.
func clampGeneric[T int64 | float32 | float64](v []T, lo, hi T) {
	for i, x := range v {
		if x < lo {
			v[i] = lo
		} else if hi < x {
			v[i] = hi
		}
	}
}
