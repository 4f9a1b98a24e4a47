package pipeline_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// bare returns a copy of a spec without positions.
func bare(s *pipeline.Spec) *pipeline.Spec {
	return withoutPositions(reflect.ValueOf(s)).Interface().(*pipeline.Spec)
}

func withoutPositions(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(withoutPositions(v.Elem()))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(withoutPositions(v.Elem()))
		}
	case reflect.Slice:
		for i := range v.Len() {
			out.Set(reflect.Append(out, withoutPositions(v.Index(i))))
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if field := out.Field(i); field.Type() == reflect.TypeFor[pipeline.Pos]() {
				field.SetZero()
			} else if field.CanSet() {
				field.Set(withoutPositions(v.Field(i)))
			}
		}
	default:
		out.Set(v)
	}
	return out
}

func ExampleSpec() {
	s := &pipeline.Spec{
		Name:  "small",
		IDs:   program.IDs32,
		Label: &pipeline.Label{Column: "label"},
		Dense: []pipeline.Group{{Columns: pipeline.Columns("int_0..int_12"),
			Ops: []pipeline.Op{pipeline.FillNull(pipeline.Int(0)), pipeline.Clamp(pipeline.With("min", pipeline.Int(0))),
				pipeline.Log(pipeline.With("add", pipeline.Int(1)))}}},
		Sparse: []pipeline.Group{
			{Columns: pipeline.Columns("cat_0", "cat_1"), Ops: []pipeline.Op{pipeline.FillNull(pipeline.Int(0)),
				pipeline.SigridHash(500000, pipeline.With("salt", pipeline.Int(0)))}},
		},
		Generated: []pipeline.Group{{
			Columns: pipeline.Columns("int_0"), As: "bucket_{n}",
			Ops: []pipeline.Op{pipeline.FillNull(pipeline.Int(0)),
				pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Real(0.5), pipeline.Int(1)}}),
				pipeline.PositiveModulus(2)},
		}},
	}
	r, err := resolve.Pipeline(s, columntypes.TextSchema(false))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, schema, err := lowering.Lower(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(schema.Dense), schema.KeyNames(), schema.IDs, schema.Fixed())
	// Output: 13 [cat_0 cat_1 bucket_0] int32 true
}

func ExampleParse() {
	_, err := pipeline.Parse([]byte(`dense: [{columns: [x], ops: [clmap: {min: 0}]}]`))
	fmt.Println(err, errors.Is(err, problem.ErrUnknownOperator))
	// Output: pipeline: line 1:30: dense[0].ops[0]: unknown operator: "clmap"; did you mean "clamp"? true
}

// The same pipeline from Go, from YAML, and from the YAML of either.
func TestSpecInGoIsSpecInYAML(t *testing.T) {
	inGo := &pipeline.Spec{
		Name: "rm1", Batch: 8192, IDs: program.IDs32, Label: &pipeline.Label{Column: "label"},
		Dense: []pipeline.Group{{Columns: pipeline.Columns("int_0..int_12"),
			Ops: []pipeline.Op{pipeline.FillNull(pipeline.Int(0)), pipeline.Clamp(pipeline.With("min", pipeline.Int(0))),
				pipeline.Log(pipeline.With("add", pipeline.Int(1)))}}},
		Sparse: []pipeline.Group{
			{Columns: pipeline.Columns("cat_0..cat_25"), Ops: []pipeline.Op{pipeline.FillNull(pipeline.Int(0)),
				pipeline.SigridHash(500000, pipeline.With("salt", pipeline.Int(0)))}},
		},
		Generated: []pipeline.Group{{Columns: pipeline.Columns("int_0..int_12"), As: "bucket_{n}", Ops: []pipeline.Op{
			pipeline.FillNull(pipeline.Int(0)), pipeline.Bucketize(pipeline.Borders{LogSpaced: &pipeline.LogSpaced{From: 1,
				To: 1e6, Count: 1024}}),
			pipeline.SigridHash(500000, pipeline.With("salt", pipeline.Int(0))),
		}}},
	}
	fromName, err := pipeline.Named("rm1")
	require.NoError(t, err)
	assert.Equal(t, inGo, bare(fromName))
	again, err := pipeline.Parse(inGo.YAML())
	require.NoError(t, err)
	assert.Equal(t, inGo, bare(again))
}

