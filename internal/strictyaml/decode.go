package strictyaml

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBytes is the most bytes that a document may have.
const MaxBytes = 1 << 20

// Error is a fault of the document.
type Error struct {
	Line, Column int    // from 1; 0 where package yaml does not name it
	Path         string // as drives[2].uri; "" for the whole
	Message      string
}

func (e *Error) Error() string {
	place := ""
	if e.Line > 0 {
		place = fmt.Sprintf("line %d", e.Line)
		if e.Column > 0 {
			place += fmt.Sprintf(", column %d", e.Column)
		}
		place += ": "
	}
	if e.Path != "" {
		place += e.Path + ": "
	}
	return place + e.Message
}

func faultf(n *yaml.Node, path, format string, a ...any) error {
	return &Error{Line: n.Line, Column: n.Column, Path: path, Message: fmt.Sprintf(format, a...)}
}

// Decode reads a document into v, a pointer to a struct of fields. A field that the document does not name keeps its
// value. An empty document names no field.
func Decode(b []byte, v any) error {
	if len(b) > MaxBytes {
		return &Error{Message: fmt.Sprintf("it has %d bytes, at most %d are read", len(b), MaxBytes)}
	}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return syntax(err)
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case err == nil:
		return faultf(&second, "", "a second document begins here: one is read")
	case !errors.Is(err, io.EOF):
		return syntax(err)
	}
	if len(doc.Content) != 1 {
		return nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	return decode(root, reflect.ValueOf(v).Elem(), "", "")
}

// Unknown returns the keys of a document, outside of its lists and maps, that v, a pointer to a struct of fields, has
// not. It returns none of a document that is not a map.
func Unknown(b []byte, v any) []string {
	var doc map[string]yaml.Node
	if len(b) > MaxBytes || yaml.Unmarshal(b, &doc) != nil {
		return nil
	}
	for _, f := range fields(reflect.TypeOf(v).Elem()) {
		delete(doc, f.key)
	}
	return slices.Sorted(maps.Keys(doc))
}

// syntax takes the line out of an error of package yaml.
func syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if digits, message, ok := strings.Cut(rest, ": "); ok {
			if line, aerr := strconv.Atoi(digits); aerr == nil {
				return &Error{Line: line, Message: message}
			}
		}
	}
	return &Error{Message: text}
}

// decode reads a node into a value.
func decode(n *yaml.Node, v reflect.Value, path, enum string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return faultf(n, path, "anchors and aliases are not used here: write it out")
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return faultf(n, path, "want %s, got %s", name(v.Type()), kind(n))
		}
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			return faultf(n, path, "%v", err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return decodeStruct(n, v, path)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			return faultf(n, path, "want a list, got %s", kind(n))
		}
		list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, c := range n.Content {
			if err := decode(c, list.Index(i), fmt.Sprintf("%s[%d]", path, i), enum); err != nil {
				return err
			}
		}
		v.Set(list)
		return nil
	}
	return scalar(n, v, path, enum)
}

func decodeStruct(n *yaml.Node, v reflect.Value, path string) error {
	if n.Kind != yaml.MappingNode {
		return faultf(n, path, "want keys and values, got %s", kind(n))
	}
	all := fields(v.Type())
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f := slices.IndexFunc(all, func(f field) bool { return f.key == key.Value })
		switch {
		case key.Kind != yaml.ScalarNode || f < 0:
			return faultf(key, path, "unknown key %q: want one of %s", key.Value, keys(all))
		case seen[key.Value]:
			return faultf(key, path, "key %q is there twice", key.Value)
		}
		seen[key.Value] = true
		sub := all[f].key
		if path != "" {
			sub = path + "." + sub
		}
		if err := decode(value, v.FieldByIndex(all[f].index), sub, all[f].enum); err != nil {
			return err
		}
	}
	return nil
}

func scalar(n *yaml.Node, v reflect.Value, path, enum string) error {
	want := name(v.Type())
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return faultf(n, path, "want %s, got %s", want, kind(n))
	}
	wrong := func() error { return faultf(n, path, "want %s, got %q", want, n.Value) }
	switch v.Kind() {
	case reflect.String:
		// Text that is not quoted and looks like a number is taken as it is written.
		if enum != "" && !slices.Contains(strings.Split(enum, ","), n.Value) {
			return faultf(n, path, "want one of %s, got %q", strings.ReplaceAll(enum, ",", ", "), n.Value)
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Value != "true" && n.Value != "false" {
			return wrong()
		}
		v.SetBool(n.Value == "true")
	case reflect.Int, reflect.Int64:
		x, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			return wrong()
		}
		v.SetInt(x)
	case reflect.Float64:
		x, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || x != x || x-x != 0 {
			return wrong()
		}
		v.SetFloat(x)
	default:
		panic("strictyaml: a field of type " + v.Type().String())
	}
	return nil
}

// kind names the kind of a node.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return fmt.Sprintf("%q", n.Value)
}

// name returns the word for a value of a type in messages.
func name(t reflect.Type) string {
	if n, ok := reflect.New(t).Interface().(interface{ Want() string }); ok {
		return n.Want()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return t.Name()
}

// field is a field of a struct.
type field struct {
	index          []int // as reflect.Value.FieldByIndex takes it
	key, doc, enum string
}

// fields returns the fields of a struct in their order, those of an embedded struct in its place.
func fields(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, doc := f.Tag.Get("yaml"), f.Tag.Get("doc")
		if f.Anonymous && f.Type.Kind() == reflect.Struct && key == "" && doc == "" {
			for _, inner := range fields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				list = append(list, inner)
			}
			continue
		}
		if key == "" || doc == "" || !f.IsExported() {
			panic(fmt.Sprintf("strictyaml: field %s of %s lacks its yaml or doc tag", f.Name, t))
		}
		list = append(list, field{[]int{i}, key, doc, f.Tag.Get("enum")})
	}
	for i, f := range list {
		if slices.ContainsFunc(list[:i], func(earlier field) bool { return earlier.key == f.key }) {
			panic(fmt.Sprintf("strictyaml: %s has the key %s twice", t, f.key))
		}
	}
	return list
}

func keys(all []field) string {
	var list []string
	for _, f := range all {
		list = append(list, f.key)
	}
	return strings.Join(list, ", ")
}
