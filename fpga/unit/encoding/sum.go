package encoding

// Sum turns deltas into values: v[i] becomes last + v[0] + ... + v[i] + (i+1)*least, all modulo 2^64.
func Sum(v []int64, least, last int64) { sum.Pick()(v, least, last) }

func sumGeneric(v []int64, least, last int64) {
	for i, x := range v {
		last += x + least
		v[i] = last
	}
}