func TestCheckSpecsBuiltInGo(t *testing.T) {
	group := func(ops ...pipeline.Op) *pipeline.Spec {
		return &pipeline.Spec{Sparse: []pipeline.Group{{Columns: pipeline.Columns("i"), Ops: ops}}}
	}
	for name, c := range map[string]struct {
		spec *pipeline.Spec
		want string
	}{
		"nothing": {&pipeline.Spec{}, "pipeline: pipeline has no outputs: want a label, dense, sparse or generated"},
		"batch": {&pipeline.Spec{Batch: -1, Label: &pipeline.Label{Column: "x"}},
			"pipeline: batch: wrong value: -1, want 1 to 16777216"},
		"ids": {&pipeline.Spec{IDs: 9, Label: &pipeline.Label{Column: "x"}},
			"pipeline: ids: wrong value: ids(9), want int32 or int64"},
		"ids in two ways": {&pipeline.Spec{IDs: program.IDs32, FitIDs: true, Label: &pipeline.Label{Column: "x"}},
			"pipeline: ids: wrong value: auto and int32, want one of them"},
		"dense type": {&pipeline.Spec{DenseType: 9, Label: &pipeline.Label{Column: "x"}},
			"pipeline: dense_type: wrong value: dense(9), want float32 or bfloat16"},
		"label": {&pipeline.Spec{Label: &pipeline.Label{}},
			"pipeline: label: missing: column: the name of the column with the label"},
		"columns": {&pipeline.Spec{Dense: []pipeline.Group{{}}}, "pipeline: dense[0]: missing: columns: at least one"},
		"operator": {group(pipeline.Op{Name: "nope"}),
			`pipeline: sparse[0].ops[0]: unknown operator: "nope"; want one of ` + strings.Join(catalogueNames(), ", ")},
		"table of another kind": {group(pipeline.Op{Name: "map_id", Args: []pipeline.Arg{{Name: "table",
			Value: pipeline.Int(2)}}}),
			"pipeline: sparse[0].ops[0].map_id.table: wrong value: the number 2, want a table"},
		"table of other lengths": {group(pipeline.MapID(pipeline.IDTable{Keys: []int64{1, 2}, Values: []int64{1}},
			pipeline.With("default", pipeline.Int(0)))),
			"pipeline: sparse[0].ops[0].map_id.table: wrong value: 2 keys and 1 values"},
		"keys that descend": {group(pipeline.MapID(pipeline.IDTable{Keys: []int64{2, 1}, Values: []int64{1, 1}},
			pipeline.With("default", pipeline.Int(0)))),
			"pipeline: sparse[0].ops[0].map_id.table: wrong value: keys do not ascend: 1 comes behind 2"},
		"a zone that is a number": {group(pipeline.Op{Name: "get_local_hour", Args: []pipeline.Arg{{Name: "zone",
			Value: pipeline.Int(2)}}}),
			"pipeline: sparse[0].ops[0].get_local_hour.zone: wrong value: the number 2, want text"},
		"parameter": {group(pipeline.Op{Name: "log", Args: []pipeline.Arg{{Name: "base", Value: pipeline.Int(2)}}}),
			`pipeline: sparse[0].ops[0].log.base: unknown parameter: "base" of log`},
		"parameter twice": {group(pipeline.Op{Name: "log", Args: []pipeline.Arg{{Name: "add", Value: pipeline.Int(2)},
			{Name: "add", Value: pipeline.Int(2)}}}), `pipeline: sparse[0].ops[0].log.add: given twice: "add"`},
		"value of no type": {group(pipeline.Op{Name: "fill_null", Args: []pipeline.Arg{{Name: "value"}}}),
			"pipeline: sparse[0].ops[0].fill_null.value: wrong value: nothing, want a finite number"},
		"value of a type": {group(pipeline.Op{Name: "firstx", Args: []pipeline.Arg{{Name: "n", Value: pipeline.Text("3")}}}),
			`pipeline: sparse[0].ops[0].firstx.n: wrong value: the text "3", want a whole number`},
		"borders of a type": {group(pipeline.Op{Name: "bucketize", Args: []pipeline.Arg{{Name: "borders",
			Value: pipeline.Int(3)}}}),
			"pipeline: sparse[0].ops[0].bucketize.borders: wrong value: the number 3, want borders"},
		"NaN": {group(pipeline.FillNull(pipeline.Real(math.NaN()))),
			"pipeline: sparse[0].ops[0].fill_null.value: wrong value: the number .nan, want a finite number"},
		"both kinds of borders": {group(pipeline.Bucketize(pipeline.Borders{List: []pipeline.Number{pipeline.Int(1)},
			LogSpaced: &pipeline.LogSpaced{From: 1, To: 2,
				Count: 2}})),
			"pipeline: sparse[0].ops[0].bucketize.borders: wrong value: a list and log_spaced, want one"},
		"as": {&pipeline.Spec{Dense: []pipeline.Group{{Columns: pipeline.Columns("x"), As: "\xff"}}},
			"pipeline: dense[0].as: wrong value: want at most 4096 bytes of UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			require.EqualError(t, c.spec.Check(), c.want)
			_, err := resolve.Pipeline(c.spec, zoo())
			require.EqualError(t, err, c.want, "Resolve checks too")
		})
	}
}

