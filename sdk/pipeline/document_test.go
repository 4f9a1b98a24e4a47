package pipeline_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// appliedByName are the operators of the document that package resolve applies by their names.
var appliedByName = []string{"target_encoding", "to_days", "to_seconds", "vocabulary"}

func TestCatalogueIsComplete(t *testing.T) {
	for _, o := range pipeline.Catalogue() {
		t.Run(o.Name, func(t *testing.T) {
			for what, text := range map[string]string{
				"summary": o.Summary, "takes": o.Takes, "yields": o.Yields, "nulls": o.Nulls, "lists": o.Lists,
				"errors": o.Errors, "source": o.Source,
			} {
				assert.NotEmpty(t, text, what)
			}
			assert.Regexp(t, `[.]$`, o.Summary)
			assert.NotEqual(t, o.Apply == nil && !slices.Contains(appliedByName, o.Name), o.Combine == nil,
				"it takes one value or several")
			assert.Equal(t, o.Combine != nil, o.Inputs > 0)
			if o.Unit != 0 {
				assert.Equal(t, o.Name, o.Unit.String(), "the unit has the operator's name")
				assert.NotZero(t, o.Unit.Version())
			}
			for _, p := range o.Params {
				assert.NotEmpty(t, p.Summary, p.Name)
				assert.Equal(t, p.Type == pipeline.ParamChoice || p.Type == pipeline.ParamWords, len(p.Choices) > 0, p.Name)
			}
			from := "columns: [x]"
			if o.Inputs > 0 {
				from = "as: f\n    inputs: [x" + strings.Repeat(", x", o.Inputs-1) + "]"
			}
			document := "sparse:\n  - " + from + "\n    ops:\n      " + cmp.Or(o.Example, "- "+o.Name)
			if o.Name == pipeline.VocabularyOperator {
				document += "\nvocabularies: {piper: {}}"
			}
			if o.Name == "fill_median" || o.Name == pipeline.TargetEncodingOperator {
				document += "\nstatistics: {train: }"
			}
			if o.Name == pipeline.TargetEncodingOperator {
				document = strings.Replace(document, "sparse", "dense", 1)
			}
			s, err := pipeline.Parse([]byte(document))
			require.NoError(t, err, "the example in the manual")
			assert.Equal(t, o.Name, append(s.Sparse, s.Dense...)[0].Ops[0].Name)
		})
	}
}

