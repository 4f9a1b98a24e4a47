package fillnull

// Reference returns v where it is valid, else fill.
func Reference[T int64 | float32 | float64](v T, valid bool, fill T) T {
	if valid {
		return v
	}
	return fill
}
