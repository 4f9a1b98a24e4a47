package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

//go:generate go test -run ^TestDocuments$ . -update

// Manual returns docs/operators.md, made from the catalogue.
func Manual() []byte {
	var b strings.Builder
	b.WriteString(`<!-- Made of fpga/operator and sdk/pipeline by "go generate ./sdk/pipeline". Do not edit. -->

# Operators

A pipeline passes each column through a chain of operators. Every operator has a reference that reads like its
definition, a kernel, and golden vectors; the same bytes come out of every engine. [pipelines.md](pipelines.md) says
how chains are written.

Rules that hold for all of them:

- Integers are int64 inside: unsigned ones are zero-extended, others sign-extended. Booleans are 0 and 1.
- Integers and float64 become float32 (nearest, ties to even) on entering ` + "`log`, `logit`" + `, ` +
		"`box_cox`" + `, a float32
  comparison, or the dense and label tensors. Nothing becomes an integer by itself.
- A NaN is a value and not a null: ` + "`fill_null` and `fill_median`" + ` leave it, ` + "`clamp`, `log`, `logit`" +
		`, ` + "`box_cox`, `normalize`" + `
  and ` + "`min_max`" + ` pass it on, ` + "`bucketize`" + ` has the parameter ` + "`nan`" + `, ` + "`onehot`" +
		` gives it class 0, and ` + "`fill_nan`" + `
  replaces it. One that arrives in a dense feature fails the split, unless the group says ` + "`nan: keep`" + `, and one
  that arrives in the label always does, as an infinity there. Dense features take infinities, which ` + "`clamp`" + `
  bounds. NaN made by arithmetic is 7fc00000h. Operators that only move values keep their bits.
- A uint64 from 2^63 on is an id whose bits count, in hashes, tables and keys; an operator or a tensor that takes it as
  a number fails the split, since an int64 has no such number.
- Sparse features: a null, or a list with a null element that reaches any operator but ` + "`fill_null`" + `, ` +
		`becomes a list
  of length 0. Dense features and the label have no place for a null: a pipeline that lets one through is refused.
- Scored lists: operators work on the ids, and the scores, which become weights, stay with the ids that are left. ` +
		"`firstx`" + `
  cuts both, and ` + "`ngram`" + ` and ` + "`list_slice`" + ` refuse them; a list with a null among its scores ` +
		`becomes length 0
  before the first operator.

`)
	list := Catalogue()
	b.WriteString("| operator | takes | yields | does |\n|---|---|---|---|\n")
	for i := range list {
		o := &list[i]
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", o.Name, o.Name, cell(o.Takes), cell(o.Yields),
			cell(firstSentence(o.Summary)))
	}
	for i := range list {
		list[i].manual(&b)
	}
	return []byte(b.String())
}

// cell returns a text as a cell of a table in Markdown, where a bar ends a cell even in code.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

func (o *Operator) manual(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n    %s\n\n", o.Name, o.Summary, o.example())
	if len(o.Params) > 0 {
		b.WriteString("| parameter | type | default | |\n|---|---|---|---|\n")
		for i := range o.Params {
			p := &o.Params[i]
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, cell(typeText(p)), cell(defaultText(p)), cell(p.Summary))
		}
		b.WriteByte('\n')
	}
	for _, line := range [][2]string{
		{"Takes", o.Takes}, {"Yields", o.Yields}, {"Nulls", o.Nulls}, {"Lists", o.Lists}, {"Errors", o.Errors},
		{"Source", o.Source},
	} {
		fmt.Fprintf(b, "- %s: %s.\n", line[0], line[1])
	}
	if o.Unit != 0 {
		fmt.Fprintf(b, "- Unit: %d, version %d.\n", uint16(o.Unit), o.Unit.Version())
	}
}

// example returns one use, as YAML.
func (o *Operator) example() string {
	if len(o.Params) == 0 {
		return "- " + o.Name
	}
	return o.Example
}

func typeText(p *Param) string {
	switch {
	case p.Type == ParamWords:
		return "list of `" + strings.Join(p.Choices, "`, `") + "`"
	case p.Type == ParamChoice:
		return "`" + strings.Join(p.Choices, "`, `") + "`"
	case p.Type == ParamInteger && p.Min != catalogue.AnyInteger:
		return fmt.Sprintf("integer, at least %d", p.Min)
	}
	return p.Type.String()
}

func defaultText(p *Param) string {
	switch v := p.Default.(type) {
	case Number:
		return "`" + strings.TrimSuffix(v.String(), ".0") + "`"
	case Text:
		return "`" + string(v) + "`"
	}
	if p.Optional {
		return "none"
	}
	return "must be given"
}

