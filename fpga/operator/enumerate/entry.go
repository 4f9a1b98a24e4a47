package enumerate

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "enumerate", Unit: Unit,
	Summary: "Gives each id of a list its position as its score: 0, 1, 2 and so on. The scores become the weights of " +
		"the ids (`kjt.weights`), or numbers by `scores`.",
	Takes: "int64", Yields: "the same ids, with scores: float32, the position rounded to the nearest, ties to even",
	Nulls:  "a null, or a list that holds a null, becomes a list without ids",
	Lists:  "takes lists; a scalar is a list of one id",
	Errors: "a value that is not int64. Scores that the ids have already are left behind",
	Source: "DPP Enumerate, which is \"similar to Python enumerate()\"; pairs of position and id as ids with scores " +
		"are ours",
	Apply: apply,
}

func apply(c catalogue.Chain) {
	if c.RequireIntegers() {
		c.BeginStep(Op{})
	}
}
