package clamp

// Reference returns v < lo ? lo : (hi < v ? hi : v); lo must not be above hi.
func Reference[T int64 | float32 | float64](v, lo, hi T) T {
	switch {
	case v < lo:
		return lo
	case hi < v:
		return hi
	}
	return v
}