// JSONSchema returns docs/pipeline.schema.json, made from the catalogue: JSON Schema, draft 2020-12, of a pipeline's
// document. Parse checks more, such as the order of borders.
func JSONSchema() []byte {
	type m = map[string]any
	str := m{"type": "string", "minLength": 1, "maxLength": maxName}
	object := func(required []string, properties m) m {
		o := m{"type": "object", "additionalProperties": false, "properties": properties}
		if len(required) > 0 {
			o["required"] = required
		}
		return o
	}
	var forms []any
	list := Catalogue()
	for i := range list {
		forms = append(forms, list[i].jsonSchema())
	}
	groups := m{"type": "array", "maxItems": maxGroups, "items": m{"$ref": "#/$defs/group"}}
	patterns := m{"type": "array", "minItems": 1, "maxItems": maxPatterns, "items": m{"type": "string",
		"maxLength": maxName}}
	oneOf := func(names ...string) (choices []any) {
		for _, name := range names {
			choices = append(choices, m{"required": []string{name}})
		}
		return choices
	}
	root := object(nil, m{
		"name": str, "batch": m{"type": "integer", "minimum": 1, "maximum": MaxBatch, "default": DefaultBatch},
		"ids":        m{"enum": []string{"int32", "int64", "auto"}, "default": "int64"},
		"dense_type": m{"enum": []string{"float32", "bfloat16"}, "default": "float32"},
		"label": object([]string{"column"}, m{
			"column": str, "ops": m{"$ref": "#/$defs/ops"},
			"null": orNumber(), "nan": orNumber(),
		}),
		"values": m{"type": "array", "maxItems": maxGroups, "items": m{"$ref": "#/$defs/value"}},
		"dense":  groups, "sparse": groups, "generated": groups,
		"vocabularies": vocabulariesSchema(), "statistics": statisticsSchema(), "filter": m{"$ref": "#/$defs/filter"},
	})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Millrace pipeline"
	group := object(nil, m{
		"columns": patterns, "inputs": patterns, "ops": m{"$ref": "#/$defs/ops"}, "as": str,
		"nan":    m{"enum": []string{"fail", "keep"}, "default": "fail"},
		"scores": m{"enum": []string{"keep", "drop"}, "default": "keep"}, "deduplicate": m{"type": "boolean",
			"default": false}, "absent": absentSchema(),
	})
	group["oneOf"] = oneOf("columns", "inputs")
	value := object([]string{"as"}, m{"as": str, "from": m{"type": "string", "maxLength": maxName}, "inputs": patterns,
		"ops": m{"$ref": "#/$defs/ops"}, "absent": absentSchema()})
	value["oneOf"] = oneOf("from", "inputs")
	root["$defs"] = m{
		"group": group, "value": value, "filter": filterSchema(),
		"ops": m{"type": "array", "maxItems": maxOps, "items": m{"oneOf": forms}},
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil // strings, numbers and maps of them always marshal
	}
	return append(b, '\n')
}

// orNumber returns the values that the keys null and nan of a label can have.
func orNumber() any {
	type m = map[string]any
	return m{"oneOf": []any{m{"const": "fail"}, m{"type": "number"}}, "default": "fail"}
}

// absentSchema returns the values of the key absent.
func absentSchema() any { return map[string]any{"enum": []string{"allow", "fail"}, "default": "fail"} }

// jsonSchema returns the forms in which the operator may be written.
func (o *Operator) jsonSchema() any {
	type m = map[string]any
	properties, required := m{}, []string{}
	for i := range o.Params {
		p := &o.Params[i]
		properties[p.Name] = paramSchema(p)
		if p.Required() {
			required = append(required, p.Name)
		}
	}
	full := m{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		full["required"] = required
	}
	if o.Name == "clamp" {
		full["minProperties"] = 1
	}
	value := any(full)
	switch short := o.short(); {
	case short != nil:
		value = m{"oneOf": []any{full, paramSchema(short)}}
	case len(required) == 0 && full["minProperties"] == nil:
		value = m{"oneOf": []any{full, m{"type": "null"}}}
	}
	withName := m{
		"type": "object", "description": o.Summary, "additionalProperties": false,
		"required": []string{o.Name}, "properties": m{o.Name: value},
	}
	if len(required) == 0 && full["minProperties"] == nil {
		return m{"oneOf": []any{m{"const": o.Name}, withName}}
	}
	return withName
}

func paramSchema(p *Param) any {
	type m = map[string]any
	s := m{"description": p.Summary}
	switch p.Type {
	case ParamInteger:
		s["type"] = "integer"
		if p.Min != catalogue.AnyInteger {
			s["minimum"] = p.Min
		}
	case ParamChoice:
		s["enum"] = p.Choices
	case ParamText:
		s["type"], s["minLength"], s["maxLength"] = "string", 1, maxName
	case ParamWords:
		s["type"], s["minItems"], s["maxItems"] = "array", 1, program.MaxInputs
		s["items"] = m{"enum": p.Choices}
	case ParamTable:
		s["oneOf"] = []any{
			m{"type": "array", "minItems": 1, "maxItems": maxBorders, "items": m{"type": "integer"}},
			m{"type": "object", "minProperties": 1, "maxProperties": maxBorders, "additionalProperties": m{"type": "integer"},
				"propertyNames": m{"pattern": "^-?[0-9]+$"}},
		}
	case ParamTextTable:
		s["type"], s["minProperties"], s["maxProperties"] = "object", 1, program.MaxTexts
		s["additionalProperties"] = m{"type": "integer"}
		s["propertyNames"] = m{"maxLength": program.MaxTextBytes}
	case ParamBorders:
		s["oneOf"] = []any{
			m{"type": "array", "minItems": 1, "maxItems": maxBorders, "items": m{"type": "number"}},
			m{"type": "object", "additionalProperties": false, "required": []string{"log_spaced"}, "properties": m{
				"log_spaced": m{
					"type": "object", "additionalProperties": false, "required": []string{"from", "to", "count"},
					"properties": m{
						"from":  m{"type": "number", "exclusiveMinimum": 0},
						"to":    m{"type": "number", "exclusiveMinimum": 0},
						"count": m{"type": "integer", "minimum": 2, "maximum": maxBorders},
					},
				},
			}},
		}
	default:
		s["type"] = "number"
	}
	switch v := p.Default.(type) {
	case Number:
		s["default"] = v.Real()
		if v.Integer {
			s["default"] = v.Int
		}
	case Text:
		s["default"] = string(v)
	}
	return s
}
