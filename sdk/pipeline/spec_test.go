package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
)

// bare returns a copy of a spec without positions.
func bare(s *Spec) *Spec {
	c := *s
	ops := func(in []Op) []Op {
		var out []Op
		for _, o := range in {
			o.Pos = Pos{}
			var args []Arg
			for _, a := range o.Args {
				a.Pos = Pos{}
				if b, ok := a.Value.(Borders); ok {
					b.Pos = Pos{}
					a.Value = b
				}
				args = append(args, a)
			}
			o.Args = args
			out = append(out, o)
		}
		return out
	}
	groups := func(in []Group) []Group {
		var out []Group
		for _, g := range in {
			g.Pos = Pos{}
			var columns []Pattern
			for _, p := range g.Columns {
				columns = append(columns, Pattern{Text: p.Text})
			}
			var inputs []Pattern
			for _, p := range g.Inputs {
				inputs = append(inputs, Pattern{Text: p.Text})
			}
			g.Columns, g.Inputs, g.Ops = columns, inputs, ops(g.Ops)
			out = append(out, g)
		}
		return out
	}
	if s.Label != nil {
		c.Label = &Label{Column: s.Label.Column, Ops: ops(s.Label.Ops)}
	}
	c.Values = nil
	for _, v := range s.Values {
		v.Pos, v.From.Pos, v.Ops = Pos{}, Pos{}, ops(v.Ops)
		v.Inputs = slices.Clone(v.Inputs)
		for i := range v.Inputs {
			v.Inputs[i].Pos = Pos{}
		}
		c.Values = append(c.Values, v)
	}
	c.Dense, c.Sparse, c.Generated = groups(s.Dense), groups(s.Sparse), groups(s.Generated)
	c.Vocabularies = slices.Clone(s.Vocabularies)
	for i := range c.Vocabularies {
		c.Vocabularies[i].Pos = Pos{}
	}
	return &c
}

func ExampleSpec() {
	s := &Spec{
		Name:  "small",
		IDs:   program.IDs32,
		Label: &Label{Column: "label"},
		Dense: []Group{{Columns: Columns("int_0..int_12"), Ops: []Op{FillNull(Int(0)), Clamp(With("min", Int(0))),
			Log(With("add", Int(1)))}}},
		Sparse: []Group{
			{Columns: Columns("cat_0", "cat_1"), Ops: []Op{FillNull(Int(0)), SigridHash(500000, With("salt", Int(0)))}},
		},
		Generated: []Group{{
			Columns: Columns("int_0"), As: "bucket_{n}",
			Ops: []Op{FillNull(Int(0)), Bucketize(Borders{List: []Number{Real(0.5), Int(1)}}), PositiveModulus(2)},
		}},
	}
	r, err := s.Resolve(TextSchema(false))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, schema, err := Lower(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(schema.Dense), schema.KeyNames(), schema.IDs, schema.Fixed())
	// Output: 13 [cat_0 cat_1 bucket_0] int32 true
}

func ExampleParse() {
	_, err := Parse([]byte(`dense: [{columns: [x], ops: [clmap: {min: 0}]}]`))
	fmt.Println(err, errors.Is(err, ErrUnknownOperator))
	// Output: pipeline: line 1:30: dense[0].ops[0]: unknown operator: "clmap"; did you mean "clamp"? true
}

// The same pipeline from Go, from YAML, and from the YAML of either.
func TestSpecInGoIsSpecInYAML(t *testing.T) {
	inGo := &Spec{
		Name: "rm1", Batch: 8192, IDs: program.IDs32, Label: &Label{Column: "label"},
		Dense: []Group{{Columns: Columns("int_0..int_12"), Ops: []Op{FillNull(Int(0)), Clamp(With("min", Int(0))),
			Log(With("add", Int(1)))}}},
		Sparse: []Group{
			{Columns: Columns("cat_0..cat_25"), Ops: []Op{FillNull(Int(0)), SigridHash(500000, With("salt", Int(0)))}},
		},
		Generated: []Group{{Columns: Columns("int_0..int_12"), As: "bucket_{n}", Ops: []Op{
			FillNull(Int(0)), Bucketize(Borders{LogSpaced: &LogSpaced{From: 1, To: 1e6, Count: 1024}}),
			SigridHash(500000, With("salt", Int(0))),
		}}},
	}
	fromName, err := Named("rm1")
	require.NoError(t, err)
	assert.Equal(t, inGo, bare(fromName))
	again, err := Parse(inGo.YAML())
	require.NoError(t, err)
	assert.Equal(t, inGo, bare(again))
}

