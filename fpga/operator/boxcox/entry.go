package boxcox

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "box_cox", Unit: Unit,
	Example: "- box_cox: {lambda1: 0.5, lambda2: 1}",
	Cost:    catalogue.Costs(94),
	Reads:   catalogue.As(catalogue.UsedAsFloat32),
	Summary: "The correctly rounded float32 of (t^`lambda1` - 1) / `lambda1`, or of ln t where `lambda1` is 0. " +
		"With mode `caffe2`, t is the value plus `lambda2`, rounded once to float32, but 1e-6 if that is below " +
		"1e-6. With mode `rap`, t is the value, and values that are not above 0 stay as they are.",
	Params: []catalogue.Param{
		{Name: "lambda1", Type: catalogue.ParamReal, Summary: "the power; rounded to float32"},
		{Name: "lambda2", Type: catalogue.ParamReal, Default: catalogue.Real(0),
			Summary: "added first; rounded to float32; 0 with mode `rap`"},
		{Name: "mode", Type: catalogue.ParamChoice, Default: catalogue.Text("caffe2"), Choices: []string{"caffe2", "rap"},
			Summary: "which number is transformed"},
	},
	Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
	Nulls: "stay null",
	Lists: "refused",
	Errors: "`lambda2` with mode `rap`. A NaN stays one (7fc00000h); of 1 it is a zero with the sign of " +
		"`lambda1`; a result beyond float32 is an infinity: values, not errors",
	Source: "DPP BoxCox; caffe2 `BatchBoxCox`, RAP `boxcox`, which round each step; one rounding is ours",
	Check:  checkArguments,
	Apply:  apply,
}

func checkArguments(c catalogue.Check) {
	mode, _ := c.Given("mode")
	shift, hasShift := c.Given("lambda2")
	if hasShift && mode == catalogue.Text("rap") && shift.(catalogue.Number).Float32() != 0 {
		c.Wrong("lambda2", catalogue.ErrValue, "%s with mode rap, which has none; leave it out, or say mode: caffe2", shift)
	}
}

func apply(c catalogue.Chain) {
	if c.RequireReals() {
		c.Append(Op{Lambda1: c.Number("lambda1").Float32(), Lambda2: c.Number("lambda2").Float32(),
			Mode: modes[c.Word("mode")]})
	}
}

// modes are the modes by name.
var modes = map[string]Mode{"caffe2": Caffe2, "rap": RAP}
