package ngram

import "github.com/millrace/millrace/fpga/unit/sigridhash"

// Reference returns the ids of one list's windows of n ids, n at least 1.
func Reference(list []int64, n int64) []int64 {
	var out []int64
	for first := int64(0); first+n <= int64(len(list)); first++ {
		h := sigridhash.Raw(list[first], 0)
		for k := int64(1); k < n; k++ {
			h = sigridhash.Raw(list[first+k], h)
		}
		out = append(out, h)
	}
	return out
}

// ListReference returns the ids of all windows of one list, n at least 1. It returns false if they are more than
// MaxListed.
func ListReference(list []int64, n int64) ([]int64, bool) {
	if n > int64(len(list)) {
		n = int64(len(list))
	}
	var out []int64
	for first := int64(0); n > 0 && first+n <= int64(len(list)); first++ {
		for k := range n {
			out = append(out, list[first+k])
		}
		if len(out) > MaxListed {
			return nil, false
		}
	}
	return out, true
}
