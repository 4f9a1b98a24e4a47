package resolve

import (
	"slices"
	"strconv"

	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
)

// makesDense reports whether operators make dense columns of a list.
func makesDense(ops []pipeline.Op) bool {
	return slices.ContainsFunc(ops, func(o pipeline.Op) bool { return o.Name == "fixed_length" })
}

// Width returns how many neighbouring columns of the dense tensor a dense feature has.
func (f *Feature) Width() int {
	n, _ := program.DenseColumns(f.Ops)
	return int(n)
}

// columnNames returns the names of the feature's columns in the dense tensor, or of its key.
func (f *Feature) columnNames() []string {
	n, made := program.DenseColumns(f.Ops)
	if !made {
		return []string{f.Name}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = f.Name + "." + strconv.Itoa(i)
	}
	return names
}

// movesIDs returns the name of an operator of the feature that makes ids of several ids with scores, which would belong
// to no id, or leaves out others than the last ids of a list; empty: none.
func (f *Feature) movesIDs() string {
	if f.Scored() {
		return program.MovesIDs(f.Ops)
	}
	return ""
}

// endsInClasses reports whether operators end in onehot, behind which nothing can follow.
func endsInClasses(ops []program.Op) bool {
	if len(ops) == 0 {
		return false
	}
	_, ok := ops[len(ops)-1].(onehot.Op)
	return ok
}
