package pipeline

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/targetencoding"
)

// The entries of this file have no folder of fpga/operator, because each is more or less than one operator of the
// drive:
//
//   - identity has no operator;
//   - fill_median becomes fill_null, with a constant of the document's statistics;
//   - to_seconds and to_days become rescale or int96_time, depending on how the file holds the column;
//   - vocabulary becomes a lookup on the drive or behind it, depending on the drive's memory, by a table of the
//     document;
//   - target_encoding is computed behind the drive, by a table of the document.

// documentOperators returns the operators whose entries are written down here.
func documentOperators() []catalogue.Entry {
	return []catalogue.Entry{
		{
			Apply:   applyFillMedian,
			Name:    fillMedianOperator,
			Example: "- fill_median: train",
			Reads:   catalogue.As(catalogue.UsedAsUnknown),
			Summary: "Replaces a null by the median of the other values: the value of rank floor((n - 1) / 2), counted from " +
				"0, if a column of a partition, and the whole, have at most 2,048 distinct values; otherwise a value " +
				"of the column whose rank differs from that by less than 1 % of n, and by less than 0.1 % as a rule. " +
				"It becomes `fill_null` with that constant.",
			Params: []Param{{Name: StatisticsParameter, Type: ParamText, Summary: "one of the document's `statistics`: the " +
				"quantile 0.5 of the value that the operator takes"}},
			Takes: "int64, float32, float64", Yields: "the same",
			Nulls: "become the median; from here on there are none",
			Lists: "refused",
			Errors: "statistics that lack the value, or have no finite value of it; the median of an int64 column is " +
				"2^53 or beyond",
			Source: "NVTabular FillMedian, which takes the mean of the two middle values of an even number; a median that is " +
				"one of the values is ours",
		},
		timeOperator("to_seconds", "seconds"),
		timeOperator("to_days", "days"),
		{
			Check:   checkTargetEncoding,
			Name:    TargetEncodingOperator,
			Example: "- target_encoding: {statistics: train, folds: 3, p_smooth: 20}",
			Summary: "Replaces a key by the mean of the label over the rows that have the key, smoothed towards the mean of " +
				"all rows: the float32 nearest to (sum + `p_smooth` * mean) / (rows + `p_smooth`). With `mode: train`, sum and " +
				"rows are those of the other folds than the row's, so that no row's feature holds its own label; with `mode: " +
				"serve`, those of all rows. The host looks keys up, behind the drive, on every engine. The fold of a row is the " +
				"integer part of `folds` * `h(h(key, 3), seed)` / 2^64, where `h` is the hash of `sigrid_hash` " +
				"before its modulus and the key is `h(number of the row in its partition, xxh3(name of the " +
				"partition))`, as a sampling of rows has it.",
			Params: []Param{
				{Name: StatisticsParameter, Type: ParamText, Summary: "one of the document's `statistics`: the labels of the " +
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
		{
			Name:    VocabularyOperator,
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
		{
			Apply:   func(catalogue.Chain) {},
			Name:    "identity",
			Cost:    catalogue.Costs(0),
			Summary: "Changes nothing; it says on purpose that a column goes as it is.",
			Takes:   "anything", Yields: "the same",
			Nulls: "stay null", Lists: "stay as they are", Errors: "none",
			Source: "ours",
		},
	}
}

// timeOperator returns the entry of an operator that counts times in a unit.
func timeOperator(name, unit string) catalogue.Entry {
	return catalogue.Entry{
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
	}
}

// checkTargetEncoding checks the parameters that a document gives.
func checkTargetEncoding(c catalogue.Check) {
	if v, ok := c.Given("folds"); ok {
		if n := v.(Number); n.Integer && n.Int > targetencoding.MaxFolds {
			c.Wrong("folds", problem.ErrValue, "%s, want at most %d", n, targetencoding.MaxFolds)
		}
	}
	if v, ok := c.Given("p_smooth"); ok {
		if n := v.(Number); n.Real() < 0 || !n.Finite() {
			c.Wrong("p_smooth", problem.ErrValue, "%s, want a finite number of at least 0", n)
		}
	}
}

// mostMedian bounds the median of integers: statistics hold float64 numbers, and those from 2^53 on may be rounded.
const mostMedian = 1 << 53

// applyFillMedian adds the replacement of nulls by the median of statistics.
func applyFillMedian(c catalogue.Chain) {
	s := c.Statistics()
	if s == nil {
		return
	}
	median, ok := s.Require(c, s.Median, "median", "no value is finite, or the document's numbers were "+
		"made for other operators: name the summary with --statistics again")
	if !ok {
		return
	}
	if c.Kind() != program.Int64 {
		fillnull.Fill(c, Real(median))
		return
	}
	if math.Abs(median) >= mostMedian || median != math.Trunc(median) {
		c.Refuse(problem.ErrStatistics, "the median of %s is %v, want a whole number below 2^53: give the constant "+
			"with fill_null", s.Origin(), median)
		return
	}
	fillnull.Fill(c, Int(int64(median)))
}

// TargetEncodingOperator is the name of the operator that replaces keys by means of the label.
const TargetEncodingOperator = "target_encoding"
