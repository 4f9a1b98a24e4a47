package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/operator/getlocalhour"
	"github.com/millrace/millrace/fpga/operator/mapid"
	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// Operator is the catalogue's entry of an operator, and the functions by which this package applies it.
type Operator struct {
	catalogue.Entry

	// check, apply and combine are Check, Apply and Combine of the entry, as this package calls them.
	check   func(p *problems, o *Op, a location)
	apply   func(c *chain, o *Op, a location)
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

// Catalogue returns the operators, in the order of their names.
func Catalogue() []Operator {
	list := append(entries(), hostOperators()...)
	slices.SortFunc(list, func(a, b Operator) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// hostOperators returns the operators that need more than a chain: statistics, vocabularies, modules, tables that many
// features share, and annotations of columns.
func hostOperators() []Operator {
	return []Operator{
		{
			apply: applyFillMedian,
			Entry: catalogue.Entry{
				Name:    fillMedianOperator,
				Example: "- fill_median: train",
				Reads:   catalogue.As(catalogue.UsedAsUnknown),
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
		},
		{
			apply: applyBucketize,
			Entry: catalogue.Entry{
				Name: "bucketize", Unit: bucketize.Unit,
				Example: "- bucketize: {borders: [0.5, 1, 1.5], side: left}",
				Cost:    catalogue.Costs(1.6),
				Reads:   readsBucketize,
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
				Errors: "no borders; borders that decrease, are not numbers, or do not fit `compare`; `compare: int64` " +
					"with a border that is not whole, with log_spaced borders or with a column that is not int64",
				Source: "TorchArrow `bucketize` (float32, left: equal borders as there); `side: right` is NVTabular's " +
					"Bucketize and np.digitize, with `compare: float64`. `compare: int64` is TorchArrow's for lists of " +
					"whole numbers",
			},
		},
		timeOperator("to_seconds", "seconds", applyToSeconds),
		timeOperator("to_days", "days", applyToDays),
		{
			apply: applyDecimal,
			Entry: catalogue.Entry{
				Name: "decimal", Unit: decimal.Unit,
				Example: "- decimal: float32",
				Reads:   catalogue.As(catalogue.UsedByOperator),
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
		},
		{
			apply: applyNormalize, check: checkNormalize,
			Entry: catalogue.Entry{
				Name: "normalize", Unit: normalize.Unit,
				Example: "- normalize: {mean: 12.5, deviation: 3}",
				Cost:    catalogue.Costs(75),
				Reads:   catalogue.As(catalogue.UsedAsFloat32),
				Summary: "The correctly rounded float32 of (x - `mean`) / `deviation`, or of x - `mean` where `deviation` is 0. " +
					"x is a float32, `mean` and `deviation` are float64, and nothing is rounded between.",
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
		},
		{
			apply: applyMinMax, check: checkMinMax,
			Entry: catalogue.Entry{
				Name: "min_max", Unit: minmax.Unit,
				Example: "- min_max: {min: 0, max: 255}",
				Cost:    catalogue.Costs(75),
				Reads:   catalogue.As(catalogue.UsedAsFloat32),
				Summary: "The correctly rounded float32 of (x - `min`) / (`max` - `min`), or of x / 2x where both are one " +
					"number. x is a float32, `min` and `max` are float64, and nothing is rounded between. Nothing is clamped.",
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
		},
		{
			apply: applyLocalHour, check: checkLocalHour,
			Entry: catalogue.Entry{
				Name: localHourName, Unit: getlocalhour.Unit,
				Example: "- get_local_hour: {zone: Europe/Berlin}",
				Cost:    catalogue.Costs(8),
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
		},
		{
			apply: applyMapID,
			Entry: catalogue.Entry{
				Name: "map_id", Unit: mapid.Unit,
				Example: "- map_id: {table: {5: 1, 7: 2}, default: 0}",
				Cost:    costOfMapID,
				Summary: "Replaces an id by the value of its key in a table, and by `default` if the table lacks the id. A list " +
					"is a table whose keys are 0, 1, 2 and so on.",
				Params: []Param{
					{Name: "table", Type: ParamTable, Summary: "`{key: value}` or a list of values, at most 1048576"},
					{Name: "default", Type: ParamInteger, Default: Int(0), Min: catalogue.AnyInteger,
						Summary: "what an id becomes that the table lacks"},
				},
				Takes: "int64", Yields: "int64: the values and `default`",
				Nulls:  "stay null",
				Lists:  "element by element",
				Errors: "an empty table; a key twice; a key or value that is not a whole number",
				Source: "DPP MapId; RAP `mapid` takes lists alone, gives 0 behind their end, and is undefined below 0: `default` " +
					"for all ids that the table lacks is ours",
			},
		},
		{
			combine: combineWasm, check: checkWasm,
			Entry: catalogue.Entry{
				Name: wasmOperator, Unit: wasm.Unit, Inputs: 1, MaxInputs: program.MaxInputs,
				Example: "- wasm: {module: features, function: add_and_clamp, in: [int64, int64], out: int64}",
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
		},
		{
			apply: applyTargetEncoding, check: checkTargetEncoding,
			Entry: catalogue.Entry{
				Name:    targetEncodingOperator,
				Example: "- target_encoding: {statistics: train, folds: 3, p_smooth: 20}",
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
					{Name: "seed", Type: ParamInteger, Default: Int(42), Min: catalogue.AnyInteger, Summary: "draws other folds"},
				},
				Takes: "int64, one value a row; the last operator of a dense feature", Yields: "float32",
				Nulls: "become the mean of all rows, and so do keys that no row of the statistics had",
				Lists: "refused",
				Errors: "the pipeline has no label; statistics that lack the value, or were made with another label, other " +
					"operators, folds or seed, or of no rows. The pass that makes them refuses labels that are not whole numbers " +
					"up to 2^24, and more than 131072 keys",
				Source: "NVTabular TargetEncoding, whose folds are random; folds by the names of rows, and one rounding, are ours",
			},
		},
		{
			apply: applyVocabulary,
			Entry: catalogue.Entry{
				Name:    vocabularyOperator,
				Example: "- vocabulary: piper",
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
		},
		{
			apply: func(*chain, *Op, location) {},
			Entry: catalogue.Entry{
				Name:    "identity",
				Cost:    catalogue.Costs(0),
				Summary: "Changes nothing; it says on purpose that a column goes as it is.",
				Takes:   "anything", Yields: "the same",
				Nulls: "stay null", Lists: "stay as they are", Errors: "none",
				Source: "ours",
			},
		},
	}
}

// timeOperator returns the entry of an operator that counts times in a unit.
func timeOperator(name, unit string, apply func(c *chain, o *Op, a location)) Operator {
	return Operator{apply: apply, Entry: catalogue.Entry{
		Name: name, Reads: catalogue.As(catalogue.UsedByOperator),
		Example: map[string]string{"seconds": "- to_seconds", "days": "- to_days: {unit: millis}"}[unit],
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
	}}
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