func TestTooManyOperators(t *testing.T) {
	many := func(n int) *pipeline.Spec {
		s := &pipeline.Spec{Dense: []pipeline.Group{{Columns: pipeline.Columns("i")}}}
		for range n {
			s.Dense[0].Ops = append(s.Dense[0].Ops, pipeline.Log(pipeline.With("add", pipeline.Int(0))))
		}
		return s
	}
	r, err := resolve.Pipeline(many(pipeline.MaxOperators), zoo())
	require.NoError(t, err)
	_, _, err = lowering.Lower(r)
	require.NoError(t, err)
	require.ErrorIs(t, many(pipeline.MaxOperators+1).Check(), problem.ErrValue)
}

// fittingGroup draws columns of the zoo, and operators that take what these columns hold and yield what a group of
// dense columns, or of keys, holds.
func fittingGroup(t *rapid.T, dense bool) (columns string, ops []pipeline.Op) {
	whole := func(name string, from, to int64) int64 { return rapid.Int64Range(from, to).Draw(t, name) }
	kinds := map[string][]string{ // without null values, which only filled columns may have
		"integer": {"i", "i8", "u32", "c_0..c_2", "c_*"},
		"text":    {"s"},
		"real":    {"f"},
		"list":    {"list"},
	}
	kind := rapid.SampledFrom([]string{"integer", "text", "real"}).Draw(t, "kind")
	if !dense && rapid.Bool().Draw(t, "list") {
		kind = "list"
	}
	columns = rapid.SampledFrom(kinds[kind]).Draw(t, "fitting columns")
	if kind == "text" {
		ops = append(ops, rapid.SampledFrom([]pipeline.Op{pipeline.HexToInt(), pipeline.HashBytes("xxh3"),
			pipeline.HashBytes("murmur3_32"),
			pipeline.HashBytes("farmhash64")}).Draw(t, "to numbers"))
	}
	if dense {
		return columns, append(ops, rapid.SampledFrom([]pipeline.Op{pipeline.Log(pipeline.With("add", pipeline.Int(1))),
			pipeline.Clamp(pipeline.With("min", pipeline.Int(2))),
			pipeline.Logit(pipeline.With("eps", pipeline.Real(0.1))), pipeline.BoxCox(pipeline.Real(0.5)),
			pipeline.Normalize(pipeline.With("mean", pipeline.Real(0.1)), pipeline.With("deviation", pipeline.Int(3))),
			pipeline.MinMax(pipeline.With("min", pipeline.Int(-1)), pipeline.With("max", pipeline.Real(0.7)))}).Draw(t,
			"to dense"))
	}
	switch {
	case kind == "real":
		ops = append(ops, pipeline.Bucketize(pipeline.Borders{LogSpaced: &pipeline.LogSpaced{From: 0.5, To: 100,
			Count: int(whole("count", 2, 20))}}))
	case kind == "list" && rapid.Bool().Draw(t, "of few"):
		ops = append(ops, rapid.SampledFrom([]pipeline.Op{pipeline.FirstX(whole("x", 1, 9)),
			pipeline.ListSlice(pipeline.With("start", pipeline.Int(-whole("x", 1, 9))), pipeline.With("pad",
				pipeline.Int(0)))}).Draw(t, "part"))
	}
	return columns, append(ops, rapid.SampledFrom([]pipeline.Op{
		pipeline.SigridHash(whole("max", 1, 1<<30), pipeline.With("salt", pipeline.Int(whole("salt", 0, 9)))),
		pipeline.PositiveModulus(whole("modulus", 1, 1<<30)), pipeline.GetLocalHour(pipeline.With("zone",
			pipeline.Text("Europe/Berlin"))),
		pipeline.MapID(pipeline.IDTable{Keys: []int64{-7, 9}, Values: []int64{2, 1}}, pipeline.With("default",
			pipeline.Int(3)))}).Draw(t, "to ids"))
}

