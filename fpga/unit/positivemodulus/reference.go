package positivemodulus

// Reference returns floorMod(x, m), m > 0.
func Reference(x, m int64) int64 {
	r := x % m
	if r < 0 {
		r += m
	}
	return r
}
