package hashcross

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "hash_cross", Unit: Unit, Inputs: 2, MaxInputs: program.MaxInputs,
	Example: "- hash_cross: {buckets: 100000}",
	Cost:    catalogue.Costs(3.7),

	Summary: "Takes several inputs and hashes an id of each together into [0, `buckets`): the exclusive or of their " +
		"hashes, each SplitMix64's finaliser of the id's 64 bits, and the remainder of that unsigned number. The order " +
		"of the inputs does not count, and equal ids cancel: `cartesian` has neither property.",
	Params: []catalogue.Param{{Name: "buckets", Type: catalogue.ParamInteger, Min: 1,
		Summary: "number of ids that come out: the rows of the embedding table"}},
	Takes: "2 to 8 inputs of int64, one value a row", Yields: "int64 in [0, `buckets`)",
	Nulls:  "null if one of the inputs is",
	Lists:  "refused",
	Errors: "an input is not int64, or is a list; `buckets` is not above 0",
	Source: "NVTabular `HashedCross`, whose hash on CPUs is pandas' of the id and the row's index: ours leaves the " +
		"index out, so that a row's place does not matter. pandas hashes an int32 as 32 bits: `zero_extend` first gives " +
		"its hashes of ids below 0",
	Combine: combine,
}

func combine(c catalogue.Combination) {
	scalars := true
	for i := range c.Inputs() {
		if c.IsList(i) {
			c.Refuse(i, catalogue.ErrColumnType, "hash_cross takes one value a row, and these are lists; cartesian takes lists")
			scalars = false
		}
	}
	if !scalars {
		return
	}
	taken := true
	for i := range c.Inputs() {
		taken = c.Take(i, program.Int64) && taken
	}
	if !taken {
		return
	}
	n := c.Number("buckets").Int
	c.Yield(Op{Buckets: n}, catalogue.Range{High: n - 1}, true, false)
}
