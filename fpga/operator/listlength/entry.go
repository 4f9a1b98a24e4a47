package listlength

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "list_length", Unit: Unit,
	Cost:    catalogue.Costs(0.4),
	Reads:   catalogue.As(catalogue.UsedAsFloat64),
	Summary: "Counts the elements of a list, so that the length of a history or the number of tags is a feature.",
	Takes:   "lists of anything: int64, float32, float64, bytes, ids with scores",
	Yields: "int64, one value a row, at least 0; dense features convert it to float32 (nearest, ties to even). Ids are " +
		"not bounded: end keys with `clamp`, `bucketize`, `positive_modulus` or a hash",
	Nulls: "a null list has the length 0, and so has a list that holds a null, which is an empty list to every " +
		"operator; " +
		"put `fill_null` first to count the nulls of a list of numbers. The result is never null",
	Lists:  "takes lists; the result is one value a row",
	Errors: "the column is not a list; `split` makes a list of a text",
	Source: "asked for as NVTabular's issue 641; nulls are ours",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	if !c.IsList() {
		c.Refuse(catalogue.ErrColumnType, "list_length takes lists, and this column has one value a row")
		return
	}
	c.BeginStep(Op{})
	c.SetIDs(catalogue.Range{Low: 0, High: math.MaxInt32}, false)
	c.FillsNulls() // a null list has the length 0
}
