package firstx

// Reference returns a copy of the first min(n, len(list)) values of one list; n <= 0 gives the empty list.
func Reference[T any](list []T, n int64) []T {
	var out []T
	for i, v := range list {
		if int64(i) >= n {
			break
		}
		out = append(out, v)
	}
	return out
}
