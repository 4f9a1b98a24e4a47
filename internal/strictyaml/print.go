package strictyaml

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// width is where comments are wrapped.
const width = 100

// Print writes a struct of fields as a document that Decode reads back, each field under its doc. Under an empty list
// of structs one of its elements is shown as a comment.
func Print(v any) []byte {
	var b bytes.Buffer
	printStruct(&b, reflect.ValueOf(v), "", true)
	return b.Bytes()
}

func printStruct(b *bytes.Buffer, v reflect.Value, indent string, apart bool) {
	for i, f := range fields(v.Type()) {
		if apart && i > 0 {
			b.WriteString("\n")
		}
		doc := f.doc
		if f.enum != "" {
			doc += ": one of " + strings.ReplaceAll(f.enum, ",", ", ")
		}
		for _, line := range wrap(doc, width-len(indent)-2) {
			b.WriteString(indent + "# " + line + "\n")
		}
		b.WriteString(indent + f.key + ":")
		printValue(b, v.FieldByIndex(f.index), indent)
	}
}

func printValue(b *bytes.Buffer, v reflect.Value, indent string) {
	_, text := v.Interface().(encoding.TextMarshaler)
	switch {
	case v.Kind() == reflect.Struct && !text:
		b.WriteString("\n")
		printStruct(b, v, indent+"  ", false)
	case v.Kind() == reflect.Slice && v.Len() == 0:
		b.WriteString(" []\n")
		if e := v.Type().Elem(); e.Kind() == reflect.Struct {
			var one bytes.Buffer
			printStruct(&one, reflect.Zero(e), "", false)
			for line := range strings.Lines(one.String()) {
				b.WriteString(indent + "#   " + line)
			}
		}
	case v.Kind() == reflect.Slice:
		b.WriteString("\n")
		for i := range v.Len() {
			if e := v.Index(i); e.Kind() == reflect.Struct {
				var one bytes.Buffer
				printStruct(&one, e, indent+"    ", false)
				lines := strings.TrimPrefix(one.String(), indent+"    ")
				b.WriteString(indent + "  - " + lines)
			} else {
				b.WriteString(indent + "  - " + plain(e) + "\n")
			}
		}
	default:
		b.WriteString(" " + plain(v) + "\n")
	}
}

// plain writes a scalar.
func plain(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		t, err := m.MarshalText()
		if err != nil {
			panic("strictyaml: " + err.Error())
		}
		return quoted(string(t))
	}
	switch v.Kind() {
	case reflect.String:
		return quoted(v.String())
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// quoted writes a string, in quotes where it needs them.
func quoted(s string) string {
	b, err := yaml.Marshal(s)
	if err != nil || bytes.Count(b, []byte("\n")) != 1 {
		return strconv.Quote(s)
	}
	return strings.TrimSpace(string(b))
}

// wrap breaks words into lines.
func wrap(s string, at int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > at {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Schema writes the JSON Schema (draft 2020-12) of documents that Decode takes, with the struct's values as defaults.
func Schema(title string, v any) []byte {
	s := schemaOf(reflect.ValueOf(v), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("strictyaml: " + err.Error())
	}
	return append(b, '\n')
}

// object is a JSON object; encoding/json sorts its keys.
type object map[string]any

func schemaOf(v reflect.Value, enum string) object {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		o := object{"type": "string", "description": name(v.Type())}
		if t, err := m.MarshalText(); err == nil {
			o["default"] = string(t)
		}
		// An unquoted number is a number to YAML, and taken too.
		o["type"] = []string{"string", "integer"}
		return o
	}
	o := object{"default": v.Interface()}
	switch v.Kind() {
	case reflect.Struct:
		properties := object{}
		for _, f := range fields(v.Type()) {
			p := schemaOf(v.FieldByIndex(f.index), f.enum)
			p["description"] = f.doc
			properties[f.key] = p
		}
		return object{"type": "object", "additionalProperties": false, "properties": properties}
	case reflect.Slice:
		items := schemaOf(reflect.Zero(v.Type().Elem()), enum)
		if items["type"] != "object" {
			delete(items, "default")
		}
		o["type"] = "array"
		o["items"] = items
		if v.Len() == 0 {
			o["default"] = []any{}
		}
	case reflect.String:
		o["type"] = "string"
		if enum != "" {
			o["enum"] = strings.Split(enum, ",")
		}
	case reflect.Bool:
		o["type"] = "boolean"
	case reflect.Int, reflect.Int64:
		o["type"] = "integer"
	case reflect.Float64:
		o["type"] = "number"
	default:
		panic("strictyaml: a field of type " + v.Type().String())
	}
	return o
}
