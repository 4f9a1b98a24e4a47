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
