package pipeline

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// Operator is the catalogue's entry of an operator.
type Operator struct {
	Name    string
	Summary string
	Params  []Param
	Takes   string // kinds of values, and what is converted
	Yields  string
	Nulls   string
	Lists   string
	Errors  string
	Source  string // where the definition comes from
	Unit    program.Unit
	Inputs  int // how many inputs an operator of several takes at least; 0: it takes one value
	// MaxInputs is how many inputs the operator takes at most; 0: as many as Inputs.
	MaxInputs int

	// check checks what the parameters' types do not say; nil: they say everything. The parameters have their types.
	check func(p *problems, o *Op, a location)
	// apply adds the operator to a chain and updates the chain's state.
	apply func(c *chain, o *Op, a location)
	// combine, of an operator of several inputs, takes the inputs together instead.
	combine func(c *combination, o *Op, a location)
}

// short returns the parameter that may be written alone, as in fill_null: 0, or nil if there is none. An operator has
// one if it has a single parameter and that has no default, or if the first of its parameters says so.
func (o *Operator) short() *Param {
	if len(o.Params) == 1 && o.Params[0].Default == nil || len(o.Params) > 1 && o.Params[0].Alone {
		return &o.Params[0]
	}
	return nil
}

// param returns the parameter of a name, or nil if there is none.
func (o *Operator) param(name string) *Param {
	for i := range o.Params {
		if o.Params[i].Name == name {
			return &o.Params[i]
		}
	}
	return nil
}

// ParamType is the type of a parameter.
type ParamType uint8

// The types of parameters.
const (
	ParamInteger ParamType = iota + 1 // Number with Integer set, from Min on
	ParamNumber                       // Number; must be whole when the column's values are
	ParamReal                         // Number, read as a real number
	ParamChoice                       // Text, one of Choices
	ParamBorders                      // Borders
	ParamText                         // Text
	ParamTable                        // IDTable
	ParamWords                        // Words, each one of Choices
)

// String returns the type's name for documentation.
func (t ParamType) String() string {
	switch t {
	case ParamInteger:
		return "integer"
	case ParamNumber:
		return "number"
	case ParamReal:
		return "real"
	case ParamChoice:
		return "word"
	case ParamBorders:
		return "borders"
	case ParamText:
		return "text"
	case ParamTable:
		return "table of integers"
	case ParamWords:
		return "list of words"
	}
	return "unknown"
}

// Param is a parameter of an operator.
type Param struct {
	Name     string
	Type     ParamType
	Default  Value // nil: none
	Optional bool  // may be left out though it has no default
	Alone    bool  // may be written alone, though the operator has other parameters
	Min      int64 // least value of an integer
	Choices  []string
	Summary  string
}

// Required reports whether the parameter must be given.
func (p *Param) Required() bool { return p.Default == nil && !p.Optional }

const anyInteger = math.MinInt64

