package logit

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "logit", Unit: Unit,
	Example: "- logit: {eps: 1.0e-6}",
	Cost:    catalogue.Costs(64),
	Reads:   catalogue.As(catalogue.UsedAsFloat32),
	Summary: "The correctly rounded float32 of ln(t / (1 - t)), where t is the value clamped to [`eps`, 1 - `eps`].",
	Params: []catalogue.Param{{Name: "eps", Type: catalogue.ParamReal, Default: catalogue.Real(1e-6),
		Summary: "rounded to float32, and so is 1 - `eps`; at most 0.5. Below 0: nothing is clamped"}},
	Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
	Nulls: "stay null",
	Lists: "refused",
	Errors: "`eps` is above 0.5. A NaN stays one (7fc00000h). Of 0 it is -Inf and of 1 +Inf where the clamp " +
		"leaves them, and of what lies outside [0, 1] it is NaN: values, not errors",
	Source: "DPP Logit; caffe2 `Logit` (`eps` 1e-6), RAP (1e-5), ATen (`eps` below 0), which round each step; " +
		"one rounding is ours",
	Check: checkArguments,
	Apply: apply,
}

func checkArguments(c catalogue.Check) {
	if eps, ok := c.Given("eps"); ok && eps.(catalogue.Number).Float32() > 0.5 {
		c.Wrong("eps", catalogue.ErrValue, "%s, want at most 0.5", eps)
	}
}

func apply(c catalogue.Chain) {
	if c.RequireReals() {
		c.Append(Op{Eps: c.Number("eps").Float32()})
	}
}
