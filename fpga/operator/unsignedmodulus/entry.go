package unsignedmodulus

import (
	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "unsigned_modulus", Unit: Unit,
	Example: "- unsigned_modulus: {modulus: 5000}",
	Cost:    catalogue.Costs(1.1),
	Summary: "The remainder of an id's 64 bits, read as an unsigned number, in [0, `modulus`): the id -1 is " +
		"18446744073709551615. Behind `hash_bytes: farmhash64` it is the bucket of TensorFlow's " +
		"`tf.strings.to_hash_bucket_fast` with as many buckets, and behind `xxh3` the remainder of the hash as xxHash " +
		"defines it. `to_hash_bucket_strong` and the deprecated `to_hash_bucket` hash otherwise, and nothing here is " +
		"equal to them.",
	Params: []catalogue.Param{
		{Name: "modulus", Type: catalogue.ParamInteger, Min: 1, Summary: "number of ids that come out"},
	},
	Takes: "int64", Yields: "int64 in [0, `modulus`)",
	Nulls: "stay null",
	Lists: "element by element",
	Errors: "`modulus` is not above 0. For ids from 0 on, and for powers of two, `positive_modulus` is the same; for " +
		"other moduli it has other remainders of negative ids",
	Source: "TensorFlow's `string_to_hash_bucket_fast_op.h` (`input_hash % num_buckets_`, of a uint64); Java's " +
		"`Long.remainderUnsigned`",
	Apply: apply,
}

func apply(c catalogue.Chain) {
	if c.RequireIntegers() {
		m := c.Number("modulus").Int
		c.Append(Op{M: m})
		c.SetIDs(catalogue.Range{High: m - 1}, true)
	}
}
