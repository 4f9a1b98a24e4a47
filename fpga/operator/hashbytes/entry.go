package hashbytes

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "hash_bytes", Unit: Unit,
	Example: "- hash_bytes: {function: xxh3}",
	Cost:    catalogue.Costs(8.7),
	Summary: "Hashes the bytes of a value to an id, so that text can serve as a category. `xxh3` is XXH3 of 64 bits " +
		"with the seed 0. `murmur3_32` is Spark's `hash` of a string, sign-extended. `farmhash64` is FarmHash's " +
		"Fingerprint64, which TensorFlow's `string_to_hash_bucket_fast` and BigQuery's `FARM_FINGERPRINT` use.",
	Params: []catalogue.Param{
		{Name: "function", Type: catalogue.ParamChoice, Choices: []string{"xxh3", "murmur3_32", "farmhash64"},
			Summary: "hash function"},
	},
	Takes: "bytes: text, enumerations, JSON, BSON, UUID",
	Yields: "int64, also negative: unsigned hashes are read as int64; for `murmur3_32` an int32. End with " +
		"`unsigned_modulus`, `positive_modulus` or `sigrid_hash`",
	Nulls: "stay null; an empty string has a hash",
	Lists: "element by element",
	Errors: "DECIMAL, FLOAT16 and INTERVAL kept as bytes are refused, since equal numbers may have different bytes. " +
		"Text is hashed as it is: nothing is trimmed, normalised or checked to be UTF-8. TensorFlow takes its " +
		"remainder of the unsigned hash, as `unsigned_modulus` does; `positive_modulus` is the same only for a power of " +
		"two",
	Source: "the xxHash specification; Spark's `Murmur3Hash` (seed 42; each byte behind the last word of four is a " +
		"signed word of its own); FarmHash. The choice of `xxh3` is ours",
	Apply: apply,
}

func apply(c catalogue.Chain) {
	switch {
	case c.Kind() != program.Bytes:
		c.Refuse(catalogue.ErrColumnType, "hash_bytes takes strings, and these are %v; sigrid_hash hashes ids", c.Kind())
		return
	case !c.IsCategory():
		c.Refuse(catalogue.ErrColumnType, "hash_bytes takes text, and %s", c.DescribeBytes())
		return
	}
	o := Op{Function: hashFunctions[c.Word("function")]}
	c.Append(o)
	ids := catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}
	if o.Function == Murmur3 {
		ids = catalogue.Range{Low: math.MinInt32, High: math.MaxInt32}
	}
	c.SetIDs(ids, false)
}

// hashFunctions are the functions by name.
var hashFunctions = map[string]Function{"xxh3": XXH3, "murmur3_32": Murmur3, "farmhash64": FarmHash}
