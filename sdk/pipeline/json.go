package pipeline

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// JSON writes the spec as a document in JSON, for programs: JSON is YAML, so [Parse] reads it back to the same spec
// with other positions. A real number has a fraction or an exponent. Infinite borders, for which JSON has no word, are
// the numbers 1e999 and -1e999, which readers of JSON take for infinities and Parse refuses.
func (s *Spec) JSON() []byte {
	w := jsonWriter{}
	w.begin('{')
	if s.Name != "" {
		w.key("name").text(s.Name)
	}
	if s.Batch != 0 {
		w.key("batch").raw(strconv.Itoa(s.Batch))
	}
	if s.IDs == program.IDs32 {
		w.key("ids").text("int32")
	}
	if s.FitIDs {
		w.key("ids").text("auto")
	}
	if s.DenseType != program.DenseFloat32 {
		w.key("dense_type").text(s.DenseType.String())
	}
	if s.Label != nil {
		w.key("label").begin('{')
		w.key("column").text(s.Label.Column)
		w.ops(s.Label.Ops)
		w.end('}')
	}
	if len(s.Values) > 0 {
		w.key("values").begin('[')
		for i := range s.Values {
			w.item().namedValue(&s.Values[i])
		}
		w.end(']')
	}
	for _, list := range s.groupLists() {
		if len(list.groups) == 0 {
			continue
		}
		w.key(list.name).begin('[')
		for i := range list.groups {
			w.item().group(&list.groups[i])
		}
		w.end(']')
	}
	w.vocabularies(s.Vocabularies)
	if len(s.Statistics) > 0 {
		w.key("statistics").statistics(s.Statistics)
	}
	if s.Filter != nil {
		w.key("filter").filter(s.Filter)
	}
	w.end('}')
	return []byte(w.b.String())
}

// jsonWriter writes JSON without spaces.
type jsonWriter struct {
	b     strings.Builder
	first bool // nothing was written since the last opening bracket
}

func (w *jsonWriter) raw(s string) { w.b.WriteString(s) }

func (w *jsonWriter) begin(bracket byte) {
	w.b.WriteByte(bracket)
	w.first = true
}

func (w *jsonWriter) end(bracket byte) {
	w.b.WriteByte(bracket)
	w.first = false
}

// item begins the next item of a list.
func (w *jsonWriter) item() *jsonWriter {
	if !w.first {
		w.b.WriteByte(',')
	}
	w.first = false
	return w
}

// key begins the next member of an object.
func (w *jsonWriter) key(name string) *jsonWriter {
	w.item().text(name)
	w.b.WriteByte(':')
	return w
}

func (w *jsonWriter) text(s string) {
	b, err := json.Marshal(s)
	if err == nil { // a string always marshals
		w.b.Write(b)
	}
}

func (w *jsonWriter) patterns(patterns []Pattern) {
	w.begin('[')
	for _, pattern := range patterns {
		w.item().text(pattern.Text)
	}
	w.end(']')
}

func (w *jsonWriter) namedValue(v *NamedValue) {
	w.begin('{')
	w.key("as").text(v.As)
	if len(v.Inputs) > 0 {
		w.key("inputs").patterns(v.Inputs)
	} else {
		w.key("from").text(v.From.Text)
	}
	if v.AllowAbsent {
		w.key("absent").text("allow")
	}
	w.ops(v.Ops)
	w.end('}')
}

func (w *jsonWriter) group(g *Group) {
	w.begin('{')
	if len(g.Inputs) > 0 {
		w.key("inputs").patterns(g.Inputs)
	} else {
		w.key("columns").patterns(g.Columns)
	}
	if g.As != "" {
		w.key("as").text(g.As)
	}
	if g.DropScores {
		w.key("scores").text("drop")
	}
	if g.Deduplicate {
		w.key("deduplicate").raw("true")
	}
	if g.AllowAbsent {
		w.key("absent").text("allow")
	}
	if g.KeepNaN {
		w.key("nan").text("keep")
	}
	w.ops(g.Ops)
	w.end('}')
}

// ops writes the member "ops" if there are operators.
func (w *jsonWriter) ops(ops []Op) {
	if len(ops) == 0 {
		return
	}
	w.key("ops").begin('[')
	for i := range ops {
		w.item().begin('{')
		w.key(ops[i].Name).begin('{')
		for _, a := range ops[i].Args {
			w.key(a.Name).value(a.Value)
		}
		w.end('}')
		w.end('}')
	}
	w.end(']')
}

// vocabularies writes the member "vocabularies" if there are any.
func (w *jsonWriter) vocabularies(list []Vocabulary) {
	if len(list) == 0 {
		return
	}
	w.key("vocabularies").begin('{')
	for i := range list {
		w.key(list[i].Name).begin('{')
		list[i].declarations(func(key string, value any) {
			w.key(key)
			if b, err := json.Marshal(value); err == nil { // strings, numbers and truth values always marshal
				w.b.Write(b)
			}
		})
		w.end('}')
	}
	w.end('}')
}

func (w *jsonWriter) value(v Value) {
	switch x := v.(type) {
	case Number:
		w.number(x)
	case Text:
		w.text(string(x))
	case Borders:
		if l := x.LogSpaced; l != nil {
			w.begin('{')
			w.key("log_spaced").begin('{')
			w.key("from").number(Real(l.From))
			w.key("to").number(Real(l.To))
			w.key("count").raw(strconv.Itoa(l.Count))
			w.end('}')
			w.end('}')
			return
		}
		w.begin('[')
		for _, border := range x.List {
			w.item().number(border)
		}
		w.end(']')
	case IDTable:
		w.table(x)
	case TextTable:
		w.begin('{')
		for i, v := range x.Values {
			w.key(x.Keys[i]).raw(strconv.FormatInt(v, 10))
		}
		w.end('}')
	case Words:
		w.begin('[')
		for _, word := range x {
			w.item().text(word)
		}
		w.end(']')
	default:
		w.raw("null")
	}
}

// table writes a table of ids: a list, or an object, whose keys JSON has in quotes.
func (w *jsonWriter) table(t IDTable) {
	if t.Keys == nil {
		w.begin('[')
		for _, v := range t.Values {
			w.item().raw(strconv.FormatInt(v, 10))
		}
		w.end(']')
		return
	}
	w.begin('{')
	for i, v := range t.Values {
		w.key(strconv.FormatInt(t.Keys[i], 10)).raw(strconv.FormatInt(v, 10))
	}
	w.end('}')
}

func (w *jsonWriter) number(n Number) {
	switch s := n.String(); s {
	case ".inf":
		w.raw("1e999")
	case "-.inf":
		w.raw("-1e999")
	default:
		w.raw(s)
	}
}
