package pipeline_test

import (
	"fmt"

	"github.com/millrace/millrace/sdk/pipeline"
)

// Example_operators builds operators in Go, each by the function of its name, and writes the same as a document. The
// manual of the operators is docs/operators.md.
func Example_operators() {
	whole, fraction := pipeline.Int, pipeline.Real
	group := func(columns []pipeline.Pattern, ops ...pipeline.Op) pipeline.Group {
		return pipeline.Group{Columns: columns, Ops: ops}
	}
	joint := func(as string, inputs []pipeline.Pattern, ops ...pipeline.Op) pipeline.Group {
		return pipeline.Group{As: as, Inputs: inputs, Ops: ops}
	}
	s := &pipeline.Spec{
		Name: "operators",
		Dense: []pipeline.Group{
			group(pipeline.Columns("age"), pipeline.FillMedian("people"), pipeline.BoxCox(fraction(0.5))),
			group(pipeline.Columns("income"), pipeline.Normalize(pipeline.With("statistics", pipeline.Text("people")))),
			group(pipeline.Columns("weight"),
				pipeline.MinMax(pipeline.With("min", whole(0)), pipeline.With("max", whole(9)))),
			group(pipeline.Columns("rate"), pipeline.Logit(pipeline.With("eps", fraction(0.01)))),
			group(pipeline.Columns("kind"), pipeline.OneHot(3)),
			group(pipeline.Columns("embedding"), pipeline.Unpack("float32"), pipeline.FixedLength(8)),
			group(pipeline.Columns("pages"), pipeline.ListLength()),
			group(pipeline.Columns("flag"), pipeline.Identity()),
			group(pipeline.Columns("born"), pipeline.ToDays()),
			group(pipeline.Columns("town"), pipeline.TargetEncoding("towns")),
			joint("alike", pipeline.Columns("seen", "bought"), pipeline.ComputeScore("get_jaccard_similarity")),
			group(pipeline.Columns("words"), pipeline.Enumerate(), pipeline.Scores(), pipeline.FixedLength(4)),
		},
		Sparse: []pipeline.Group{
			group(pipeline.Columns("count"), pipeline.TextToInt(), pipeline.UnsignedModulus(1000)),
			group(pipeline.Columns("time"), pipeline.TextToSeconds(), pipeline.GetLocalHour()),
			group(pipeline.Columns("user"), pipeline.ZeroExtend(), pipeline.PositiveModulus(1000)),
			group(pipeline.Columns("page"), pipeline.FirstX(5), pipeline.HashBucket(100)),
			group(pipeline.Columns("clicks"), pipeline.ListSlice(pipeline.With("start", whole(-9))), pipeline.NGram(2)),
			group(pipeline.Columns("shop"), pipeline.VocabularyLookup("shops")),
			group(pipeline.Columns("region"), pipeline.MapID(pipeline.IDTable{Keys: []int64{7}, Values: []int64{1}})),
			group(pipeline.Columns("answer"),
				pipeline.MapText(pipeline.TextTable{Keys: []string{"no", "yes"}, Values: []int64{0, 1}})),
			group(pipeline.Columns("tags"), pipeline.Split(pipeline.With("separator", pipeline.Text("|"))),
				pipeline.HashBytes("xxh3")),
			joint("pairs", pipeline.Columns("seen", "bought"), pipeline.Cartesian(), pipeline.HashBucket(100)),
			joint("both", pipeline.Columns("seen", "bought"), pipeline.IDListTransform()),
			joint("scored", pipeline.Columns("seen", "scores"), pipeline.WithScores()),
			joint("user_page", pipeline.Columns("user", "page"), pipeline.HashCross(100)),
			joint("own", pipeline.Columns("user"), pipeline.Wasm("own", "half", []string{"int64"}, "int64")),
		},
	}
	fmt.Print(string(s.YAML()))
	// Output:
	// name: operators
	// dense:
	//   - columns: [age]
	//     ops: [fill_median: {statistics: people}, box_cox: {lambda1: 0.5}]
	//   - columns: [income]
	//     ops: [normalize: {statistics: people}]
	//   - columns: [weight]
	//     ops: [min_max: {min: 0, max: 9}]
	//   - columns: [rate]
	//     ops: [logit: {eps: 0.01}]
	//   - columns: [kind]
	//     ops: [onehot: {classes: 3}]
	//   - columns: [embedding]
	//     ops: [unpack: {element: float32}, fixed_length: {length: 8}]
	//   - columns: [pages]
	//     ops: [list_length: {}]
	//   - columns: [flag]
	//     ops: [identity: {}]
	//   - columns: [born]
	//     ops: [to_days: {}]
	//   - columns: [town]
	//     ops: [target_encoding: {statistics: towns}]
	//   - inputs: [seen, bought]
	//     as: alike
	//     ops: [compute_score: {function: get_jaccard_similarity}]
	//   - columns: [words]
	//     ops: [enumerate: {}, scores: {}, fixed_length: {length: 4}]
	// sparse:
	//   - columns: [count]
	//     ops: [text_to_int: {}, unsigned_modulus: {modulus: 1000}]
	//   - columns: [time]
	//     ops: [text_to_seconds: {}, get_local_hour: {}]
	//   - columns: [user]
	//     ops: [zero_extend: {}, positive_modulus: {modulus: 1000}]
	//   - columns: [page]
	//     ops: [firstx: {n: 5}, hash_bucket: {buckets: 100}]
	//   - columns: [clicks]
	//     ops: [list_slice: {start: -9}, ngram: {n: 2}]
	//   - columns: [shop]
	//     ops: [vocabulary: {name: shops}]
	//   - columns: [region]
	//     ops: [map_id: {table: {"7":1}}]
	//   - columns: [answer]
	//     ops: [map_text: {table: {"no": 0, "yes": 1}}]
	//   - columns: [tags]
	//     ops: [split: {separator: "|"}, hash_bytes: {function: xxh3}]
	//   - inputs: [seen, bought]
	//     as: pairs
	//     ops: [cartesian: {}, hash_bucket: {buckets: 100}]
	//   - inputs: [seen, bought]
	//     as: both
	//     ops: [id_list_transform: {}]
	//   - inputs: [seen, scores]
	//     as: scored
	//     ops: [with_scores: {}]
	//   - inputs: [user, page]
	//     as: user_page
	//     ops: [hash_cross: {buckets: 100}]
	//   - inputs: [user]
	//     as: own
	//     ops: [wasm: {module: own, function: half, in: [int64], out: int64}]
}