// Documentation shows only pipelines that parse.
func TestExamplesInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/pipelines.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	require.Len(t, blocks, 18)
	first, err := pipeline.Parse(blocks[0][1])
	require.NoError(t, err)
	fromName, err := pipeline.Named("rm1")
	require.NoError(t, err)
	assert.Equal(t, bare(fromName), bare(first))

	answers, err := pipeline.Parse(blocks[1][1])
	require.NoError(t, err)
	r, err := resolve.Pipeline(answers, []columntypes.Column{{Name: "answer", Kind: 4, Nullable: true}})
	require.NoError(t, err)
	_, _, err = lowering.Lower(r)
	require.NoError(t, err)
	blocks = slices.Delete(blocks, 1, 2)

	labels, err := pipeline.Parse(blocks[1][1])
	require.NoError(t, err)
	r, err = resolve.Pipeline(labels, []columntypes.Column{{Name: "click", Kind: 1, Nullable: true}, {Name: "buy",
		Kind: 1},
		{Name: "weight", Kind: 2}, {Name: "age", Kind: 1}, {Name: "price", Kind: 2}})
	require.NoError(t, err)
	require.Equal(t, []string{"buy", "weight", "age", "price"}, r.Schema().Dense)

	parts, err := pipeline.Parse(blocks[2][1])
	require.NoError(t, err)
	r, err = resolve.Pipeline(parts, []columntypes.Column{{Name: "genres", Kind: program.Bytes, Nullable: true},
		{Name: "clicks", Kind: program.Int64, List: true}})
	require.NoError(t, err)
	require.Equal(t, []string{"genre_count", "click_count"}, r.Schema().Dense)
	blocks = slices.Delete(blocks, 1, 3)

	maps, err := pipeline.Parse(blocks[1][1])
	require.NoError(t, err)
	r, err = resolve.Pipeline(maps, mapSchema())
	require.NoError(t, err)
	assert.True(t, r.Weights())

	words, err := pipeline.Parse(blocks[2][1])
	require.NoError(t, err)
	r, err = resolve.Pipeline(words, mapSchema())
	require.NoError(t, err)
	assert.True(t, r.Weights())
	assert.Len(t, r.Keys, 3)

	crosses, err := pipeline.Parse(blocks[3][1])
	require.NoError(t, err)
	r, err = resolve.Pipeline(crosses, []columntypes.Column{{Name: "user_clicks", Kind: 1, List: true}, {Name: "item",
		Kind: 1},
		{Name: "user_country", Kind: 1}})
	require.NoError(t, err)
	p, _, err := lowering.Lower(r)
	require.NoError(t, err)
	assert.Len(t, p.Graphs, 1, "both features are made in one pass")
	assert.Len(t, p.Graphs[0].Steps, 2)

	scored, err := pipeline.Parse(blocks[4][1])
	require.NoError(t, err)
	r, err = resolve.Pipeline(scored, []columntypes.Column{{Name: "clicked", Kind: 1, List: true}, {Name: "shown", Kind: 1,
		List: true}})
	require.NoError(t, err)
	assert.True(t, r.Weights())
	_, _, err = lowering.Lower(r)
	require.NoError(t, err)

	calls, err := pipeline.Parse(blocks[5][1])
	require.NoError(t, err)
	_, err = resolve.Pipeline(calls, []columntypes.Column{{Name: "int_0", Kind: 1}, {Name: "int_1", Kind: 1}})
	require.ErrorIs(t, err, problem.ErrModule)
	blocks = slices.Delete(blocks, 5, 6)

	var forms []string
	for _, b := range blocks[5:7] {
		s, err := pipeline.Parse(b[1])
		require.NoError(t, err)
		r, err := resolve.Pipeline(s, []columntypes.Column{{Name: "x", Kind: 1, Nullable: true}})
		require.NoError(t, err)
		forms = append(forms, string(r.Canonical()))
	}
	assert.Equal(t, forms[0], forms[1], "the manual says that these are the same")

	sets, err := pipeline.Parse(blocks[7][1])
	require.NoError(t, err)
	r, err = resolve.Pipeline(sets, []columntypes.Column{{Name: "user_clicks", Kind: 1, List: true}, {Name: "user_country",
		Kind: 1},
		{Name: "item", Kind: 1}})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 0}, []int{r.Keys[0].Set, r.Keys[1].Set, r.Keys[2].Set})
	for _, name := range pipeline.Names() {
		if name > "rm2" && name < "rm5" {
			continue // "rm2 to rm5"
		}
		assert.Contains(t, string(text), "`"+name+"`")
	}
}

// The JSON Schema takes every document that Parse takes, and refuses a document of a wrong shape.
func TestJSONSchema(t *testing.T) {
	var schema map[string]any
	document, err := os.ReadFile("../../docs/pipeline.schema.json") // package documents compares it with the catalogue
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(document, &schema))
	v := validator{root: schema}
	check := func(doc []byte) error {
		var value any
		require.NoError(t, yaml.Unmarshal(doc, &value))
		return v.check(schema, texts(value))
	}
	for _, name := range pipeline.Names() {
		doc, err := pipeline.Document(name)
		require.NoError(t, err)
		require.NoError(t, check(doc), name)
	}
	for name, document := range goodDocuments(t) {
		require.NoError(t, check([]byte(document)), name)
	}
	refused := 0
	refusals(t, "zoo", func(doc string) error {
		var value any
		if yaml.Unmarshal([]byte(doc), &value) == nil && v.check(schema, texts(value)) != nil {
			refused++
			_, _, err := lower(doc, zoo())
			require.Error(t, err, "%s: refused by the schema alone", doc)
		}
		return nil
	})
	assert.Greater(t, refused, 40)
}