// randomSpec draws a spec over the zoo. Many are refused; those that are not must survive everything.
func randomSpec(t *rapid.T) *pipeline.Spec {
	number := rapid.Custom(func(t *rapid.T) pipeline.Number {
		if rapid.Bool().Draw(t, "whole") {
			return pipeline.Int(rapid.Int64Range(-5, 5000).Draw(t, "n"))
		}
		return pipeline.Real(rapid.Float64Range(-1e3, 1e3).Draw(t, "x"))
	})
	borders := rapid.Custom(func(t *rapid.T) pipeline.Borders {
		if rapid.Bool().Draw(t, "spaced") {
			return pipeline.Borders{LogSpaced: &pipeline.LogSpaced{From: 0.5, To: 100, Count: rapid.IntRange(2, 20).Draw(t,
				"count")}}
		}
		b := pipeline.Borders{}
		location := rapid.Int64Range(-100, 100).Draw(t, "first")
		for range rapid.IntRange(1, 6).Draw(t, "borders") {
			b.List = append(b.List, pipeline.Int(location))
			location += rapid.Int64Range(0, 3).Draw(t, "step")
		}
		return b
	})
	tables := rapid.Custom(func(t *rapid.T) pipeline.IDTable {
		values := rapid.SliceOfN(rapid.Int64(), 1, 5).Draw(t, "values")
		if rapid.Bool().Draw(t, "dense table") {
			return pipeline.IDTable{Values: values}
		}
		keys := rapid.SliceOfNDistinct(rapid.Int64(), len(values), len(values), rapid.ID[int64]).Draw(t, "keys")
		slices.Sort(keys)
		return pipeline.IDTable{Keys: keys, Values: values}
	})
	texts := rapid.Custom(func(t *rapid.T) pipeline.TextTable {
		key := rapid.OneOf(rapid.SampledFrom([]string{"", "yes", "1", "null", "a: b", "é", "\x00\"\\", "~"}), rapid.String())
		keys := rapid.SliceOfNDistinct(key, 1, 5, rapid.ID[string]).Draw(t, "texts")
		slices.Sort(keys)
		return pipeline.TextTable{Keys: keys, Values: rapid.SliceOfN(rapid.Int64(), len(keys), len(keys)).Draw(t, "values")}
	})
	operator := rapid.Custom(func(t *rapid.T) pipeline.Op {
		switch rapid.IntRange(0, 21).Draw(t, "operator") {
		case 19:
			return pipeline.ListSlice(
				pipeline.With("start", pipeline.Int(rapid.Int64Range(-9, 9).Draw(t, "start"))),
				pipeline.Arg{Name: "end", Value: pipeline.Int(rapid.Int64Range(-9,
					9).Draw(t, "end"))},
				pipeline.Arg{Name: "pad", Value: number.Draw(t, "pad")},
			)
		case 20:
			return pipeline.MapText(texts.Draw(t, "texts"), pipeline.Arg{Name: "unknown",
				Value: pipeline.Text(rapid.SampledFrom([]string{"fail", "as_null"}).Draw(t, "unknown"))})
		case 15:
			return pipeline.Normalize(pipeline.With("mean", number.Draw(t, "mean")), pipeline.With("deviation", number.Draw(t,
				"deviation")))
		case 16:
			return pipeline.MinMax(pipeline.With("min", number.Draw(t, "min")), pipeline.With("max", number.Draw(t, "max")))
		case 0:
			return pipeline.FillNull(number.Draw(t, "fill"))
		case 1:
			return pipeline.Clamp(pipeline.With("min", number.Draw(t, "min")))
		case 2:
			return pipeline.Log(pipeline.With("add", number.Draw(t, "add")))
		case 3:
			return pipeline.Bucketize(borders.Draw(t, "borders"),
				pipeline.Arg{Name: "side", Value: pipeline.Text(rapid.SampledFrom([]string{"left", "right"}).Draw(t, "side"))},
				pipeline.Arg{Name: "compare", Value: pipeline.Text(rapid.SampledFrom([]string{"float32", "float64",
					"int64"}).Draw(t,
					"compare"))})
		case 4:
			return pipeline.SigridHash(
				rapid.Int64Range(1, math.MaxInt64).Draw(t, "max"),
				pipeline.With("salt", pipeline.Int(rapid.Int64().Draw(t, "salt"))),
			)
		case 5:
			return pipeline.PositiveModulus(rapid.Int64Range(1, 1<<40).Draw(t, "modulus"))
		case 6:
			return pipeline.HexToInt()
		case 12:
			return pipeline.HashBytes(rapid.SampledFrom([]string{"xxh3", "murmur3_32", "farmhash64"}).Draw(t, "function"))
		case 13:
			return pipeline.GetLocalHour(
				pipeline.With("zone", pipeline.Text(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Asia/Kathmandu"}).Draw(t,
					"zone"))),
			)
		case 14:
			return pipeline.MapID(tables.Draw(t, "table"), pipeline.With("default", pipeline.Int(rapid.Int64().Draw(t,
				"default"))))
		case 17:
			words := []string{"file", "seconds", "micros", "days"}
			unit := pipeline.Arg{Name: "unit", Value: pipeline.Text(rapid.SampledFrom(words).Draw(t, "unit"))}
			if rapid.Bool().Draw(t, "days") {
				return pipeline.ToDays(unit)
			}
			return pipeline.ToSeconds(unit)
		case 18:
			return pipeline.Decimal(rapid.SampledFrom([]string{"float32", "float64", "int64"}).Draw(t, "to"))
		case 7:
			return pipeline.ZeroExtend()
		case 8:
			return pipeline.FirstX(rapid.Int64Range(0, 9).Draw(t, "n"))
		case 11:
			return pipeline.NGram(rapid.Int64Range(0, 17).Draw(t, "n"),
				pipeline.Arg{Name: "mode", Value: pipeline.Text(rapid.SampledFrom([]string{"fold", "rap"}).Draw(t, "mode"))})
		case 9:
			return pipeline.Logit(pipeline.With("eps", number.Draw(t, "eps")))
		case 10:
			return pipeline.BoxCox(number.Draw(t, "lambda1"), pipeline.Arg{Name: "lambda2", Value: number.Draw(t, "lambda2")},
				pipeline.Arg{Name: "mode", Value: pipeline.Text(rapid.SampledFrom([]string{"caffe2", "rap"}).Draw(t, "mode"))})
		}
		return pipeline.Identity()
	})
	columns := rapid.SampledFrom([]string{"label", "i", "i8", "u32", "i_null", "f", "f_null", "d", "s", "s_null",
		"list", "flist", "slist", "c_0..c_2", "c_*", "a..b"})
	place := 0
	fitting := rapid.IntRange(0, 3).Draw(t, "fitting") != 0
	groups := func(name string) []pipeline.Group {
		var out []pipeline.Group
		for range rapid.IntRange(0, 3).Draw(t, name) {
			place++
			g := pipeline.Group{As: fmt.Sprintf("%s %d {column}", name, place)}
			if fitting {
				var of string
				of, g.Ops = fittingGroup(t, name == "dense")
				g.Columns = pipeline.Columns(of)
				g.Deduplicate = name == "sparse" && rapid.Bool().Draw(t, "deduplicate")
			} else {
				g.Columns = pipeline.Columns(columns.Draw(t, "columns"))
				g.Ops = rapid.SliceOfN(operator, 0, 3).Draw(t, "ops")
				g.Deduplicate = rapid.IntRange(0, 3).Draw(t, "deduplicate") == 0
			}
			out = append(out, g)
		}
		return out
	}
	s := &pipeline.Spec{
		Name: "random: #1", Batch: rapid.IntRange(1, 100).Draw(t, "batch"),
		IDs: program.IDs(rapid.IntRange(0, 1).Draw(t, "ids")), FitIDs: rapid.IntRange(0, 3).Draw(t, "fit") == 0,
		DenseType: program.DenseType(rapid.IntRange(0, 1).Draw(t, "dense type")),
		Dense:     groups("dense"), Sparse: groups("sparse"), Generated: groups("generated"),
	}
	if rapid.Bool().Draw(t, "label") {
		s.Label = &pipeline.Label{Column: "label"}
		if !fitting {
			s.Label.Column = columns.Draw(t, "label column")
		}
	}
	return s
}

