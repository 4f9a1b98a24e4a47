package hashbucket

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "hash_bucket", Unit: Unit,
	Example: "- hash_bucket: {buckets: 100000}",
	Cost:    catalogue.Costs(2.5),
	Summary: "Hashes an id into [0, `buckets`): SplitMix64's finaliser of the id's 64 bits, and the remainder of that " +
		"unsigned number.",
	Params: []catalogue.Param{{Name: "buckets", Type: catalogue.ParamInteger, Min: 1,
		Summary: "number of ids that come out: the rows of the embedding table"}},
	Takes: "int64", Yields: "int64 in [0, `buckets`)",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "`buckets` is not above 0",
	Source: "NVTabular `HashBucket`, without the row's index that it mixes into the hash on CPUs; pandas " +
		"`hash_array`",
	Apply: apply,
}

func apply(c catalogue.Chain) {
	if c.RequireIntegers() {
		n := c.Number("buckets").Int
		c.Append(Op{Buckets: n})
		c.SetIDs(catalogue.Range{High: n - 1}, true)
	}
}
