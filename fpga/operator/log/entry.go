package log

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "log", Unit: Unit,
	Example: "- log: {add: 1}",
	Cost:    catalogue.Costs(1.01),
	Reads:   catalogue.As(catalogue.UsedAsFloat32),
	Summary: "The correctly rounded float32 of ln(x + `add`), where x + `add` is rounded once in float32.",
	Params: []catalogue.Param{{Name: "add", Type: catalogue.ParamReal, Default: catalogue.Real(0),
		Summary: "added first; rounded to float32"}},
	Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
	Nulls: "stay null",
	Lists: "refused",
	Errors: "ln(0) is -Inf and ln of a negative number is NaN (7fc00000h): values, not errors, " +
		"but a NaN is refused in dense: clamp first, or put `fill_nan` behind",
	Source: "PreSto II-C, Piper Logarithm; TorchArrow `log` (which rounds as its C library does)",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	if c.RequireReals() {
		c.Append(Op{Add: c.Number("add").Float32()})
	}
}
