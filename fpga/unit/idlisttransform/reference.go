package idlisttransform

// Reference returns the intersection of one row's lists.
func Reference(a, b []int64) []int64 {
	inB, done := make(map[int64]bool), make(map[int64]bool)
	for _, id := range b {
		inB[id] = true
	}
	out := []int64{}
	for _, id := range a {
		if inB[id] && !done[id] {
			done[id] = true
			out = append(out, id)
		}
	}
	return out
}
