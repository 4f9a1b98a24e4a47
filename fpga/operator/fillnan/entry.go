package fillnan

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "fill_nan", Unit: Unit,
	Example: "- fill_nan: 0",
	Cost:    catalogue.Costs(0.5),
	Reads:   catalogue.As(catalogue.UsedAsUnknown),
	Summary: "Replaces a NaN by a constant, whatever its sign and payload. A NaN is a value and not a null, " +
		"as in Polars and Spark: pandas and NVTabular, which count it as a null, need `fill_null` and " +
		"`fill_nan` here. A NaN that ends in a dense feature or in the label is refused: put `fill_nan` " +
		"behind what makes it, or write `nan: keep` in the group.",
	Params: []catalogue.Param{
		{Name: "value", Type: catalogue.ParamNumber, Summary: "what a NaN becomes; for float32 columns " +
			"rounded to float32"},
	},
	Takes: "int64, float32, float64; int64 has no NaN, and passes as it is", Yields: "the same",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "`value` does not fit float32 for a float32 column",
	Source: "Polars `fill_nan`; Spark `nanvl`; NVTabular FillMissing and pandas `fillna`, which fill nulls too",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	if c.RequireNumbers() && c.Kind() != program.Int64 { // an integer is never a NaN
		c.Append(Op{Value: c.RealNumber("value", c.Number("value"))})
	}
}
