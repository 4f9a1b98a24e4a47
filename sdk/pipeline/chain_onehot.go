package pipeline

import (
	"github.com/millrace/millrace/fpga/operator/onehot"
	"github.com/millrace/millrace/fpga/program"
)

// endsInClasses reports whether operators end in onehot, behind which nothing can follow.
func endsInClasses(ops []program.Op) bool {
	if len(ops) == 0 {
		return false
	}
	_, ok := ops[len(ops)-1].(onehot.Op)
	return ok
}
