package bucketize

// Reference returns the bucket of one value among borders of its own type, by linear search. ok is false for a NaN
// under NaNFail.
func Reference[T int64 | float32 | float64](v T, borders []T, side Side, nan NaN) (bucket int64, ok bool) {
	n := len(borders)
	if v != v && nan != NaNTorchArrow {
		switch nan {
		case NaNFirst:
			return 0, true
		case NaNLast:
			return int64(n), true
		}
		return 0, false
	}
	if side == SideRight && v == v {
		// The number of borders not above v: upper_bound.
		for bucket < int64(n) && borders[bucket] <= v {
			bucket++
		}
		return bucket, true
	}
	// TorchArrow's: lower_bound, then one step if the value is not below the next border. A NaN is below nothing.
	i := 0
	for i < n && borders[i] < v {
		i++
	}
	if i >= n-1 || v < borders[i+1] {
		return int64(i), true
	}
	return int64(i + 1), true
}
