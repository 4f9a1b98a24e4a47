package positivemodulus

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "positive_modulus", Unit: Unit,
	Example: "- positive_modulus: {modulus: 5000}",
	Cost:    catalogue.Costs(0.46),
	Summary: "The modulus that is never negative, in [0, `modulus`).",
	Params: []catalogue.Param{
		{Name: "modulus", Type: catalogue.ParamInteger, Min: 1, Summary: "number of ids that come out"},
	},
	Takes: "int64", Yields: "int64 in [0, `modulus`)",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "`modulus` is not above 0",
	Source: "DPP PositiveModulus, Piper and MiniPipe Modulus; no public exact definition: floor modulus is " +
		"ours",
	Apply: apply,
}

func apply(c catalogue.Chain) {
	if c.RequireIntegers() {
		m := c.Number("modulus").Int
		c.Append(Op{M: m})
		c.SetIDs(catalogue.Range{High: m - 1}, true)
	}
}
