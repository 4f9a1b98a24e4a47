package idlisttransform

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "id_list_transform", Unit: Unit, Inputs: 2,
	Summary: "Takes two inputs and keeps the ids of the first that are in the second, each once, in the order in " +
		"which they first occur: the intersection of two lists.",
	Takes:   "two inputs of int64, scalars or lists",
	Yields:  "lists of int64",
	Nulls:   "a null, or a list that holds a null, has no ids, so that the row keeps none",
	Lists:   "a scalar is a list of one id",
	Errors:  "an input is not int64",
	Source:  "DPP IdListTransform; Presto's and Velox' `array_intersect`: order and single ids are theirs",
	Combine: combine,
}

func combine(c catalogue.Combination) {
	taken := true
	for i := range c.Inputs() {
		taken = c.Take(i, program.Int64) && taken
	}
	if !taken {
		return
	}
	ids, bounded := c.IDs(0)
	c.Yield(Op{}, ids, bounded, false)
}
