package sigridhash

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "sigrid_hash", Unit: Unit,
	Example: "- sigrid_hash: {salt: 0, max: 500000}",
	Cost:    catalogue.Costs(2.12),
	Summary: "Hashes an id into [0, `max`).",
	Params: []catalogue.Param{
		{
			Name:    "salt",
			Type:    catalogue.ParamInteger,
			Default: catalogue.Int(0),
			Min:     catalogue.AnyInteger,
			Summary: "changes the hash",
		},
		{Name: "max", Type: catalogue.ParamInteger, Min: 1,
			Summary: "number of ids that come out: the rows of the embedding table"},
	},
	Takes: "int64", Yields: "int64 in [0, `max`)",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "`max` is not above 0",
	Source: "TorchArrow `sigrid_hash`; PreSto algorithm 2",
	Apply:  apply,
}

func apply(c catalogue.Chain) {
	if c.RequireIntegers() {
		limit := c.Number("max").Int
		c.Append(Op{Salt: c.Number("salt").Int, Max: limit})
		c.SetIDs(catalogue.Range{High: limit - 1}, true)
	}
}
