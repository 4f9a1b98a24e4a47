package documents

import (
	"encoding/json"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// jsonSchema returns docs/pipeline.schema.json, made from the catalogue: JSON Schema, draft 2020-12, of a pipeline's
// document. Parse checks more, such as the order of borders.
func jsonSchema() []byte {
	type m = map[string]any
	str := m{"type": "string", "minLength": 1, "maxLength": pipeline.MaxName}
	object := func(required []string, properties m) m {
		o := m{"type": "object", "additionalProperties": false, "properties": properties}
		if len(required) > 0 {
			o["required"] = required
		}
		return o
	}
	var forms []any
	list := pipeline.Catalogue()
	for i := range list {
		forms = append(forms, operatorSchema(&list[i]))
	}
	groups := m{"type": "array", "maxItems": pipeline.MaxGroups, "items": m{"$ref": "#/$defs/group"}}
	patterns := m{"type": "array", "minItems": 1, "maxItems": pipeline.MaxPatterns, "items": m{"type": "string",
		"maxLength": pipeline.MaxName}}
	oneOf := func(names ...string) (choices []any) {
		for _, name := range names {
			choices = append(choices, m{"required": []string{name}})
		}
		return choices
	}
	root := object(nil, m{
		"name": str, "batch": m{"type": "integer", "minimum": 1, "maximum": pipeline.MaxBatch,
			"default": pipeline.DefaultBatch},
		"ids":        m{"enum": []string{"int32", "int64", "auto"}, "default": "int64"},
		"dense_type": m{"enum": []string{"float32", "bfloat16"}, "default": "float32"},
		"label": object([]string{"column"}, m{
			"column": str, "ops": m{"$ref": "#/$defs/ops"},
			"null": orNumber(), "nan": orNumber(),
		}),
		"values": m{"type": "array", "maxItems": pipeline.MaxGroups, "items": m{"$ref": "#/$defs/value"}},
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
	value := object([]string{"as"}, m{"as": str, "from": m{"type": "string", "maxLength": pipeline.MaxName},
		"inputs": patterns,
		"ops":    m{"$ref": "#/$defs/ops"}, "absent": absentSchema()})
	value["oneOf"] = oneOf("from", "inputs")
	root["$defs"] = m{
		"group": group, "value": value, "filter": filterSchema(),
		"ops": m{"type": "array", "maxItems": pipeline.MaxOperators, "items": m{"oneOf": forms}},
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

// operatorSchema returns the forms in which an operator may be written.
func operatorSchema(o *catalogue.Entry) any {
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
	switch short := o.Lone(); {
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

func paramSchema(p *catalogue.Param) any {
	type m = map[string]any
	s := m{"description": p.Summary}
	switch p.Type {
	case catalogue.ParamInteger:
		s["type"] = "integer"
		if p.Min != catalogue.AnyInteger {
			s["minimum"] = p.Min
		}
	case catalogue.ParamChoice:
		s["enum"] = p.Choices
	case catalogue.ParamText:
		s["type"], s["minLength"], s["maxLength"] = "string", 1, pipeline.MaxName
	case catalogue.ParamWords:
		s["type"], s["minItems"], s["maxItems"] = "array", 1, program.MaxInputs
		s["items"] = m{"enum": p.Choices}
	case catalogue.ParamTable:
		s["oneOf"] = []any{
			m{"type": "array", "minItems": 1, "maxItems": program.MaxBorders, "items": m{"type": "integer"}},
			m{"type": "object", "minProperties": 1, "maxProperties": program.MaxBorders,
				"additionalProperties": m{"type": "integer"},
				"propertyNames":        m{"pattern": "^-?[0-9]+$"}},
		}
	case catalogue.ParamTextTable:
		s["type"], s["minProperties"], s["maxProperties"] = "object", 1, program.MaxTexts
		s["additionalProperties"] = m{"type": "integer"}
		s["propertyNames"] = m{"maxLength": program.MaxTextBytes}
	case catalogue.ParamBorders:
		s["oneOf"] = []any{
			m{"type": "array", "minItems": 1, "maxItems": program.MaxBorders, "items": m{"type": "number"}},
			m{"type": "object", "additionalProperties": false, "required": []string{"log_spaced"}, "properties": m{
				"log_spaced": m{
					"type": "object", "additionalProperties": false, "required": []string{"from", "to", "count"},
					"properties": m{
						"from":  m{"type": "number", "exclusiveMinimum": 0},
						"to":    m{"type": "number", "exclusiveMinimum": 0},
						"count": m{"type": "integer", "minimum": 2, "maximum": program.MaxBorders},
					},
				},
			}},
		}
	default:
		s["type"] = "number"
	}
	switch v := p.Default.(type) {
	case catalogue.Number:
		s["default"] = v.Real()
		if v.Integer {
			s["default"] = v.Int
		}
	case catalogue.Text:
		s["default"] = string(v)
	}
	return s
}

// filterSchema is the JSON Schema of a filter, whose definition is #/$defs/filter.
func filterSchema() any {
	type m = map[string]any
	ref := m{"$ref": "#/$defs/filter"}
	form := func(required []string, properties m) m {
		return m{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
	}
	list := m{"type": "array", "minItems": 1, "maxItems": pipeline.MaxFilterTests, "items": ref}
	number := m{"type": "number"}
	compared := m{
		"column": m{"type": "string", "maxLength": pipeline.MaxName}, "null": m{"type": "boolean"},
		"in": m{"type": "array", "minItems": 1, "maxItems": pipeline.MaxFilterSet, "items": number},
	}
	for _, key := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		compared[key] = number
	}
	comparison := form([]string{"column"}, compared)
	comparison["minProperties"] = 2
	return m{"oneOf": []any{
		form([]string{"all"}, m{"all": list}), form([]string{"any"}, m{"any": list}), form([]string{"not"}, m{"not": ref}),
		form([]string{"sampling"}, m{"sampling": form([]string{"key", "rate"}, m{
			"key":  m{"type": "string", "minLength": 1, "maxLength": pipeline.MaxName},
			"rate": m{"type": "number", "minimum": 0, "maximum": 1}, "salt": m{"type": "integer", "default": 0},
		})}),
		comparison,
	}}
}

// statisticsSchema is the JSON Schema of the declarations.
func statisticsSchema() any {
	type m = map[string]any
	number := m{"type": "number"}
	name := m{"minLength": 1, "maxLength": pipeline.MaxName}
	value := m{"type": "object", "additionalProperties": false, "properties": m{"mean": number, "deviation": number,
		"min": number, "max": number, "median": number, "targets": m{"type": "string"}}}
	return m{"type": "object", "maxProperties": pipeline.MaxStatistics, "propertyNames": name,
		"additionalProperties": m{"type": []string{"object", "null"}, "additionalProperties": false, "properties": m{
			"summary": m{"type": "string", "pattern": "^[0-9a-f]{64}$"},
			"values": m{"type": "object", "maxProperties": pipeline.MaxStatisticsValues, "propertyNames": name,
				"additionalProperties": value},
		}},
	}
}

// vocabulariesSchema is the JSON Schema of the declarations.
func vocabulariesSchema() any {
	type m = map[string]any
	whole := func(least, greatest int64) m { return m{"type": "integer", "minimum": least, "maximum": greatest} }
	return m{"type": "object", "maxProperties": pipeline.MaxVocabularies,
		"propertyNames": m{"minLength": 1, "maxLength": pipeline.MaxName},
		"additionalProperties": m{"type": []string{"object", "null"}, "additionalProperties": false, "properties": m{
			"order":       m{"enum": vocabulary.OrderNames(), "default": vocabulary.FirstSeen.String()},
			"joint":       m{"type": "boolean", "default": false},
			"base":        whole(0, vocabulary.MaxBase),
			"null_id":     whole(vocabulary.LeastID, vocabulary.MaxBase),
			"rare_id":     whole(vocabulary.LeastID, vocabulary.MaxBase),
			"oov_buckets": whole(0, vocabulary.MaxBuckets),
			"min_count":   m{"type": "integer", "minimum": 1},
			"max_size":    m{"type": "integer", "minimum": 1},
			"unknown":     m{"enum": vocabulary.UnknownNames()},
		}},
	}
}
