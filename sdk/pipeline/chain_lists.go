package pipeline

import (
	"github.com/millrace/millrace/fpga/program"
)

// movesIDs returns the name of an operator of the feature that makes ids of several ids with scores, which would belong
// to no id, or leaves out others than the last ids of a list; empty: none.
func (f *Feature) movesIDs() string {
	if f.scored() {
		return program.MovesIDs(f.Ops)
	}
	return ""
}
