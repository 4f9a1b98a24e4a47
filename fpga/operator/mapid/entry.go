package mapid

import (
	"slices"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "map_id", Unit: Unit,
	Example: "- map_id: {table: {5: 1, 7: 2}, default: 0}",
	Cost:    cost,
	Summary: "Replaces an id by the value of its key in a table, and by `default` if the table lacks the id. A list " +
		"is a table whose keys are 0, 1, 2 and so on.",
	Params: []catalogue.Param{
		{Name: "table", Type: catalogue.ParamTable, Summary: "`{key: value}` or a list of values, at most 1048576"},
		{Name: "default", Type: catalogue.ParamInteger, Default: catalogue.Int(0), Min: catalogue.AnyInteger,
			Summary: "what an id becomes that the table lacks"},
	},
	Takes: "int64", Yields: "int64: the values and `default`",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "an empty table; a key twice; a key or value that is not a whole number",
	Source: "DPP MapId; RAP `mapid` takes lists alone, gives 0 behind their end, and is undefined below 0: `default` " +
		"for all ids that the table lacks is ours",
	Apply: apply,
}

// cost returns the estimate of the operator: a list is looked up without a search.
func cost(a catalogue.Arguments) float64 {
	if table, ok := a.Given("table"); ok {
		if t, ok := table.(catalogue.IDTable); ok && t.Keys == nil {
			return 4
		}
	}
	return 23
}

func apply(c catalogue.Chain) {
	if !c.RequireIntegers() {
		return
	}
	t, other := c.Value("table").(catalogue.IDTable), c.Number("default").Int
	if err := c.CountNumbers(&t.Values[0], len(t.Keys)+len(t.Values)); err != nil {
		c.Refuse(catalogue.ErrValue, "%v", err)
		return
	}
	c.Append(&Op{Keys: t.Keys, Values: t.Values, Default: other})
	c.SetIDs(catalogue.Range{Low: min(other, slices.Min(t.Values)), High: max(other, slices.Max(t.Values))}, true)
}
