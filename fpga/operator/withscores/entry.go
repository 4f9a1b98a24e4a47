package withscores

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "with_scores", Unit: Unit, Inputs: 2,
	Summary: "Takes two inputs, ids and their scores, and puts them together. The scores are as many as the ids of " +
		"their row, or one for all of them, as `compute_score` makes one. They become the weights of the ids " +
		"(`kjt.weights`), or numbers by `scores`.",
	Takes:  "ids, scores. Ids are int64; scores float32, or int64 and float64, which become float32",
	Yields: "the ids, with scores",
	Nulls: "a null, or a list that holds a null, has no ids or scores; a row without ids or without scores becomes a " +
		"list without ids",
	Lists: "takes lists; ids that are a scalar are a list of one id, and a score that is a scalar is that of all ids " +
		"of its row",
	Errors: "inputs that are not numbers; scores that are ids with scores. A row with several scores and another " +
		"number of ids fails the split",
	Source:  "ours; the result is the id_score_list of DPP's rows",
	Combine: combine,
}

func combine(c catalogue.Combination) {
	if !c.Take(0, program.Int64) {
		return
	}
	if c.IsScored(1) {
		c.Refuse(
			1,
			catalogue.ErrColumnType,
			"with_scores takes numbers as scores, and these are ids with scores; take their "+
				"scores with the operator scores",
		)
		return
	}
	if c.Take(1, program.Float32) {
		ids, bounded := c.IDs(0)
		c.Yield(Op{}, ids, bounded, true)
	}
}
