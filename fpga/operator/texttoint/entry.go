package texttoint

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "text_to_int", Unit: Unit,
	Cost:    catalogue.Costs(19),
	Summary: "Reads decimal text as an integer: an optional sign, + or -, and digits of ASCII, as `-123` and `+5`.",
	Takes:   "bytes: text", Yields: "int64",
	Nulls: "stay null; an empty text becomes null",
	Lists: "element by element",
	Errors: "any other text, also with spaces, a point, an exponent or separators of digits, and an integer that is not " +
		"an int64, fails the split, with its row and the text. Zeros in front do not count",
	Source: "Python `int`, Spark `cast`, Polars `str.to_integer` and TensorFlow `string_to_number`, which differ in " +
		"spaces and in what they make of other text; strict: ours",
	Apply: apply,
}

func apply(c catalogue.Chain) {
	if !c.RequireText() {
		return
	}
	c.Append(Op{})
	c.SetIDs(catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}, false)
	c.MakesNulls()
}
