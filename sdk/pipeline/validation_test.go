package pipeline_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestAValidationSplitIsAFilter holds the filters of both parts, and so which rows are in which part and the digests of
// jobs with a split.
func TestAValidationSplitIsAFilter(t *testing.T) {
	const salt = "7314803070772415537" // h(7, 4), see dataset.DomainValidation
	for split, want := range map[string]string{
		"train:0.9:7":      "{sampling: {key: row, rate: 0.9, salt: " + salt + "}}",
		"validation:0.9:7": "{not: {sampling: {key: row, rate: 0.9, salt: " + salt + "}}}",
		"train:0.9:7:i_null": "{any: [{sampling: {key: i_null, rate: 0.9, salt: " + salt +
			"}}, {column: i_null, null: true}]}",
		"validation:0.9:7:i_null": "{not: {any: [{sampling: {key: i_null, rate: 0.9, salt: " + salt +
			"}}, {column: i_null, null: true}]}}",
	} {
		for filter, whole := range map[string]string{
			"":                                   want,
			"{column: i, eq: 1}":                 "{all: [{column: i, eq: 1}, " + want + "]}",
			"{all: [{not: {column: i, eq: 1}}]}": "{all: [{not: {column: i, eq: 1}}, " + want + "]}",
		} {
			without, document := "sparse: [{columns: [c_0]}]\n", "sparse: [{columns: [c_0]}]\nfilter: "+whole
			if filter != "" {
				without += "filter: " + filter
			}
			s, err := pipeline.Parse([]byte(without))
			require.NoError(t, err)
			before := string(s.JSON())
			part := withSplit(t, s, split)
			assert.Equal(t, before, string(s.JSON()), "the pipeline itself does not change")
			written, err := pipeline.Parse([]byte(document))
			require.NoError(t, err)
			assert.Equal(t, string(written.JSON()), string(part.JSON()))
			again, err := pipeline.Parse(part.YAML())
			require.NoError(t, err)
			assert.Equal(t, string(written.JSON()), string(again.JSON()))
			r, err := resolve.Pipeline(part, zoo())
			require.NoError(t, err)
			byHand, err := resolve.Pipeline(written, zoo())
			require.NoError(t, err)
			assert.Equal(t, byHand.Digest(), r.Digest())
		}
	}
}

// withSplit returns the pipeline of a part.
func withSplit(t require.TestingT, s *pipeline.Spec, split string) *pipeline.Spec {
	v, err := pipeline.ParseValidationSplit(split)
	require.NoError(t, err)
	part, err := s.WithSplit(v)
	require.NoError(t, err)
	return part
}

// TestASplitByRowReadsNothing checks that the selection of a part needs no column, so that it is made of rows' numbers.
func TestASplitByRowReadsNothing(t *testing.T) {
	s, err := pipeline.Parse([]byte("sparse: [{columns: [c_0]}]"))
	require.NoError(t, err)
	for split, reads := range map[string]bool{"train:0.5": false, "validation:0.5": false, "train:0.5:0:row": false,
		"train:0.5:0:i": true, "validation:0.5:0:i": true} {
		r, err := resolve.Pipeline(withSplit(t, s, split), zoo())
		require.NoError(t, err)
		assert.Equal(t, reads, r.Filter.Spec != nil, split)
	}
}

// TestPartsShareNothingAndLoseNothing draws rows, filters and splits: each row that passes the filter is in exactly one
// part, rows of one value are in one part, and those without a value in train.
func TestPartsShareNothingAndLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		filter := rapid.SampledFrom([]string{"", "{column: i_null, in: [1, 4]}", "{not: {column: i, lt: 3}}",
			"{all: [{column: s_null, null: false}, {column: i, ge: 2}]}", "{sampling: {key: row, rate: 0.5, salt: 7}}",
			"{any: [{sampling: {key: s_null, rate: 0.3, salt: 1}}, {column: i_null, null: true}]}"}).Draw(t, "filter")
		document := "sparse: [{columns: [c_0]}]\n"
		if filter != "" {
			document += "filter: " + filter
		}
		s, err := pipeline.Parse([]byte(document))
		require.NoError(t, err)
		by := rapid.SampledFrom([]string{"", "row", "i", "i_null", "s_null", "u64"}).Draw(t, "by")
		rate := rapid.Float64Range(1e-3, 0.999).Draw(t, "rate")
		seed := rapid.Uint64().Draw(t, "seed")
		rows := drawRows(t)
		passes, train, validation := rows.passing(t, s), []bool(nil), []bool(nil)
		for part, out := range map[string]*[]bool{pipeline.PartTrain: &train, pipeline.PartValidation: &validation} {
			of, err := s.WithSplit(pipeline.ValidationSplit{Part: part, Rate: rate, Seed: seed, By: by})
			require.NoError(t, err)
			*out = rows.passing(t, of)
		}
		parts := map[int64]bool{}
		for i := range rows.count {
			require.False(t, train[i] && validation[i], "row %d is in both parts", i)
			require.Equal(t, passes[i], train[i] || validation[i], "row %d", i)
			value := rows.values[by]
			switch {
			case value == nil || !passes[i]:
			case value[i] == nil:
				require.True(t, train[i], "row %d has no value", i)
			default:
				part, seen := parts[*value[i]]
				require.True(t, !seen || part == train[i], "the value of row %d is in both parts", i)
				parts[*value[i]] = train[i]
			}
		}
	})
}

