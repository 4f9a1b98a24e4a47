package mapid

// Reference returns the value whose key is id, or other if no key is.
func Reference(id int64, keys, values []int64, other int64) int64 {
	for i, key := range keys {
		if key == id {
			return values[i]
		}
	}
	return other
}

// ReferenceDense returns the value at the position id, or other if there is none.
func ReferenceDense(id int64, values []int64, other int64) int64 {
	if id < 0 || id >= int64(len(values)) {
		return other
	}
	return values[id]
}