func TestCheckSpecsBuiltInGo(t *testing.T) {
	group := func(ops ...Op) *Spec { return &Spec{Sparse: []Group{{Columns: Columns("i"), Ops: ops}}} }
	for name, c := range map[string]struct {
		spec *Spec
		want string
	}{
		"nothing": {&Spec{}, "pipeline: pipeline has no outputs: want a label, dense, sparse or generated"},
		"batch": {&Spec{Batch: -1, Label: &Label{Column: "x"}},
			"pipeline: batch: wrong value: -1, want 1 to 16777216"},
		"ids": {&Spec{IDs: 9, Label: &Label{Column: "x"}},
			"pipeline: ids: wrong value: ids(9), want int32 or int64"},
		"ids in two ways": {&Spec{IDs: program.IDs32, FitIDs: true, Label: &Label{Column: "x"}},
			"pipeline: ids: wrong value: auto and int32, want one of them"},
		"dense type": {&Spec{DenseType: 9, Label: &Label{Column: "x"}},
			"pipeline: dense_type: wrong value: dense(9), want float32 or bfloat16"},
		"label": {&Spec{Label: &Label{}},
			"pipeline: label: missing: column: the name of the column with the label"},
		"columns": {&Spec{Dense: []Group{{}}}, "pipeline: dense[0]: missing: columns: at least one"},
		"operator": {group(Op{Name: "nope"}),
			`pipeline: sparse[0].ops[0]: unknown operator: "nope"; want one of ` + strings.Join(operatorNames(), ", ")},
		"table of another kind": {group(Op{Name: "map_id", Args: []Arg{{Name: "table", Value: Int(2)}}}),
			"pipeline: sparse[0].ops[0].map_id.table: wrong value: the number 2, want a table"},
		"table of other lengths": {group(MapID(IDTable{Keys: []int64{1, 2}, Values: []int64{1}}, With("default", Int(0)))),
			"pipeline: sparse[0].ops[0].map_id.table: wrong value: 2 keys and 1 values"},
		"keys that descend": {group(MapID(IDTable{Keys: []int64{2, 1}, Values: []int64{1, 1}}, With("default", Int(0)))),
			"pipeline: sparse[0].ops[0].map_id.table: wrong value: keys do not ascend: 1 comes behind 2"},
		"a zone that is a number": {group(Op{Name: "get_local_hour", Args: []Arg{{Name: "zone", Value: Int(2)}}}),
			"pipeline: sparse[0].ops[0].get_local_hour.zone: wrong value: the number 2, want text"},
		"parameter": {group(Op{Name: "log", Args: []Arg{{Name: "base", Value: Int(2)}}}),
			`pipeline: sparse[0].ops[0].log.base: unknown parameter: "base" of log`},
		"parameter twice": {group(Op{Name: "log", Args: []Arg{{Name: "add", Value: Int(2)},
			{Name: "add", Value: Int(2)}}}), `pipeline: sparse[0].ops[0].log.add: given twice: "add"`},
		"value of no type": {group(Op{Name: "fill_null", Args: []Arg{{Name: "value"}}}),
			"pipeline: sparse[0].ops[0].fill_null.value: wrong value: nothing, want a finite number"},
		"value of a type": {group(Op{Name: "firstx", Args: []Arg{{Name: "n", Value: Text("3")}}}),
			`pipeline: sparse[0].ops[0].firstx.n: wrong value: the text "3", want a whole number`},
		"borders of a type": {group(Op{Name: "bucketize", Args: []Arg{{Name: "borders", Value: Int(3)}}}),
			"pipeline: sparse[0].ops[0].bucketize.borders: wrong value: the number 3, want borders"},
		"NaN": {group(FillNull(Real(math.NaN()))),
			"pipeline: sparse[0].ops[0].fill_null.value: wrong value: the number .nan, want a finite number"},
		"both kinds of borders": {group(Bucketize(Borders{List: []Number{Int(1)}, LogSpaced: &LogSpaced{From: 1, To: 2,
			Count: 2}})),
			"pipeline: sparse[0].ops[0].bucketize.borders: wrong value: a list and log_spaced, want one"},
		"as": {&Spec{Dense: []Group{{Columns: Columns("x"), As: "\xff"}}},
			"pipeline: dense[0].as: wrong value: want at most 4096 bytes of UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			require.EqualError(t, c.spec.Check(), c.want)
			_, err := c.spec.Resolve(zoo())
			require.EqualError(t, err, c.want, "Resolve checks too")
		})
	}
}