func TestRandomSpecs(t *testing.T) {
	lowered := 0
	rapid.Check(t, func(t *rapid.T) {
		s := randomSpec(t)
		again, err := pipeline.Parse(s.YAML())
		if s.Check() != nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err, "%s", s.YAML())
		require.Equal(t, bare(s), bare(again))

		r, err := resolve.Pipeline(s, zoo())
		if err != nil {
			var list problem.Errors
			require.ErrorAs(t, err, &list)
			return
		}
		p, schema, err := lowering.Lower(r)
		if err != nil {
			require.ErrorIs(t, err, problem.ErrNull)
			return
		}
		lowered++
		require.NoError(t, schema.Validate())
		require.Equal(t, int(p.Output.Keys), len(schema.Keys))
		require.Equal(t, int(p.Output.Dense), len(schema.Dense))
		require.Equal(t, p.Output.Fixed, schema.Fixed())
		q, err := operator.Unmarshal(wire.Marshal(p))
		require.NoError(t, err)
		require.Equal(t, p, q)

		r2, err := resolve.Pipeline(again, zoo())
		require.NoError(t, err)
		require.Equal(t, r.Canonical(), r2.Canonical())
		for i := range r.Keys {
			if n := r.Keys[i].NumEmbeddings; n != 0 && r.IDs == program.IDs32 {
				require.LessOrEqual(t, n, int64(1)<<31)
			}
		}
	})
	assert.Positive(t, lowered, "no random spec got as far as a program")
}

