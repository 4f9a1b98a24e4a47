package fillnull

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "fill_null", Unit: Unit,
	Example: "- fill_null: 0",
	Cost:    catalogue.Costs(0.14),
	Reads:   catalogue.As(catalogue.UsedAsUnknown),
	Summary: "Replaces a null by a constant.",
	Params: []catalogue.Param{{Name: "value", Type: catalogue.ParamNumber,
		Summary: "what a null becomes; for float32 columns rounded to float32"}},
	Takes: "int64, float32, float64", Yields: "the same",
	Nulls:  "become `value`; from here on there are none",
	Lists:  "null elements become `value`; a null list stays null, which is an empty list",
	Errors: "`value` is not whole for an int64 column, or does not fit float32 for a float32 column",
	Source: "TorchArrow `fill_null`; Piper and MiniPipe FillMissing; NVTabular FillMissing",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	if c.RequireNumbers() {
		Fill(c, c.Number("value"))
	}
}

// Fill adds the replacement of nulls by a number to a chain of numbers.
func Fill(c catalogue.Chain, n catalogue.Number) {
	var o Op
	if c.Kind() == program.Int64 {
		o.Int = c.WholeNumber("value", n)
		ids := c.IDs()
		c.SetIDs(catalogue.Range{Low: min(ids.Low, o.Int), High: max(ids.High, o.Int)}, c.Bounded())
	} else {
		o.Float = c.RealNumber("value", n)
	}
	if !c.IsList() {
		c.FillsNulls()
	}
	c.Append(o)
}
