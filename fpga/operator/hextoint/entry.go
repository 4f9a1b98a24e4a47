package hextoint

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "hex_to_int", Unit: Unit,
	Cost:    catalogue.Costs(2.2),
	Summary: "Reads 1 to 8 hexadecimal digits as an unsigned 32-bit number.",
	Takes:   "bytes", Yields: "int64 in [0, 2^32)",
	Nulls: "stay null; an empty string becomes null",
	Lists: "element by element",
	Errors: "any other text fails the split. Criteo's text rows need no hex_to_int: their ids are read by " +
		"the decoder",
	Source: "Piper and MiniPipe Hex2Int, read strictly ([0-9a-fA-F]{1,8}): ours",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	switch {
	case c.Kind() != program.Bytes:
		c.Refuse(
			catalogue.ErrColumnType,
			"hex_to_int takes strings, and these are %v (the decoder of Criteo's rows reads their "+
				"ids itself)",
			c.Kind(),
		)
	case c.Logical() != "":
		c.Refuse(catalogue.ErrColumnType, "hex_to_int takes text, and %s", c.DescribeBytes())
	default:
		c.Append(Op{})
		c.SetIDs(catalogue.Range{High: math.MaxUint32}, false)
		c.MakesNulls()
	}
}
