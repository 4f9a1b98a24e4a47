package zeroextend

// Int64 keeps the low 32 bits of every value, in place.
func Int64(v []int64) {
	for i, x := range v {
		v[i] = int64(uint32(x))
	}
}