// splitRows are rows of a partition: the values of columns, which are nil where a row has none.
type splitRows struct {
	count  int
	values map[string][]*int64
}

func drawRows(t *rapid.T) *splitRows {
	r := &splitRows{count: rapid.IntRange(1, 60).Draw(t, "rows"), values: map[string][]*int64{}}
	for _, c := range zoo() {
		if !slices.Contains([]string{"i", "i_null", "s_null", "u64"}, c.Name) {
			continue
		}
		for range r.count {
			v := rapid.Int64Range(-1, 9).Draw(t, c.Name)
			if r.values[c.Name] = append(r.values[c.Name], &v); c.Nullable && v < 2 {
				r.values[c.Name][len(r.values[c.Name])-1] = nil
			}
		}
	}
	return r
}

// passing evaluates the filter of a pipeline over the rows.
func (r *splitRows) passing(t require.TestingT, s *pipeline.Spec) []bool {
	resolved, err := resolve.Pipeline(s, zoo())
	require.NoError(t, err)
	if resolved.Filter == nil {
		return slices.Repeat([]bool{true}, r.count)
	}
	block := &selection.Block{Partition: "day_0.parquet", First: 12_345, Rows: r.count}
	if pass := resolved.Filter.Spec; pass != nil {
		schema := &tensor.Schema{IDs: tensor.Int64}
		for _, g := range pass.Sparse {
			schema.Keys = append(schema.Keys, tensor.Key{Name: g.As, List: true})
		}
		m, err := tensor.Make(schema, r.count, 0)
		require.NoError(t, err)
		for k, g := range pass.Sparse {
			for i, v := range r.values[g.Columns[0].Text] {
				if v != nil {
					m.Lengths[k*r.count+i], m.Values64 = 1, append(m.Values64, *v)
				}
			}
		}
		block.MiniBatch = m
	}
	out, err := resolved.Filter.Condition.Evaluate(block)
	require.NoError(t, err)
	return out
}

// TestASplitIsIndependentOfSamplings counts rows of a split's part among the rows that a sampling with the split's seed
// as its salt keeps: as many as the part's share, whatever the rates. So a pipeline that keeps a quarter of the rows
// can be split by the same number.
func TestASplitIsIndependentOfSamplings(t *testing.T) {
	const rows = 20_000
	s, err := pipeline.Parse([]byte("sparse: [{columns: [c_0]}]"))
	require.NoError(t, err)
	all := &splitRows{count: rows, values: map[string][]*int64{}}
	for i := range int64(rows) {
		all.values["i"] = append(all.values["i"], &i)
	}
	for _, seed := range []uint64{0, 1, 7, math.MaxUint64} {
		for key, rate := range map[string]float64{pipeline.SamplingRow: 0.25, "i": 0.9} {
			sampled := *s
			sampled.Filter = &pipeline.Filter{Sampling: &pipeline.Sampling{Key: key, Rate: rate, Salt: int64(seed)}}
			kept := all.passing(t, &sampled)
			train := all.passing(t, withSplit(t, s, fmt.Sprintf("train:0.9:%d:%s", seed, key)))
			other := all.passing(t, withSplit(t, s, fmt.Sprintf("train:0.9:%d:%s", seed+1, key)))
			for name, drawn := range map[string][]bool{"sampling": kept, "another seed": other} {
				among, both := 0.0, 0.0
				for i := range drawn {
					if drawn[i] {
						among++
						if train[i] {
							both++
						}
					}
				}
				deviation := math.Sqrt(among * 0.9 * 0.1)
				assert.InDelta(t, 0.9*among, both, 5*deviation, "seed %d, key %s, %s", seed, key, name)
			}
		}
	}
}

