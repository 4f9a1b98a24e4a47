package firstx

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "firstx", Unit: Unit,
	Example: "- firstx: {n: 20}",
	Cost:    catalogue.Costs(0.3),
	Reads:   catalogue.As(catalogue.UsedAsUnknown),
	Summary: "Keeps the first `n` elements of a list.",
	Params: []catalogue.Param{
		{Name: "n", Type: catalogue.ParamInteger, Min: 0, Summary: "elements to keep; 0 keeps none"},
	},
	Takes: "lists of int64, float32, float64", Yields: "the same",
	Nulls:  "a null list stays null",
	Lists:  "lists only",
	Errors: "the column is not a list; `n` is below 0",
	Source: "TorchArrow `firstx`; DPP FirstX",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	switch {
	case !c.IsList():
		c.Refuse(catalogue.ErrColumnType, "firstx takes lists, and this column has one value a row")
	case c.RequireNumbers():
		c.Append(Op{N: c.Number("n").Int})
	}
}
