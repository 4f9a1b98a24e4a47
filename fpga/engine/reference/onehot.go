package reference

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/onehot"
)

// oneHotOf returns the columns that onehot makes of a row's value.
func oneHotOf(o program.OneHot, v any) []float32 {
	columns, class := make([]float32, o.Classes), int64(-1)
	switch x := v.(type) {
	case int64:
		class = onehot.Reference(x, int(o.Classes))
	case float32:
		class = onehot.ReferenceRange(x, o.Lower, o.Upper, int(o.Classes))
	}
	if class >= 0 {
		columns[class] = 1
	}
	return columns
}