func TestTooManyOperators(t *testing.T) {
	many := func(n int) *Spec {
		s := &Spec{Dense: []Group{{Columns: Columns("i")}}}
		for range n {
			s.Dense[0].Ops = append(s.Dense[0].Ops, Log(With("add", Int(0))))
		}
		return s
	}
	r, err := many(MaxOperators).Resolve(zoo())
	require.NoError(t, err)
	_, _, err = Lower(r)
	require.NoError(t, err)
	require.ErrorIs(t, many(MaxOperators+1).Check(), ErrValue)
}

// fittingGroup draws columns of the zoo, and operators that take what these columns hold and yield what a group of
// dense columns, or of keys, holds.
func fittingGroup(t *rapid.T, dense bool) (columns string, ops []Op) {
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
		ops = append(ops, rapid.SampledFrom([]Op{HexToInt(), HashBytes("xxh3"), HashBytes("murmur3_32"),
			HashBytes("farmhash64")}).Draw(t, "to numbers"))
	}
	if dense {
		return columns, append(ops, rapid.SampledFrom([]Op{Log(With("add", Int(1))), Clamp(With("min", Int(2))),
			Logit(With("eps", Real(0.1))), BoxCox(Real(0.5)), Normalize(With("mean", Real(0.1)), With("deviation", Int(3))),
			MinMax(With("min", Int(-1)), With("max", Real(0.7)))}).Draw(t, "to dense"))
	}
	switch {
	case kind == "real":
		ops = append(ops, Bucketize(Borders{LogSpaced: &LogSpaced{From: 0.5, To: 100, Count: int(whole("count", 2, 20))}}))
	case kind == "list" && rapid.Bool().Draw(t, "of few"):
		ops = append(ops, rapid.SampledFrom([]Op{FirstX(whole("x", 1, 9)),
			ListSlice(With("start", Int(-whole("x", 1, 9))), With("pad", Int(0)))}).Draw(t, "part"))
	}
	return columns, append(ops, rapid.SampledFrom([]Op{
		SigridHash(whole("max", 1, 1<<30), With("salt", Int(whole("salt", 0, 9)))),
		PositiveModulus(whole("modulus", 1, 1<<30)), GetLocalHour(With("zone", Text("Europe/Berlin"))),
		MapID(IDTable{Keys: []int64{-7, 9}, Values: []int64{2, 1}}, With("default", Int(3)))}).Draw(t, "to ids"))
}