func TestYAMLOfOddNames(t *testing.T) {
	for _, name := range []string{"yes", "null", "1", "1e3", "0x10", "2001-01-01", "a: b", "#", "tab\t", "é", "\u2028",
		"\x7f", `q"\`, " ", "~", "<<", "*a", "&a", "!x", "a\nb", "\U0001f600"} {
		s := &pipeline.Spec{Name: name, Label: &pipeline.Label{Column: name},
			Dense: []pipeline.Group{{Columns: pipeline.Columns(name), As: name}}}
		again, err := pipeline.Parse(s.YAML())
		require.NoError(t, err, "%q: %s", name, s.YAML())
		assert.Equal(t, pipeline.DefaultBatch, again.Batch)
		s.Batch = pipeline.DefaultBatch
		assert.Equal(t, s, bare(again), "%q", name)
	}
}

// spacedBorders counts the borders that a spec asks to be computed.
func spacedBorders(s *pipeline.Spec) int {
	n := 0
	for _, k := range s.GroupLists() {
		for _, g := range k.Groups {
			for _, o := range g.Ops {
				if a, ok := o.Argument("borders"); ok && a.Value.(pipeline.Borders).LogSpaced != nil {
					n += a.Value.(pipeline.Borders).LogSpaced.Count
				}
			}
		}
	}
	return n
}

func FuzzYAML(f *testing.F) {
	for _, name := range pipeline.Names() {
		doc, err := pipeline.Document(name)
		require.NoError(f, err)
		f.Add(doc)
	}
	for name := range refusalSchemas {
		refusals(f, name, func(document string) error {
			f.Add([]byte(document))
			return nil
		})
	}
	for _, document := range goodDocuments(f) {
		f.Add([]byte(document))
	}
	f.Add([]byte(mapDocument))
	f.Add([]byte(`{sparse: [{columns: ["id_score_list_features[-3..2, 9223372036854775807]"], scores: drop}], dense: ` +
		`[{columns: ["float_features[*]"]}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 1<<16 {
			return
		}
		s, err := pipeline.Parse(doc)
		if err != nil {
			var list problem.Errors
			require.ErrorAs(t, err, &list)
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := pipeline.Parse(s.YAML())
		require.NoError(t, err, "%s", s.YAML())
		require.Equal(t, bare(s), bare(again))
		if spacedBorders(s) > 1<<12 {
			return // allowed, but too slow for a fuzzer
		}
		for _, schema := range [][]columntypes.Column{zoo(), columntypes.TextSchema(true), mapSchema()} {
			r, err := resolve.Pipeline(s, schema)
			if err != nil {
				continue
			}
			p, _, err := lowering.Lower(r)
			if err != nil {
				continue
			}
			q, err := operator.Unmarshal(wire.Marshal(p))
			require.NoError(t, err)
			require.Equal(t, wire.Marshal(p), wire.Marshal(q))
		}
	})
}
