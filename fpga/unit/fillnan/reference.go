package fillnan

// Reference returns fill for a NaN, else v.
func Reference[T float32 | float64](v, fill T) T {
	if v != v {
		return fill
	}
	return v
}
