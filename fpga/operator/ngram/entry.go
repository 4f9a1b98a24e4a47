package ngram

import (
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "ngram", Unit: Unit,
	Example: "- ngram: {n: 2}",
	Cost:    catalogue.Costs(25),
	Summary: "Replaces a list by one id for every window of `n` consecutive ids. A window's ids are folded by the " +
		"hash of `sigrid_hash` before its modulus: the first id with the salt 0, each further one with the hash " +
		"so far as its salt.",
	Params: []catalogue.Param{
		{Name: "n", Type: catalogue.ParamInteger, Min: 1, Alone: true, Summary: "ids of a window, at most 16"},
		{Name: "mode", Type: catalogue.ParamChoice, Default: catalogue.Text("fold"), Choices: []string{"fold", "rap"},
			Summary: "`rap` lists the ids of all windows instead, one window behind the other"},
	},
	Takes: "lists of int64", Yields: "lists of int64; end with `sigrid_hash` or `positive_modulus`",
	Nulls: "a null list stays null",
	Lists: "lists only; a list that is shorter than `n` becomes empty, with mode `rap` it stays as it is",
	Errors: "the column is not a list; `n` is not 1 to 16; mode `rap` twice in a chain, or more than 1048576 ids in a " +
		"list after it; the ids have scores, which belong to single ids: say `scores: drop`",
	Source: "DPP NGram; no public exact definition: the fold is ours. RAP `ngram` lists the ids of the windows and " +
		"shortens `n` to the list's length",
	Check: checkArguments,
	Apply: apply,
}

func checkArguments(c catalogue.Check) {
	if n, ok := c.Given("n"); ok && n.(catalogue.Number).Int > MaxN {
		c.Wrong("n", catalogue.ErrValue, "%s, want at most %d", n, MaxN)
	}
}

func apply(c catalogue.Chain) {
	if !c.IsList() {
		c.Refuse(catalogue.ErrColumnType, "ngram takes lists, and this column has one value a row")
		return
	}
	if !c.RequireIntegers() {
		return
	}
	o := Op{N: c.Number("n").Int, Mode: modes[c.Word("mode")]}
	if o.Mode == Fold {
		c.SetIDs(catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}, false)
	} else if slices.ContainsFunc(c.Ops(), listsWindows) {
		c.Refuse(catalogue.ErrValue, "mode rap a second time in a chain; say it once")
		return
	}
	c.Append(o)
}

// modes are the modes by name.
var modes = map[string]Mode{"fold": Fold, "rap": RAP}

// listsWindows reports whether an operator lists the ids of windows.
func listsWindows(op program.Op) bool {
	windows, ok := op.(Op)
	return ok && windows.Mode == RAP
}