// Catalogue returns the operators, in the order in which the documentation shows them.
func Catalogue() []Operator {
	return []Operator{
		{
			Name: "fill_null", Unit: program.UnitFillNull, apply: applyFillNull,
			Summary: "Replaces a null by a constant.",
			Params: []Param{{Name: "value", Type: ParamNumber,
				Summary: "what a null becomes; for float32 columns rounded to float32"}},
			Takes: "int64, float32, float64", Yields: "the same",
			Nulls:  "become `value`; from here on there are none",
			Lists:  "null elements become `value`; a null list stays null, which is an empty list",
			Errors: "`value` is not whole for an int64 column, or does not fit float32 for a float32 column",
			Source: "TorchArrow `fill_null`; Piper and MiniPipe FillMissing; NVTabular FillMissing",
		},
		{
			Name: fillMedianOperator, apply: applyFillMedian,
			Summary: "Replaces a null by the median of the other values: the value of rank floor((n - 1) / 2), counted from " +
				"0, if a column of a partition, and the whole, have at most 2,048 distinct values; otherwise a value " +
				"of the column whose rank differs from that by less than 1 % of n, and by less than 0.1 % as a rule. " +
				"Real numbers count as the nearest float32. It becomes `fill_null` with that constant.",
			Params: []Param{{Name: statisticsParameter, Type: ParamText, Summary: "one of the document's `statistics`: the " +
				"quantile 0.5 of the value that the operator takes"}},
			Takes: "int64, float32, float64", Yields: "the same",
			Nulls: "become the median; from here on there are none",
			Lists: "refused",
			Errors: "statistics that lack the value, or have no finite value of it; the median of an int64 column is " +
				"2^53 or beyond",
			Source: "NVTabular FillMedian, which takes the mean of the two middle values of an even number; a median that is " +
				"one of the values is ours",
		},
		{
			Name: "fill_nan", Unit: program.UnitFillNaN, apply: applyFillNaN,
			Summary: "Replaces a NaN by a constant, whatever its sign and payload. A NaN is a value and not a null, " +
				"as in Polars and Spark: pandas and NVTabular, which count it as a null, need `fill_null` and " +
				"`fill_nan` here. A NaN that ends in a dense feature or in the label is refused: put `fill_nan` " +
				"behind what makes it, or write `nan: keep` in the group.",
			Params: []Param{{Name: "value", Type: ParamNumber, Summary: "what a NaN becomes; for float32 columns " +
				"rounded to float32"}},
			Takes: "int64, float32, float64; int64 has no NaN, and passes as it is", Yields: "the same",
			Nulls:  "stay null",
			Lists:  "element by element",
			Errors: "`value` does not fit float32 for a float32 column",
			Source: "Polars `fill_nan`; Spark `nanvl`; NVTabular FillMissing and pandas `fillna`, which fill nulls too",
		},
		{
			Name: "clamp", Unit: program.UnitClamp, apply: applyClamp,
			Summary: "Bounds values: below `min` gives `min`, above `max` gives `max`. `clamp: {min: 0}` is Piper's " +
				"Neg2Zero.",
			Params: []Param{
				{Name: "min", Type: ParamNumber, Optional: true, Summary: "lower bound; none when left out"},
				{Name: "max", Type: ParamNumber, Optional: true, Summary: "upper bound; none when left out"},
			},
			Takes: "int64, float32, float64", Yields: "the same",
			Nulls: "stay null",
			Lists: "element by element",
			Errors: "neither bound is given; `min` > `max`; a bound is not whole for an int64 column or does not fit " +
				"float32 for a float32 column. A NaN passes, and so does -0 at a bound of 0; an infinity becomes the " +
				"bound",
			Source: "TorchArrow `clamp_list` (std::clamp); for float32 columns the bounds are rounded to float32",
		},
		{
			Name: "log", Unit: program.UnitLog, apply: applyLog,
			Summary: "The correctly rounded float32 of ln(x + `add`), where x + `add` is rounded once in float32.",
			Params: []Param{{Name: "add", Type: ParamReal, Default: Real(0),
				Summary: "added first; rounded to float32"}},
			Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
			Nulls: "stay null",
			Lists: "refused",
			Errors: "ln(0) is -Inf and ln of a negative number is NaN (7fc00000h): values, not errors, " +
				"but a NaN is refused in dense: clamp first, or put `fill_nan` behind",
			Source: "PreSto II-C, Piper Logarithm; TorchArrow `log` (which rounds as its C library does)",
		},
		{
			Name: "bucketize", Unit: program.UnitBucketize, apply: applyBucketize,
			Summary: "The number of the bucket that a value falls into, 0 to the number of borders.",
			Params: []Param{
				{Name: "borders", Type: ParamBorders,
					Summary: "a list of numbers that does not decrease, or `{log_spaced: {from, to, count}}`"},
				{Name: "side", Type: ParamChoice, Default: Text("left"), Choices: []string{"left", "right"},
					Summary: "bucket of a value on a border: the one below it (left) or above it (right)"},
				{Name: "nan", Type: ParamChoice, Default: Text("torcharrow"), Choices: []string{"torcharrow", "first",
					"last", "error"}, Summary: "bucket of a NaN; `torcharrow` is 0 with one border, else 1; `error` " +
					"fails the split"},
				{Name: "compare", Type: ParamChoice, Default: Text("float32"), Choices: []string{"float32", "float64",
					"int64"}, Summary: "type in which value and border are compared"},
			},
			Takes: "int64, float32, float64, converted to `compare` (nearest, ties to even); `int64` takes int64 " +
				"alone",
			Yields: "int64",
			Nulls:  "stay null",
			Lists:  "element by element",
			Errors: "no borders; borders that decrease, are no number, or do not fit `compare`; `compare: int64` " +
				"with a border that is not whole, with log_spaced borders or with a column that is not int64",
			Source: "TorchArrow `bucketize` (float32, left: equal borders as there); `side: right` is NVTabular's " +
				"Bucketize and np.digitize, with `compare: float64`. `compare: int64` is TorchArrow's for lists of " +
				"whole numbers",
		},
		{
			Name: "sigrid_hash", Unit: program.UnitSigridHash, apply: applySigridHash,
			Summary: "Hashes an id into [0, `max`).",
			Params: []Param{
				{Name: "salt", Type: ParamInteger, Default: Int(0), Min: anyInteger, Summary: "changes the hash"},
				{Name: "max", Type: ParamInteger, Min: 1,
					Summary: "number of ids that come out: the rows of the embedding table"},
			},
			Takes: "int64", Yields: "int64 in [0, `max`)",
			Nulls:  "stay null",
			Lists:  "element by element",
			Errors: "`max` is not above 0",
			Source: "TorchArrow `sigrid_hash`; PreSto algorithm 2",
		},
		{
			Name: "positive_modulus", Unit: program.UnitPositiveModulus, apply: applyPositiveModulus,
			Summary: "The modulus that is never negative, in [0, `modulus`).",
			Params:  []Param{{Name: "modulus", Type: ParamInteger, Min: 1, Summary: "number of ids that come out"}},
			Takes:   "int64", Yields: "int64 in [0, `modulus`)",
			Nulls:  "stay null",
			Lists:  "element by element",
			Errors: "`modulus` is not above 0",
			Source: "DPP PositiveModulus, Piper and MiniPipe Modulus; no public exact definition: floor modulus is " +
				"ours",
		},
		{
			Name: "hex_to_int", Unit: program.UnitHexToInt, apply: applyHexToInt,
			Summary: "Reads 1 to 8 hexadecimal digits as an unsigned 32-bit number.",
			Takes:   "bytes", Yields: "int64 in [0, 2^32)",
			Nulls: "stay null; an empty string becomes null",
			Lists: "element by element",
			Errors: "any other text fails the split. Criteo's text rows need no hex_to_int: their ids are read by " +
				"the decoder",
			Source: "Piper and MiniPipe Hex2Int, read strictly ([0-9a-fA-F]{1,8}): ours",
		},
		{
			Name: "hash_bytes", Unit: program.UnitHashBytes, apply: applyHashBytes,
			Summary: "Hashes the bytes of a value to an id, so that text can serve as a category. `xxh3` is XXH3 of 64 bits " +
				"with the seed 0. `murmur3_32` is Spark's `hash` of a string, sign-extended. `farmhash64` is FarmHash's " +
				"Fingerprint64, which TensorFlow's `string_to_hash_bucket_fast` and BigQuery's `FARM_FINGERPRINT` use.",
			Params: []Param{{Name: "function", Type: ParamChoice, Choices: []string{"xxh3", "murmur3_32", "farmhash64"},
				Summary: "hash function"}},
			Takes: "bytes: text, enumerations, JSON, BSON, UUID",
			Yields: "int64, also negative: unsigned hashes are read as int64; for `murmur3_32` an int32. End with " +
				"`positive_modulus` or `sigrid_hash`",
			Nulls: "stay null; an empty string has a hash",
			Lists: "element by element",
			Errors: "DECIMAL, FLOAT16 and INTERVAL kept as bytes are refused, since equal numbers may have different bytes. " +
				"Text is hashed as it is: nothing is trimmed, normalised or checked to be UTF-8. TensorFlow takes its " +
				"remainder of the unsigned hash: `positive_modulus` is the same only for a power of two",
			Source: "the xxHash specification; Spark's `Murmur3Hash` (seed 42; each byte behind the last word of four is a " +
				"signed word of its own); FarmHash. The choice of `xxh3` is ours",
		},
		timeOperator("to_seconds", "seconds", applyToSeconds),
		timeOperator("to_days", "days", applyToDays),
		{
			Name: "decimal", Unit: program.UnitDecimal, apply: applyDecimal,
			Summary: "Reads a DECIMAL: its unscaled integer divided by ten to the power of its scale, rounded once to " +
				"`float32` or `float64`, or the unscaled integer itself as `int64`.",
			Params: []Param{{Name: "to", Type: ParamChoice, Choices: []string{"float32", "float64", "int64"},
				Summary: "kind of the number"}},
			Takes: "DECIMAL of at most 76 digits, kept as INT32, INT64, BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY",
			Yields: "float32 or float64, the nearest, ties to even; beyond the largest float32 an infinity. int64: the " +
				"unscaled integer, exactly",
			Nulls: "stay null; for decimals kept as integers `fill_null` may come first, with an unscaled integer",
			Lists: "element by element",
			Errors: "the column is not a DECIMAL, or, for `int64`, partitions differ in its scale; a value of no " +
				"byte or more than 32 bytes, or, for `int64`, beyond int64, fails the split. Without `decimal`, a " +
				"DECIMAL is read as by `decimal: float32` where it is not an id",
			Source: "Parquet's DECIMAL; one rounding is ours",
		},
		{
			Name: "fixed_length", Unit: program.UnitFixedLength, apply: applyFixedLength, check: checkFixedLength,
			Summary: "Makes `length` neighbouring dense columns of a list of `length` numbers, as embeddings are kept. The " +
				"columns of a feature `x` are named `x.0`, `x.1` and so on. It ends the operators of a dense list.",
			Params: []Param{
				{Name: "length", Type: ParamInteger, Min: 1, Summary: "values of every list"},
				{Name: "pad", Type: ParamReal, Optional: true, Summary: "fills up shorter lists, and null lists; rounded to " +
					"float32. When left out, every list must have `length` values"},
			},
			Takes:  "lists of float32; of int64 and float64, which become float32 (nearest, ties to even)",
			Yields: "float32, `length` for every row",
			Nulls:  "a null list, and a list that holds a null (fill it first), have no values",
			Lists:  "lists only",
			Errors: "the column is no list, or a map; another operator follows; the group is not `dense`. A longer list " +
				"(`firstx` cuts it), or a shorter one without `pad`, fails the split with its row",
			Source: "ours; NVTabular's ListSlice with `pad`, Petastorm's fixed shapes",
		},
		{
			Name: "onehot", Unit: program.UnitOneHot, apply: applyOneHot, check: checkOneHot,
			Summary: "Makes `classes` neighbouring dense columns of a value: 1 for its class, and 0 for the others. The " +
				"columns of a feature `x` are named `x.0`, `x.1` and so on. The class of an id is its number, and an id that is " +
				"not a class has none. With `lower` and `upper` the value is a real number, and its class the part " +
				"that holds it of `classes` equal parts of that range: trunc((x - `lower`) / ((`upper` - `lower`) / " +
				"`classes`)), each operation rounded to float32; `upper` itself is of the last class, and what lies " +
				"outside is of class 0. It ends the operators of a dense feature.",
			Params: []Param{
				{Name: "classes", Type: ParamInteger, Min: 1, Summary: "number of columns, at most 4096"},
				{Name: "lower", Type: ParamReal, Optional: true, Summary: "where the range of class 0 begins; rounded to " +
					"float32. When left out, values are ids"},
				{Name: "upper", Type: ParamReal, Optional: true, Summary: "where the range of the last class ends; rounded to " +
					"float32"},
			},
			Takes: "int64; with `lower` and `upper` float32, and int64 and float64, which become float32 (nearest, ties to " +
				"even)",
			Yields: "float32, `classes` for every row",
			Nulls:  "are of no class",
			Lists:  "refused",
			Errors: "the group is not `dense`; another operator follows; real numbers without `lower` and `upper`; one bound " +
				"without the other; bounds that do not ascend, or with no float32 between them. A NaN is of class 0",
			Source: "DPP Onehot; no public exact definition: ids outside having no class is ours, as caffe2's " +
				"`BatchOneHot` has it of values without a match. The ranges are RAP's, which does not define a NaN " +
				"and has `upper` in class 0",
		},
		{
			Name: "zero_extend", Unit: program.UnitZeroExtend, apply: applyZeroExtend,
			Summary: "Re-reads an id as its low 32 bits, unsigned: for files that hold unsigned ids in an int32 " +
				"column.",
			Takes: "int64", Yields: "int64 in [0, 2^32)",
			Nulls:  "stay null",
			Lists:  "element by element",
			Errors: "none",
			Source: "ours; RAP's and NVTabular's Parquet files of Criteo need it",
		},
		{
			Name: "firstx", Unit: program.UnitFirstX, apply: applyFirstX,
			Summary: "Keeps the first `n` elements of a list.",
			Params:  []Param{{Name: "n", Type: ParamInteger, Min: 0, Summary: "elements to keep; 0 keeps none"}},
			Takes:   "lists of int64, float32, float64", Yields: "the same",
			Nulls:  "a null list stays null",
			Lists:  "lists only",
			Errors: "the column is no list; `n` is below 0",
			Source: "TorchArrow `firstx`; DPP FirstX",
		},
		{
			Name: "logit", Unit: program.UnitLogit, apply: applyLogit, check: checkLogit,
			Summary: "The correctly rounded float32 of ln(t / (1 - t)), where t is the value clamped to [`eps`, 1 - `eps`].",
			Params: []Param{{Name: "eps", Type: ParamReal, Default: Real(1e-6),
				Summary: "rounded to float32, and so is 1 - `eps`; at most 0.5. Below 0: nothing is clamped"}},
			Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
			Nulls: "stay null",
			Lists: "refused",
			Errors: "`eps` is above 0.5. A NaN stays one (7fc00000h). Of 0 it is -Inf and of 1 +Inf where the clamp " +
				"leaves them, and of what lies outside [0, 1] it is NaN: values, not errors",
			Source: "DPP Logit; caffe2 `Logit` (`eps` 1e-6), RAP (1e-5), ATen (`eps` below 0), which round each step; " +
				"one rounding is ours",
		},
		{
			Name: "box_cox", Unit: program.UnitBoxCox, apply: applyBoxCox, check: checkBoxCox,
			Summary: "The correctly rounded float32 of (t^`lambda1` - 1) / `lambda1`, or of ln t where `lambda1` is 0. " +
				"With mode `caffe2`, t is the value plus `lambda2`, rounded once to float32, but 1e-6 if that is below " +
				"1e-6. With mode `rap`, t is the value, and values that are not above 0 stay as they are.",
			Params: []Param{
				{Name: "lambda1", Type: ParamReal, Summary: "the power; rounded to float32"},
				{Name: "lambda2", Type: ParamReal, Default: Real(0),
					Summary: "added first; rounded to float32; 0 with mode `rap`"},
				{Name: "mode", Type: ParamChoice, Default: Text("caffe2"), Choices: []string{"caffe2", "rap"},
					Summary: "which number is transformed"},
			},
			Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
			Nulls: "stay null",
			Lists: "refused",
			Errors: "`lambda2` with mode `rap`. A NaN stays one (7fc00000h); of 1 it is a zero with the sign of " +
				"`lambda1`; a result beyond float32 is an infinity: values, not errors",
			Source: "DPP BoxCox; caffe2 `BatchBoxCox`, RAP `boxcox`, which round each step; one rounding is ours",
		},
		{
			Name: "normalize", Unit: program.UnitNormalize, apply: applyNormalize, check: checkNormalize,
			Summary: "The correctly rounded float32 of (x - `mean`) / `deviation`, or of x - `mean` where `deviation` is 0. x " +
				"is a float32, `mean` and `deviation` are float64, and nothing is rounded between.",
			Params: []Param{
				{Name: "mean", Type: ParamReal, Optional: true, Summary: "subtracted"},
				{Name: "deviation", Type: ParamReal, Optional: true, Summary: "divides; at least 0"},
				{Name: statisticsParameter, Type: ParamText, Optional: true, Summary: "instead of both, one of the document's " +
					"`statistics`: the mean and the deviation of the value that the operator takes"},
			},
			Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
			Nulls: "stay null",
			Lists: "refused",
			Errors: "`deviation` is below 0; a constant that is neither 0 nor in the range of normal float32 numbers; " +
				"statistics that lack the value, or have fewer than two finite values of it. A NaN " +
				"stays one (7fc00000h), and an infinity itself",
			Source: "NVTabular `Normalize`, which rounds each step in float64; one rounding is ours",
		},
		{
			Name: "min_max", Unit: program.UnitMinMax, apply: applyMinMax, check: checkMinMax,
			Summary: "The correctly rounded float32 of (x - `min`) / (`max` - `min`), or of x / 2x where both are one number. " +
				"x is a float32, `min` and `max` are float64, and nothing is rounded between. Nothing is clamped.",
			Params: []Param{
				{Name: "min", Type: ParamReal, Optional: true, Summary: "becomes 0"},
				{Name: "max", Type: ParamReal, Optional: true, Summary: "becomes 1; at least `min`"},
				{Name: statisticsParameter, Type: ParamText, Optional: true, Summary: "instead of both, one of the document's " +
					"`statistics`: the least and the greatest of the values that the operator takes"},
			},
			Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
			Nulls: "stay null",
			Lists: "refused",
			Errors: "`max` is below `min`; a bound that is neither 0 nor in the range of normal float32 numbers; statistics " +
				"that lack the value, or have no finite value of it. A NaN stays " +
				"one (7fc00000h), and an infinity itself. With equal bounds the result is 0.5, and NaN of 0, infinities and " +
				"NaN",
			Source: "NVTabular `NormalizeMinMax`, which rounds each step in float64; one rounding is ours",
		},
		{
			Name: "ngram", Unit: program.UnitNGram, apply: applyNGram, check: checkNGram,
			Summary: "Replaces a list by one id for every window of `n` consecutive ids. A window's ids are folded by the " +
				"hash of `sigrid_hash` before its modulus: the first id with the salt 0, each further one with the hash " +
				"so far as its salt.",
			Params: []Param{
				{Name: "n", Type: ParamInteger, Min: 1, Alone: true, Summary: "ids of a window, at most 16"},
				{Name: "mode", Type: ParamChoice, Default: Text("fold"), Choices: []string{"fold", "rap"},
					Summary: "`rap` lists the ids of all windows instead, one window behind the other"},
			},
			Takes: "lists of int64", Yields: "lists of int64; end with `sigrid_hash` or `positive_modulus`",
			Nulls: "a null list stays null",
			Lists: "lists only; a list that is shorter than `n` becomes empty, with mode `rap` it stays as it is",
			Errors: "the column is no list; `n` is not 1 to 16; mode `rap` twice in a chain, or more than 1048576 ids in a " +
				"list after it; the ids have scores, which belong to single ids: say `scores: drop`",
			Source: "DPP NGram; no public exact definition: the fold is ours. RAP `ngram` lists the ids of the windows and " +
				"shortens `n` to the list's length",
		},
		{
			Name: "list_slice", Unit: program.UnitListSlice, apply: applyListSlice,
			Summary: "Keeps a part of a list, which is Python's `list[start:end]`: numbers below 0 count from the list's end. " +
				"With `pad`, lists whose part is shorter are filled up at their end, so that all lists have one length.",
			Params: []Param{
				{Name: "start", Type: ParamInteger, Default: Int(0), Min: anyInteger, Summary: "first element of the part"},
				{Name: "end", Type: ParamInteger, Optional: true, Min: anyInteger,
					Summary: "the element behind the part; the list's end when left out"},
				{Name: "pad", Type: ParamNumber, Optional: true, Summary: "what fills lists up, to at most 1024 elements; " +
					"nothing " +
					"does when left out"},
			},
			Takes: "lists of int64, float32, float64", Yields: "the same",
			Nulls: "a null list stays null; with `pad` it counts as an empty one, and so does a list with a null element",
			Lists: "lists only",
			Errors: "the column is no list; `pad` and a part whose length depends on the list, as from 0 to -1; `pad` is not " +
				"whole for an int64 column; the ids have scores: say `scores: drop`",
			Source: "NVTabular `ListSlice`: its one number n is `end: n`, or `start: n` where it is below 0, and its " +
				"`pad_value` is `pad`",
		},
		{
			Name: localHourName, Unit: program.UnitLocalHour, apply: applyLocalHour, check: checkLocalHour,
			Summary: "The hour of the day, 0 to 23, of a time in seconds since 1970-01-01 00:00:00 UTC, at a place: " +
				"floorMod(t + offset, 86400) / 3600. `zone` is a name of the IANA database, whose rules for the years " +
				"1900 to 2100 become a table in the program and so a part of the job's identity; the first offset of the " +
				"table holds before, and the last behind.",
			Params: []Param{
				{Name: "zone", Type: ParamText, Optional: true, Summary: "name of a time zone, as `Europe/Berlin`"},
				{Name: "offset", Type: ParamText, Optional: true,
					Summary: "instead of `zone`, clocks that never change: hours and minutes ahead of UTC, as `+02:00`"},
				{Name: "changes", Type: ParamTable, Optional: true,
					Summary: "seconds since 1970 to offsets in seconds, from -2^63 on: the table of `zone`. A control plane " +
						"writes it into the pipeline of a job, so that all machines use the same"},
			},
			Takes: "int64: seconds", Yields: "int64 in [0, 24)",
			Nulls: "stay null",
			Lists: "element by element",
			Errors: "a zone that neither the machine nor the program knows; neither `zone`, `offset` nor `changes`; an " +
				"offset of a day or more",
			Source: "DPP GetLocalHour; Velox `hour(timestamp, zone)`",
		},
		{
			Name: "map_id", Unit: program.UnitMapID, apply: applyMapID,
			Summary: "Replaces an id by the value of its key in a table, and by `default` if the table lacks the id. A list " +
				"is a table whose keys are 0, 1, 2 and so on.",
			Params: []Param{
				{Name: "table", Type: ParamTable, Summary: "`{key: value}` or a list of values, at most 1048576"},
				{Name: "default", Type: ParamInteger, Default: Int(0), Min: anyInteger,
					Summary: "what an id becomes that the table lacks"},
			},
			Takes: "int64", Yields: "int64: the values and `default`",
			Nulls:  "stay null",
			Lists:  "element by element",
			Errors: "an empty table; a key twice; a key or value that is no whole number",
			Source: "DPP MapId; RAP `mapid` takes lists alone, gives 0 behind their end, and is undefined below 0: `default` " +
				"for all ids that the table lacks is ours",
		},
		{
			Name: "cartesian", Unit: program.UnitCartesian, Inputs: 2, check: checkCartesian, combine: combineCartesian,
			Summary: "Takes two inputs and makes an id of every pair of an id of the first and an id of the second, " +
				"row-major: the hash that `sigrid_hash` computes before its modulus, of the second id with the first as " +
				"its salt.",
			Params: []Param{
				{Name: "max_length", Type: ParamInteger, Min: 1, Default: Int(1024),
					Summary: "most ids of a row, at most 65536"},
				{Name: "overflow", Type: ParamChoice, Choices: []string{"cut", "fail"}, Default: Text("cut"),
					Summary: "what becomes of a row with more: `cut` keeps the first ids, `fail` refuses the row"},
			},
			Takes:  "two inputs of int64, scalars or lists",
			Yields: "int64: a scalar if both inputs are scalars, else lists; end with `sigrid_hash` or `positive_modulus`",
			Nulls:  "a null, or a list that holds a null, has no ids, so that the row makes none",
			Lists:  "a scalar is a list of one id",
			Errors: "an input is not int64; `max_length` is not 1 to 65536; with `overflow: fail`, a row that makes more ids",
			Source: "DPP Cartesian; no public exact definition: order, hash and bound are ours",
		},
		{
			Name: "id_list_transform", Unit: program.UnitIDListTransform, Inputs: 2, combine: combineIDListTransform,
			Summary: "Takes two inputs and keeps the ids of the first that are in the second, each once, in the order in " +
				"which they first occur: the intersection of two lists.",
			Takes:  "two inputs of int64, scalars or lists",
			Yields: "lists of int64",
			Nulls:  "a null, or a list that holds a null, has no ids, so that the row keeps none",
			Lists:  "a scalar is a list of one id",
			Errors: "an input is not int64",
			Source: "DPP IdListTransform; Presto's and Velox' `array_intersect`: order and single ids are theirs",
		},
		{
			Name: "compute_score", Unit: program.UnitComputeScore, Inputs: 2, MaxInputs: 4, check: checkComputeScore,
			combine: combineComputeScore,
			Summary: "Compares two lists of ids, which may have scores, and makes one number a row. The functions are " +
				"TorchArrow's. `has_id_overlap`: 1 if an id is in both lists, else 0. `id_overlap_count`: how many ids are in " +
				"both, each as often as in the list that has it less often; `get_max_count`: as often as in the list that has it " +
				"more often. `get_jaccard_similarity`: c / (n + m - c) of the overlap count c and the lists' lengths, NaN if " +
				"both are empty. `get_cosine_similarity`: of the sums of the scores of each id. `get_score_sum`, " +
				"`get_score_min`, `get_score_max`: of the matching scores whose ids are in the first list, 0 without one.",
			Params: []Param{
				{Name: "function", Type: ParamChoice, Choices: scoreFunctionNames(), Summary: "what is computed"},
				{Name: "zero_norm", Type: ParamChoice, Choices: []string{"fail", "zero"}, Default: Text("fail"),
					Summary: "what becomes of a row without a cosine, since the scores of a side have the norm 0, as of an empty " +
						"list: `fail` fails the split, `zero` makes it 0"},
			},
			Takes: "ids, matching ids; `get_score_sum`, `get_score_min` and `get_score_max`: ids, matching ids, matching " +
				"scores; `get_cosine_similarity`: ids, scores, matching ids, matching scores. Ids are int64; scores float32, or " +
				"int64 and float64, which become float32",
			Yields: "float32: the nearest to the exact value of the whole expression, ties to even. No order of ids changes it",
			Nulls: "a null, or a list that holds a null, has no ids or scores; a side whose ids or scores are none has " +
				"neither. The result is never null",
			Lists: "a scalar is a list of one value",
			Errors: "another number of inputs than the function takes; inputs that are no numbers. A row with another number " +
				"of scores than ids, or, with `zero_norm: fail`, with a norm of 0, fails the split. A NaN among the scores that " +
				"count makes the result NaN (7fc00000h), and so does an infinite score of a cosine",
			Source: "DPP ComputeScore; TorchArrow `rec/compute_score.h`, which rounds each step in the order of a hash table: " +
				"one rounding is ours, and so are `zero`, which it refuses, and the rule for nulls, which it hands on",
		},
		{
			Name: "enumerate", Unit: program.UnitEnumerate, apply: applyEnumerate,
			Summary: "Gives each id of a list its position as its score: 0, 1, 2 and so on. The scores become the weights of " +
				"the ids (`kjt.weights`), or numbers by `scores`.",
			Takes: "int64", Yields: "the same ids, with scores: float32, the position rounded to the nearest, ties to even",
			Nulls:  "a null, or a list that holds a null, becomes a list without ids",
			Lists:  "takes lists; a scalar is a list of one id",
			Errors: "a value that is not int64. Scores that the ids have already are left behind",
			Source: "DPP Enumerate, which is \"similar to Python enumerate()\"; pairs of position and id as ids with scores " +
				"are ours",
		},
		{
			Name: "with_scores", Unit: program.UnitWithScores, Inputs: 2, combine: combineWithScores,
			Summary: "Takes two inputs, ids and their scores, and puts them together. The scores are as many as the ids of " +
				"their row, or one for all of them, as `compute_score` makes one. They become the weights of the ids " +
				"(`kjt.weights`), or numbers by `scores`.",
			Takes:  "ids, scores. Ids are int64; scores float32, or int64 and float64, which become float32",
			Yields: "the ids, with scores",
			Nulls: "a null, or a list that holds a null, has no ids or scores; a row without ids or without scores becomes a " +
				"list without ids",
			Lists: "takes lists; ids that are a scalar are a list of one id, and a score that is a scalar is that of all ids " +
				"of its row",
			Errors: "inputs that are no numbers; scores that are ids with scores. A row with several scores and another " +
				"number of ids fails the split",
			Source: "ours; the result is the id_score_list of DPP's rows",
		},
		{
			Name: "scores", Unit: program.UnitScores, apply: applyScores,
			Summary: "Takes the scores of ids as numbers, for `compute_score`, `with_scores` or the operators of lists of " +
				"numbers. Operators that take ids take ids with scores too, and leave the scores behind.",
			Takes:  "ids with scores, as `enumerate`, `with_scores` and maps make them",
			Yields: "lists of float32, as long as those of the ids",
			Nulls:  "there are none",
			Lists:  "takes lists",
			Errors: "ids without scores; behind `ngram` and `list_slice`, which move ids",
			Source: "ours",
		},
		{
			Name: "hash_cross", Unit: program.UnitHashCross, Inputs: 2, MaxInputs: program.MaxInputs,
			combine: combineHashCross,
			Summary: "Takes several inputs and hashes an id of each together into [0, `buckets`): the exclusive or of their " +
				"hashes, each SplitMix64's finaliser of the id's 64 bits, and the remainder of that unsigned number. The order " +
				"of the inputs does not count, and equal ids cancel: `cartesian` has neither property.",
			Params: []Param{{Name: "buckets", Type: ParamInteger, Min: 1,
				Summary: "number of ids that come out: the rows of the embedding table"}},
			Takes: "2 to 8 inputs of int64, one value a row", Yields: "int64 in [0, `buckets`)",
			Nulls:  "null if one of the inputs is",
			Lists:  "refused",
			Errors: "an input is not int64, or is a list; `buckets` is not above 0",
			Source: "NVTabular `HashedCross`, whose hash on CPUs is pandas' of the id and the row's index: ours leaves the " +
				"index out, so that a row's place does not matter. pandas hashes an int32 as 32 bits: `zero_extend` first gives " +
				"its hashes of ids below 0",
		},
		{
			Name: "hash_bucket", Unit: program.UnitHashBucket, apply: applyHashBucket,
			Summary: "Hashes an id into [0, `buckets`): SplitMix64's finaliser of the id's 64 bits, and the remainder of that " +
				"unsigned number.",
			Params: []Param{{Name: "buckets", Type: ParamInteger, Min: 1,
				Summary: "number of ids that come out: the rows of the embedding table"}},
			Takes: "int64", Yields: "int64 in [0, `buckets`)",
			Nulls:  "stay null",
			Lists:  "element by element",
			Errors: "`buckets` is not above 0",
			Source: "NVTabular `HashBucket`, without the row's index that it mixes into the hash on CPUs; pandas " +
				"`hash_array`",
		},
		{
			Name: wasmOperator, Unit: program.UnitWasm, Inputs: 1, MaxInputs: program.MaxInputs,
			check: checkWasm, combine: combineWasm,
			Summary: "Calls an exported function of a WebAssembly module for each row. What it yields depends on the row's " +
				"inputs only: memory and globals of the module are as at first before each row. A NaN that arithmetic makes is " +
				"the canonical one (7fc00000h, 7ff8000000000000h), so the bits are the same everywhere.",
			Params: []Param{
				{Name: "module", Type: ParamText, Summary: "name of the module, whose file `--wasm NAME=FILE` gives, or in " +
					"Python `modules={NAME: FILE}`"},
				{Name: "function", Type: ParamText, Summary: "name of the exported function"},
				{Name: "in", Type: ParamWords, Choices: wasmKindNames(),
					Summary: "kinds of its parameters, one an input: int64 is i64, float32 f32 and float64 f64"},
				{Name: "out", Type: ParamChoice, Choices: wasmKindNames(), Summary: "kind of its result"},
			},
			Takes: "1 to 8 inputs, one value a row; int64 becomes float32 or float64, and float32 and float64 each other, " +
				"where `in` says so (nearest, ties to even)",
			Yields: "`out`; ids are not bounded, so end keys with `positive_modulus`, `clamp` or a hash",
			Nulls:  "null if one of the inputs is, and the function is not called",
			Lists:  "refused",
			Errors: "the module is not at hand, or is refused: it is damaged, or larger than the limits, imports something, " +
				"or the function is not exported with these kinds, calls itself, or calls through a table. A row for which the " +
				"function traps fails the split: division by 0, an address outside the memory, more than 131072 instructions",
			Source: "ours; WebAssembly 1.0 with sign extension and conversions that do not trap",
		},
		{
			Name: targetEncodingOperator, apply: applyTargetEncoding, check: checkTargetEncoding,
			Summary: "Replaces a key by the mean of the label over the rows that have the key, smoothed towards the mean of " +
				"all rows: the float32 nearest to (sum + `p_smooth` * mean) / (rows + `p_smooth`). With `mode: train`, sum and " +
				"rows are those of the other folds than the row's, so that no row's feature holds its own label; with `mode: " +
				"serve`, those of all rows. The host looks keys up, behind the drive, on every engine. The fold of a row is the " +
				"integer part of `folds` * `h(h(key, 3), seed)` / 2^64, where `h` is the hash of `sigrid_hash` " +
				"before its modulus and the key is `h(number of the row in its partition, xxh3(name of the " +
				"partition))`, as a sampling of rows has it.",
			Params: []Param{
				{Name: statisticsParameter, Type: ParamText, Summary: "one of the document's `statistics`: the labels of the " +
					"keys by folds, which `millrace dataset summarize --pipeline` makes"},
				{Name: "mode", Type: ParamChoice, Default: Text("train"), Choices: []string{"train", "serve"},
					Summary: "whose labels count: `train`, those of the other folds; `serve`, all"},
				{Name: "folds", Type: ParamInteger, Default: Int(3), Min: targetencoding.MinFolds,
					Summary: fmt.Sprintf("how many folds the rows are divided into; at most %d", targetencoding.MaxFolds)},
				{Name: "p_smooth", Type: ParamReal, Default: Int(20), Summary: "weight of the mean of all rows; at least 0"},
				{Name: "seed", Type: ParamInteger, Default: Int(42), Min: anyInteger, Summary: "draws other folds"},
			},
			Takes: "int64, one value a row; the last operator of a dense feature", Yields: "float32",
			Nulls: "become the mean of all rows, and so do keys that no row of the statistics had",
			Lists: "refused",
			Errors: "the pipeline has no label; statistics that lack the value, or were made with another label, other " +
				"operators, folds or seed, or of no rows. The pass that makes them refuses labels that are not whole numbers " +
				"up to 2^24, and more than 131072 keys",
			Source: "NVTabular TargetEncoding, whose folds are random; folds by the names of rows, and one rounding, are ours",
		},
		{
			Name: vocabularyOperator, apply: applyVocabulary,
			Summary: "Replaces an id by its place in a vocabulary that `millrace vocabulary build` made of the data: Piper's " +
				"ApplyVocab. The drive looks ids up if its memory holds the table; else the host does, behind the drive.",
			Params: []Param{{Name: "name", Type: ParamText, Summary: "one of the document's `vocabularies`"}},
			Takes:  "int64; the last operator of a sparse feature",
			Yields: "int64 from the vocabulary's `base` on, or one of its special ids",
			Nulls:  "become `null_id` if the vocabulary has one and the column has one value a row, and stay null otherwise",
			Lists:  "element by element",
			Errors: "an id that the vocabulary lacks fails the split, unless the vocabulary says `unknown: id`, `bucket` or " +
				"`drop`; a vocabulary that was built with other operators, other rules or without the column is refused",
			Source: "DLRM, Piper and MiniPipe (`order: first_seen`), TorchRec `sparse_to_contiguous`, NVTabular Categorify " +
				"(`order: count`), TFT `vocabulary` (`order: count_text`)",
		},
		{
			Name: "identity", apply: func(*chain, *Op, location) {},
			Summary: "Changes nothing; it says on purpose that a column goes as it is.",
			Takes:   "anything", Yields: "the same",
			Nulls: "stay null", Lists: "stay as they are", Errors: "none",
			Source: "ours",
		},
	}
}

