package cartesian

import "github.com/millrace/millrace/fpga/unit/sigridhash"

// Reference returns the ids of one row's lists. ok is false if the row is an error.
func Reference(a, b []int64, p Params) (ids []int64, ok bool) {
	for _, x := range a {
		for _, y := range b {
			if int64(len(ids)) < p.MaxLength {
				ids = append(ids, sigridhash.Raw(y, x))
			} else if p.Fail {
				return nil, false
			}
		}
	}
	return ids, true
}
