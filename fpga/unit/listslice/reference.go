package listslice

// Reference returns list[start:end] as Python has it, followed by pad until it has length elements.
func Reference[T any](list []T, start, end, length int64, pad T) []T {
	n := int64(len(list))
	part := []T{}
	for i := range n {
		behindStart := start >= 0 && i >= start || start < 0 && i-n >= start
		beforeEnd := end >= 0 && i < end || end < 0 && i-n < end
		if behindStart && beforeEnd {
			part = append(part, list[i])
		}
	}
	for int64(len(part)) < length {
		part = append(part, pad)
	}
	return part
}