// validator knows as much of JSON Schema as ours uses, and fails on the rest.
type validator struct{ root map[string]any }

func (v validator) check(schema, value any) error {
	for key, want := range schema.(map[string]any) {
		if err := v.keyword(schema.(map[string]any), key, want, value); err != nil {
			return err
		}
	}
	return nil
}

// texts turns the keys of mappings that are numbers into texts, as JSON has them.
func texts(value any) any {
	switch x := value.(type) {
	case []any:
		for i := range x {
			x[i] = texts(x[i])
		}
	case map[string]any:
		for key := range x {
			x[key] = texts(x[key])
		}
	case map[any]any:
		out := map[string]any{}
		for key, of := range x {
			out[fmt.Sprint(key)] = texts(of)
		}
		return out
	}
	return value
}

// anyType checks that a value is of one of several types.
func (v validator) anyType(schema map[string]any, types []any, value any) error {
	var errs []error
	for _, one := range types {
		err := v.keyword(schema, "type", one, value)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (v validator) keyword(schema map[string]any, key string, want, value any) error {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	text, isText := value.(string)
	number, isNumber := asNumber(value)
	ok := true
	switch key {
	case "$schema", "$defs", "title", "description", "default":
	case "$ref":
		return v.check(v.root["$defs"].(map[string]any)[strings.TrimPrefix(want.(string), "#/$defs/")], value)
	case "type":
		if types, several := want.([]any); several {
			return v.anyType(schema, types, value)
		}
		switch want {
		case "object":
			ok = isObject
		case "array":
			ok = isList
		case "string":
			ok = isText
		case "number":
			ok = isNumber
		case "integer":
			ok = isNumber && number == math.Trunc(number)
		case "null":
			ok = value == nil
		default:
			return fmt.Errorf("type %v is not known", want)
		}
	case "enum":
		ok = slices.ContainsFunc(want.([]any), func(x any) bool { return x == value })
	case "const":
		ok = want == value
	case "minimum":
		ok = !isNumber || number >= want.(float64)
	case "exclusiveMinimum":
		ok = !isNumber || number > want.(float64)
	case "maximum":
		ok = !isNumber || number <= want.(float64)
	case "minLength":
		ok = !isText || float64(len(text)) >= want.(float64)
	case "maxLength":
		ok = !isText || float64(len(text)) <= want.(float64)
	case "minItems":
		ok = !isList || float64(len(list)) >= want.(float64)
	case "maxItems":
		ok = !isList || float64(len(list)) <= want.(float64)
	case "minProperties":
		ok = !isObject || float64(len(object)) >= want.(float64)
	case "maxProperties":
		ok = !isObject || float64(len(object)) <= want.(float64)
	case "pattern":
		ok = !isText || regexp.MustCompile(want.(string)).MatchString(text)
	case "propertyNames":
		for name := range object {
			if err := v.check(want, name); err != nil {
				return err
			}
		}
	case "items":
		for _, item := range list {
			if err := v.check(want, item); err != nil {
				return err
			}
		}
	case "required":
		for _, name := range want.([]any) {
			if _, has := object[name.(string)]; isObject && !has {
				return fmt.Errorf("%v is missing", name)
			}
		}
	case "properties":
		for name, sub := range want.(map[string]any) {
			if x, has := object[name]; has {
				if err := v.check(sub, x); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	case "additionalProperties":
		known, _ := schema["properties"].(map[string]any)
		for name, x := range object {
			if _, has := known[name]; has {
				continue
			}
			if want == false {
				return fmt.Errorf("%s is not known", name)
			}
			if err := v.check(want, x); err != nil {
				return err
			}
		}
	case "oneOf":
		matches := 0
		for _, sub := range want.([]any) {
			if v.check(sub, value) == nil {
				matches++
			}
		}
		ok = matches == 1
	default:
		return fmt.Errorf("keyword %s is not known to this test", key)
	}
	if !ok {
		return fmt.Errorf("%v: %s %v", value, key, want)
	}
	return nil
}

func asNumber(v any) (float64, bool) {
	switch x := v.(type) {
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}
