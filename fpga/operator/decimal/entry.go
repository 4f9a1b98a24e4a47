package decimal

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "decimal", Unit: Unit,
	Example: "- decimal: float32",
	Reads:   catalogue.As(catalogue.UsedByOperator),
	Summary: "Reads a DECIMAL: its unscaled integer divided by ten to the power of its scale, rounded once to " +
		"`float32` or `float64`, or the unscaled integer itself as `int64`.",
	Params: []catalogue.Param{{Name: "to", Type: catalogue.ParamChoice, Choices: []string{"float32", "float64", "int64"},
		Summary: "kind of the number"}},
	Takes: "DECIMAL of at most 76 digits, kept as INT32, INT64, BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY",
	Yields: "float32 or float64, the nearest, ties to even; beyond the largest float32 an infinity. int64: the " +
		"unscaled integer, exactly",
	Nulls: "stay null; for decimals kept as integers `fill_null` may come first, with an unscaled integer",
	Lists: "element by element",
	Errors: "the column is not a DECIMAL, or, for `int64`, partitions differ in its scale; a value of no " +
		"byte or more than 32 bytes, or, for `int64`, beyond int64, fails the split. Without `decimal`, a " +
		"DECIMAL is read as by `decimal: float32` where it is not an id",
	Source: "Parquet's DECIMAL; one rounding is ours",
	Apply:  apply,
}

// kinds are the kinds by name.
var kinds = map[string]program.Kind{"float32": program.Float32, "float64": program.Float64, "int64": program.Int64}

func apply(c catalogue.Chain) {
	to := kinds[c.Word("to")]
	if c.ReadVaried(to) {
		return
	}
	scale, ok := c.DecimalScale()
	switch {
	case !ok:
	case to != program.Int64:
		c.Append(Op{Scale: scale, To: to})
	case c.Kind() == program.Bytes:
		c.Append(Op{To: program.Int64})
		c.SetIDs(catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}, false)
	}
}