// randomSpec draws a spec over the zoo. Many are refused; those that are not must survive everything.
func randomSpec(t *rapid.T) *Spec {
	number := rapid.Custom(func(t *rapid.T) Number {
		if rapid.Bool().Draw(t, "whole") {
			return Int(rapid.Int64Range(-5, 5000).Draw(t, "n"))
		}
		return Real(rapid.Float64Range(-1e3, 1e3).Draw(t, "x"))
	})
	borders := rapid.Custom(func(t *rapid.T) Borders {
		if rapid.Bool().Draw(t, "spaced") {
			return Borders{LogSpaced: &LogSpaced{From: 0.5, To: 100, Count: rapid.IntRange(2, 20).Draw(t, "count")}}
		}
		b := Borders{}
		location := rapid.Int64Range(-100, 100).Draw(t, "first")
		for range rapid.IntRange(1, 6).Draw(t, "borders") {
			b.List = append(b.List, Int(location))
			location += rapid.Int64Range(0, 3).Draw(t, "step")
		}
		return b
	})
	tables := rapid.Custom(func(t *rapid.T) IDTable {
		values := rapid.SliceOfN(rapid.Int64(), 1, 5).Draw(t, "values")
		if rapid.Bool().Draw(t, "dense table") {
			return IDTable{Values: values}
		}
		keys := rapid.SliceOfNDistinct(rapid.Int64(), len(values), len(values), rapid.ID[int64]).Draw(t, "keys")
		slices.Sort(keys)
		return IDTable{Keys: keys, Values: values}
	})
	texts := rapid.Custom(func(t *rapid.T) TextTable {
		key := rapid.OneOf(rapid.SampledFrom([]string{"", "yes", "1", "null", "a: b", "é", "\x00\"\\", "~"}), rapid.String())
		keys := rapid.SliceOfNDistinct(key, 1, 5, rapid.ID[string]).Draw(t, "texts")
		slices.Sort(keys)
		return TextTable{Keys: keys, Values: rapid.SliceOfN(rapid.Int64(), len(keys), len(keys)).Draw(t, "values")}
	})
	operator := rapid.Custom(func(t *rapid.T) Op {
		switch rapid.IntRange(0, 21).Draw(t, "operator") {
		case 19:
			return ListSlice(
				With("start", Int(rapid.Int64Range(-9, 9).Draw(t, "start"))),
				Arg{Name: "end", Value: Int(rapid.Int64Range(-9,
					9).Draw(t, "end"))},
				Arg{Name: "pad", Value: number.Draw(t, "pad")},
			)
		case 20:
			return MapText(texts.Draw(t, "texts"), Arg{Name: "unknown",
				Value: Text(rapid.SampledFrom([]string{"fail", "as_null"}).Draw(t, "unknown"))})
		case 15:
			return Normalize(With("mean", number.Draw(t, "mean")), With("deviation", number.Draw(t, "deviation")))
		case 16:
			return MinMax(With("min", number.Draw(t, "min")), With("max", number.Draw(t, "max")))
		case 0:
			return FillNull(number.Draw(t, "fill"))
		case 1:
			return Clamp(With("min", number.Draw(t, "min")))
		case 2:
			return Log(With("add", number.Draw(t, "add")))
		case 3:
			return Bucketize(borders.Draw(t, "borders"),
				Arg{Name: "side", Value: Text(rapid.SampledFrom([]string{"left", "right"}).Draw(t, "side"))},
				Arg{Name: "compare", Value: Text(rapid.SampledFrom([]string{"float32", "float64", "int64"}).Draw(t,
					"compare"))})
		case 4:
			return SigridHash(
				rapid.Int64Range(1, math.MaxInt64).Draw(t, "max"),
				With("salt", Int(rapid.Int64().Draw(t, "salt"))),
			)
		case 5:
			return PositiveModulus(rapid.Int64Range(1, 1<<40).Draw(t, "modulus"))
		case 6:
			return HexToInt()
		case 12:
			return HashBytes(rapid.SampledFrom([]string{"xxh3", "murmur3_32", "farmhash64"}).Draw(t, "function"))
		case 13:
			return GetLocalHour(
				With("zone", Text(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Asia/Kathmandu"}).Draw(t, "zone"))),
			)
		case 14:
			return MapID(tables.Draw(t, "table"), With("default", Int(rapid.Int64().Draw(t, "default"))))
		case 17:
			words := []string{"file", "seconds", "micros", "days"}
			unit := Arg{Name: "unit", Value: Text(rapid.SampledFrom(words).Draw(t, "unit"))}
			if rapid.Bool().Draw(t, "days") {
				return ToDays(unit)
			}
			return ToSeconds(unit)
		case 18:
			return Decimal(rapid.SampledFrom([]string{"float32", "float64", "int64"}).Draw(t, "to"))
		case 7:
			return ZeroExtend()
		case 8:
			return FirstX(rapid.Int64Range(0, 9).Draw(t, "n"))
		case 11:
			return NGram(rapid.Int64Range(0, 17).Draw(t, "n"),
				Arg{Name: "mode", Value: Text(rapid.SampledFrom([]string{"fold", "rap"}).Draw(t, "mode"))})
		case 9:
			return Logit(With("eps", number.Draw(t, "eps")))
		case 10:
			return BoxCox(number.Draw(t, "lambda1"), Arg{Name: "lambda2", Value: number.Draw(t, "lambda2")},
				Arg{Name: "mode", Value: Text(rapid.SampledFrom([]string{"caffe2", "rap"}).Draw(t, "mode"))})
		}
		return Identity()
	})
	columns := rapid.SampledFrom([]string{"label", "i", "i8", "u32", "i_null", "f", "f_null", "d", "s", "s_null",
		"list", "flist", "slist", "c_0..c_2", "c_*", "a..b"})
	place := 0
	fitting := rapid.IntRange(0, 3).Draw(t, "fitting") != 0
	groups := func(name string) []Group {
		var out []Group
		for range rapid.IntRange(0, 3).Draw(t, name) {
			place++
			g := Group{As: fmt.Sprintf("%s %d {column}", name, place)}
			if fitting {
				var of string
				of, g.Ops = fittingGroup(t, name == "dense")
				g.Columns = Columns(of)
				g.Deduplicate = name == "sparse" && rapid.Bool().Draw(t, "deduplicate")
			} else {
				g.Columns = Columns(columns.Draw(t, "columns"))
				g.Ops = rapid.SliceOfN(operator, 0, 3).Draw(t, "ops")
				g.Deduplicate = rapid.IntRange(0, 3).Draw(t, "deduplicate") == 0
			}
			out = append(out, g)
		}
		return out
	}
	s := &Spec{
		Name: "random: #1", Batch: rapid.IntRange(1, 100).Draw(t, "batch"),
		IDs: program.IDs(rapid.IntRange(0, 1).Draw(t, "ids")), FitIDs: rapid.IntRange(0, 3).Draw(t, "fit") == 0,
		DenseType: program.DenseType(rapid.IntRange(0, 1).Draw(t, "dense type")),
		Dense:     groups("dense"), Sparse: groups("sparse"), Generated: groups("generated"),
	}
	if rapid.Bool().Draw(t, "label") {
		s.Label = &Label{Column: "label"}
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
		again, err := Parse(s.YAML())
		if s.Check() != nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err, "%s", s.YAML())
		require.Equal(t, bare(s), bare(again))

		r, err := s.Resolve(zoo())
		if err != nil {
			var list Errors
			require.ErrorAs(t, err, &list)
			return
		}
		p, schema, err := Lower(r)
		if err != nil {
			require.ErrorIs(t, err, ErrNull)
			return
		}
		lowered++
		require.NoError(t, schema.Validate())
		require.Equal(t, int(p.Output.Keys), len(schema.Keys))
		require.Equal(t, int(p.Output.Dense), len(schema.Dense))
		require.Equal(t, p.Output.Fixed, schema.Fixed())
		q, err := operator.Unmarshal(p.Marshal())
		require.NoError(t, err)
		require.Equal(t, p, q)

		r2, err := again.Resolve(zoo())
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
		s := &Spec{Name: name, Label: &Label{Column: name}, Dense: []Group{{Columns: Columns(name), As: name}}}
		again, err := Parse(s.YAML())
		require.NoError(t, err, "%q: %s", name, s.YAML())
		assert.Equal(t, DefaultBatch, again.Batch)
		s.Batch = DefaultBatch
		assert.Equal(t, s, bare(again), "%q", name)
	}
}

// spacedBorders counts the borders that a spec asks to be computed.
func spacedBorders(s *Spec) int {
	n := 0
	for _, k := range s.groupLists() {
		for _, g := range k.groups {
			for _, o := range g.Ops {
				if a, ok := o.arg("borders"); ok && a.Value.(Borders).LogSpaced != nil {
					n += a.Value.(Borders).LogSpaced.Count
				}
			}
		}
	}
	return n
}

func FuzzYAML(f *testing.F) {
	for _, name := range Names() {
		doc, err := Document(name)
		require.NoError(f, err)
		f.Add(doc)
	}
	for _, c := range badDocuments {
		f.Add([]byte(c.doc))
	}
	for _, c := range goodDocuments {
		f.Add([]byte(c.doc))
	}
	f.Add([]byte(mapDocument))
	f.Add([]byte(`{sparse: [{columns: ["id_score_list_features[-3..2, 9223372036854775807]"], scores: drop}], dense: ` +
		`[{columns: ["float_features[*]"]}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		if len(doc) > 1<<16 {
			return
		}
		s, err := Parse(doc)
		if err != nil {
			var list Errors
			require.ErrorAs(t, err, &list)
			require.NotEmpty(t, err.Error())
			return
		}
		again, err := Parse(s.YAML())
		require.NoError(t, err, "%s", s.YAML())
		require.Equal(t, bare(s), bare(again))
		if spacedBorders(s) > 1<<12 {
			return // allowed, but too slow for a fuzzer
		}
		for _, schema := range [][]ColumnInfo{zoo(), TextSchema(true), mapSchema()} {
			r, err := s.Resolve(schema)
			if err != nil {
				continue
			}
			p, _, err := Lower(r)
			if err != nil {
				continue
			}
			q, err := operator.Unmarshal(p.Marshal())
			require.NoError(t, err)
			require.Equal(t, p.Marshal(), q.Marshal())
		}
	})
}
