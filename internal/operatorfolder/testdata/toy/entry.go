package toy

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "toy", Unit: Unit,
	Example: "- toy: {times: 3, plus: 7}",
	Cost:    catalogue.Costs(1),
	Summary: "Multiplies an id by `times` and adds `plus`, modulo 2^64.",
	Params: []catalogue.Param{
		{Name: "times", Type: catalogue.ParamInteger, Min: 1, Alone: true, Summary: "the factor"},
		{Name: "plus", Type: catalogue.ParamInteger, Min: catalogue.AnyInteger, Default: catalogue.Int(0),
			Summary: "the summand"},
	},
	Takes: "int64", Yields: "int64",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "`times` is below 1",
	Source: "a test",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	if !c.RequireIntegers() {
		return
	}
	c.Append(Op{Times: c.Number("times").Int, Plus: c.Number("plus").Int})
	c.SetIDs(catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}, false)
}