// timeOperator returns the entry of an operator that counts times in a unit.
func timeOperator(name, unit string, apply func(c *chain, o *Op, a location)) Operator {
	return Operator{
		Name: name, apply: apply,
		Summary: "Counts a time in " + unit + ", rounded towards minus infinity: TIMESTAMP, DATE and INT96 since " +
			"1970-01-01, TIME since midnight. Nothing is shifted by a time zone.",
		Params: []Param{{Name: "unit", Type: ParamChoice, Default: Text("file"),
			Choices: []string{"file", "seconds", "millis", "micros", "nanos", "days"},
			Summary: "what the integers of the column count; `file`: what the file's annotation says"}},
		Takes:  "int64: TIMESTAMP, DATE, TIME, or any integers whose `unit` is given; INT96",
		Yields: "int64. A float32 has 24 bits, which hold days but not the seconds of today: end with `bucketize`, or hash",
		Nulls:  "stay null; a constant of `fill_null` before it counts what the file counts",
		Lists:  "element by element",
		Errors: "the file does not say what the integers count and `unit` is not given; partitions differ in that " +
			"and the operator is not the first, or `unit` is given; `unit` of INT96; the days of a TIME. Days, as " +
			"seconds, beyond int64 fail the split",
		Source: "Parquet's logical types; INT96 as Impala, Hive and Spark write it (Julian day and nanoseconds); ours",
	}
}

// operators is the catalogue by name.
var operators = func() map[string]*Operator {
	m := make(map[string]*Operator)
	list := Catalogue()
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}()

// operatorNames returns the names in the catalogue's order.
func operatorNames() []string {
	var names []string
	for _, o := range Catalogue() {
		names = append(names, o.Name)
	}
	return names
}
