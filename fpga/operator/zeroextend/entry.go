package zeroextend

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "zero_extend", Unit: Unit,
	Cost: catalogue.Costs(0.06),
	Summary: "Re-reads an id as its low 32 bits, unsigned: for files that hold unsigned ids in an int32 " +
		"column.",
	Takes: "int64", Yields: "int64 in [0, 2^32)",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "none",
	Source: "ours; RAP's and NVTabular's Parquet files of Criteo need it",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	if !c.RequireIntegers() {
		return
	}
	c.Append(Op{})
	if ids := c.IDs(); ids.Low < 0 || ids.High > math.MaxUint32 {
		c.SetIDs(catalogue.Range{High: math.MaxUint32}, false)
	}
}
