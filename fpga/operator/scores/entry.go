package scores

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "scores", Unit: Unit,
	Cost: catalogue.Costs(0),
	Summary: "Takes the scores of ids as numbers, for `compute_score`, `with_scores` or the operators of lists of " +
		"numbers. Operators that take ids take ids with scores too, and leave the scores behind.",
	Takes:  "ids with scores, as `enumerate`, `with_scores` and maps make them",
	Yields: "lists of float32, as long as those of the ids",
	Nulls:  "there are none",
	Lists:  "takes lists",
	Errors: "ids without scores; behind `ngram` and `list_slice`, which move ids",
	Source: "ours",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	switch {
	case !c.Scored():
		c.Refuse(
			catalogue.ErrColumnType,
			"scores takes lists of ids with scores, as enumerate, with_scores and maps make them",
		)
	case c.Kind() != program.Int64:
		c.Refuse(catalogue.ErrColumnType, "scores takes ids with scores, and these have become %v", c.Kind())
	case program.MovesIDs(c.Ops()) != "":
		c.Refuse(catalogue.ErrColumnType, "%s moves ids, and each of them has a score", program.MovesIDs(c.Ops()))
	default:
		c.BeginStep(Op{})
	}
}