// TestBadValidationSplits checks what is refused, and that the error says where and what to do.
func TestBadValidationSplits(t *testing.T) {
	for split, want := range map[string]string{
		"":                 "validation split: \"\", want PART:RATE[:SEED[:COLUMN]], as train:0.9:7",
		"train":            "want PART:RATE",
		"test:0.9":         `the part "test", want train or validation`,
		"Train:0.9":        `the part "Train"`,
		"train:0":          "the rate 0, want more than 0 and less than 1: it is the share of the rows in the part train",
		"train:1":          "the rate 1, want",
		"train:-0.1":       "the rate -0.1, want",
		"train:NaN":        "the rate NaN, want",
		"train:90%":        `the rate "90%", want a number between 0 and 1`,
		"train:":           `the rate "", want`,
		"train:0.9:-1":     `the seed "-1", want a whole number from 0 to 2^64 - 1`,
		"train:0.9:user":   `the seed "user"`,
		"train:0.9:7:":     "the name of the column is empty",
		"train:0.9:7:\xff": "want a name of at most 4096 bytes of UTF-8",
		"train:0.9:7:" + strings.Repeat("x", pipeline.MaxName+1): "want a name of at most",
	} {
		_, err := pipeline.ParseValidationSplit(split)
		require.ErrorAs(t, err, new(*pipeline.ValidationSplitError), split)
		assert.ErrorContains(t, err, want, split)
	}
	for _, split := range []string{"train:5e-324", "train:0.9999999999999999", "validation:0.5:18446744073709551615",
		"train:0.9:7:a:b", "train:0.9:7:" + strings.Repeat("x", pipeline.MaxName)} {
		_, err := pipeline.ParseValidationSplit(split)
		require.NoError(t, err, split)
	}
	s, err := pipeline.Parse([]byte("sparse: [{columns: [c_0]}]\nfilter: {column: i, eq: 1}"))
	require.NoError(t, err)
	_, err = s.WithSplit(pipeline.ValidationSplit{Part: "test", Rate: 2})
	require.ErrorAs(t, err, new(*pipeline.ValidationSplitError))
	for column, want := range map[string]struct {
		kind error
		text string
	}{
		"i_nul": {problem.ErrMissingColumn, `did you mean "i_null"?`},
		"f":     {problem.ErrColumnType, `sampling takes ids or strings as its key, and "f" has float32`},
		"list":  {problem.ErrColumnType, `"list" has lists, and a filter takes one value a row`},
	} {
		for _, part := range []string{"train", "validation"} {
			_, err := resolve.Pipeline(withSplit(t, s, part+":0.9:7:"+column), zoo())
			require.ErrorIs(t, err, want.kind, column)
			assert.ErrorContains(t, err, want.text)
			assert.ErrorContains(t, err, "split", "the place is the split, not the pipeline's filter")
			assert.NotContains(t, err.Error(), "filter.")
		}
	}
	deep := strings.Repeat("{not: ", 31) + "{column: i, eq: 1}" + strings.Repeat("}", 31)
	s, err = pipeline.Parse([]byte("sparse: [{columns: [c_0]}]\nfilter: " + deep))
	require.NoError(t, err)
	_, err = s.WithSplit(pipeline.ValidationSplit{Part: "train", Rate: 0.9})
	require.ErrorContains(t, err, "filters within filters, deeper than 32")
}

func FuzzParseValidationSplit(f *testing.F) {
	for _, text := range []string{"train:0.9", "validation:1e-9:7", "train:0.5:0:a:b", "train:0x1p-1:1", "x:2:-1:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := pipeline.ParseValidationSplit(text)
		if err != nil {
			require.ErrorAs(t, err, new(*pipeline.ValidationSplitError))
			return
		}
		again, err := pipeline.ParseValidationSplit(v.String())
		require.NoError(t, err)
		require.Equal(t, v, again)
	})
}

// A job trains on the rows of nine users in ten, and another takes the rows of the others.
func ExampleSpec_WithSplit() {
	all, err := pipeline.Named("rm1")
	if err != nil {
		panic(err)
	}
	for _, part := range []string{pipeline.PartTrain, pipeline.PartValidation} {
		spec, err := all.WithSplit(pipeline.ValidationSplit{Part: part, Rate: 0.9, Seed: 7, By: "user"})
		if err != nil {
			panic(err)
		}
		_, filter, _ := strings.Cut(string(spec.YAML()), "filter: ")
		fmt.Print(filter)
	}
	// Output:
	// {"any":[{"sampling":{"key":"user","rate":0.9,"salt":7314803070772415537}},{"column":"user","null":true}]}
	// {"not":{"any":[{"sampling":{"key":"user","rate":0.9,"salt":7314803070772415537}},{"column":"user","null":true}]}}
}
