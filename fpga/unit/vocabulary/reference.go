package vocabulary

import "fmt"

// Reference is a vocabulary as a map from keys to indices.
type Reference map[int64]int32

// NewReference makes the map of a list of different keys.
func NewReference(keys []int64) (Reference, error) {
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("vocabulary: %d keys, at most %d", len(keys), MaxKeys)
	}
	r := make(Reference, len(keys))
	for i, key := range keys {
		if first, ok := r[key]; ok {
			return nil, &DuplicateError{Key: key, First: int(first), Second: i}
		}
		r[key] = int32(i)
	}
	return r, nil
}

// Lookup sets each element of indices to the index of the key at the same place, or to Absent. Both slices have the
// same length.
func (r Reference) Lookup(indices []int32, keys []int64) {
	for i, key := range keys {
		index, ok := r[key]
		if !ok {
			index = Absent
		}
		indices[i] = index
	}
}
