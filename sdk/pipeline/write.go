package pipeline

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/summary"
)

// JSON writes the spec as a document in JSON, for programs: JSON is YAML, so [Parse] reads it back to the same spec
// with other positions. A real number has a fraction or an exponent. Infinite borders, for which JSON has no word, are
// the numbers 1e999 and -1e999, which readers of JSON take for infinities and Parse refuses.
func (s *Spec) JSON() []byte {
	var w documentWriter
	w.mapping(s.members())
	return []byte(w.String())
}

// YAML writes the spec as a document. [Parse] reads it back to the same spec with other positions. Text that is not
// UTF-8, which no document can hold, is replaced.
func (s *Spec) YAML() []byte {
	w := documentWriter{yaml: true}
	for _, m := range s.members() {
		w.WriteString(m.key + ":")
		switch v := m.value.(type) {
		case sequence: // groups and values: a line for each of their members
			w.WriteByte('\n')
			for _, item := range v {
				for i, member := range item.(mapping) {
					w.WriteString([]string{"  - ", "    "}[min(i, 1)])
					w.member(member)
					w.WriteByte('\n')
				}
			}
			continue
		case named:
			w.WriteByte('\n')
			for _, member := range v {
				w.WriteString("  " + QuoteYAML(member.key) + ": ")
				w.value(member.value)
				w.WriteByte('\n')
			}
			continue
		}
		w.WriteByte(' ')
		w.value(m.value)
		w.WriteByte('\n')
	}
	return []byte(w.String())
}

// FormatValue writes the value of a parameter as a document in YAML has it.
func FormatValue(v Value) string {
	w := documentWriter{yaml: true}
	w.value(parameterNode(v))
	return w.String()
}

// A document is written by way of these nodes. Others are a string, bool, int64, Number and [operatorNode]; nil is
// null.
type (
	// mapping has the document's own keys.
	mapping []member
	// named is a mapping whose keys are names or texts, which YAML may need to have in quotes.
	named []member
	// jsonNode is written as JSON in YAML, too.
	jsonNode struct{ value any }
	sequence []any
	member   struct {
		key   string
		value any
	}
	// operatorNode is a mapping of one operator, which YAML has without braces in a list.
	operatorNode struct {
		name       string
		parameters mapping
	}
)

// add adds a member if the condition holds.
func (m *mapping) add(condition bool, key string, value any) {
	if condition {
		*m = append(*m, member{key, value})
	}
}

// members returns the document's mapping.
func (s *Spec) members() (m mapping) {
	m.add(s.Name != "", "name", s.Name)
	m.add(s.Batch != 0, "batch", int64(s.Batch))
	m.add(s.IDs == program.IDs32, "ids", "int32")
	m.add(s.FitIDs, "ids", "auto")
	m.add(s.DenseType != program.DenseFloat32, "dense_type", s.DenseType.String())
	if s.Label != nil {
		label := mapping{{"column", s.Label.Column}}
		label.add(len(s.Label.Ops) > 0, "ops", operatorsNode(s.Label.Ops))
		m.add(true, "label", label)
	}
	values := make(sequence, len(s.Values))
	for i := range s.Values {
		v := &s.Values[i]
		of := mapping{{"as", v.As}}
		of.add(len(v.Inputs) > 0, "inputs", patternsNode(v.Inputs))
		of.add(len(v.Inputs) == 0, "from", v.From.Text)
		of.add(v.AllowAbsent, "absent", "allow")
		of.add(len(v.Ops) > 0, "ops", operatorsNode(v.Ops))
		values[i] = of
	}
	m.add(len(values) > 0, "values", values)
	for _, list := range s.GroupLists() {
		groups := make(sequence, len(list.Groups))
		for i := range list.Groups {
			groups[i] = list.Groups[i].members()
		}
		m.add(len(groups) > 0, list.Name, groups)
	}
	vocabularies := make(named, len(s.Vocabularies))
	for i := range s.Vocabularies {
		vocabularies[i] = member{s.Vocabularies[i].Name, s.Vocabularies[i].members()}
	}
	m.add(len(vocabularies) > 0, "vocabularies", vocabularies)
	statistics := make(named, len(s.Statistics))
	for i := range s.Statistics {
		statistics[i] = member{s.Statistics[i].Name, s.Statistics[i].members()}
	}
	m.add(len(statistics) > 0, "statistics", jsonNode{statistics})
	if s.Filter != nil {
		m.add(true, "filter", jsonNode{s.Filter.members()})
	}
	return m
}

func (g *Group) members() (m mapping) {
	m.add(len(g.Inputs) > 0, "inputs", patternsNode(g.Inputs))
	m.add(len(g.Inputs) == 0, "columns", patternsNode(g.Columns))
	m.add(g.As != "", "as", g.As)
	m.add(g.DropScores, "scores", "drop")
	m.add(g.Deduplicate, "deduplicate", true)
	m.add(g.AllowAbsent, "absent", "allow")
	m.add(g.KeepNaN, "nan", "keep")
	m.add(len(g.Ops) > 0, "ops", operatorsNode(g.Ops))
	return m
}

// members returns the members of a vocabulary's declaration that are not defaults.
func (v *Vocabulary) members() (m mapping) {
	r := &v.Rules
	m.add(r.Order != 0, "order", r.Order.String())
	m.add(r.Joint, "joint", true)
	m.add(r.Base != 0, "base", r.Base)
	m.add(r.Null.Given, "null_id", r.Null.ID)
	m.add(r.Rare.Given, "rare_id", r.Rare.ID)
	m.add(r.Buckets != 0, "oov_buckets", int64(r.Buckets))
	m.add(r.MinCount != 0, "min_count", int64(r.MinCount))
	m.add(r.MaxSize != 0, "max_size", int64(r.MaxSize))
	m.add(v.Unknown != 0, "unknown", v.Unknown.String())
	return m
}

func (n *NamedStatistics) members() (m mapping) {
	m.add(n.Summary != (summary.Digest{}), "summary", hex.EncodeToString(n.Summary[:]))
	values := make(named, len(n.Values))
	for i := range n.Values {
		v := &n.Values[i]
		var of mapping
		for _, key := range numberKeys {
			if x := *v.field(key); x != nil {
				of.add(true, key, Real(*x))
			}
		}
		if v.Targets != nil {
			text, err := v.Targets.MarshalText()
			of.add(err == nil, targetsKey, string(text)) // a table that was read or made
		}
		values[i] = member{v.Name, of}
	}
	m.add(n.Values != nil, "values", values)
	return m
}

func (f *Filter) members() (m mapping) {
	list := func(filters []Filter) any {
		items := make(sequence, len(filters))
		for i := range filters {
			items[i] = filters[i].members()
		}
		return items
	}
	switch {
	case f.All != nil:
		return mapping{{"all", list(f.All)}}
	case f.Any != nil:
		return mapping{{"any", list(f.Any)}}
	case f.Not != nil:
		return mapping{{"not", f.Not.members()}}
	case f.Sampling != nil:
		return mapping{{"sampling", mapping{{"key", f.Sampling.Key}, {"rate", Real(f.Sampling.Rate)},
			{"salt", f.Sampling.Salt}}}}
	}
	m = mapping{{"column", f.Column}}
	for i := range f.Comparisons {
		c := &f.Comparisons[i]
		var constants any
		switch {
		case c.Key() == "null":
			constants = c.Operator == "null"
		case c.Operator == "in":
			constants = numbersNode(c.Values)
		case len(c.Values) > 0:
			constants = c.Values[0]
		}
		m.add(true, c.Key(), constants)
	}
	return m
}

func patternsNode(patterns []Pattern) sequence {
	list := make(sequence, len(patterns))
	for i := range patterns {
		list[i] = patterns[i].Text
	}
	return list
}

func numbersNode(numbers []Number) sequence {
	list := make(sequence, len(numbers))
	for i := range numbers {
		list[i] = numbers[i]
	}
	return list
}

func operatorsNode(ops []Op) sequence {
	list := make(sequence, len(ops))
	for i := range ops {
		parameters := make(mapping, len(ops[i].Args))
		for j, a := range ops[i].Args {
			parameters[j] = member{a.Name, parameterNode(a.Value)}
		}
		list[i] = operatorNode{ops[i].Name, parameters}
	}
	return list
}

// parameterNode returns the value of a parameter.
func parameterNode(v Value) any {
	switch x := v.(type) {
	case Number:
		return x
	case Text:
		return string(x)
	case Borders:
		if l := x.LogSpaced; l != nil {
			return mapping{{"log_spaced", mapping{{"from", Real(l.From)}, {"to", Real(l.To)}, {"count", int64(l.Count)}}}}
		}
		return numbersNode(x.List)
	case Words:
		list := make(sequence, len(x))
		for i := range x {
			list[i] = x[i]
		}
		return list
	case IDTable:
		if x.Keys == nil {
			list := make(sequence, len(x.Values))
			for i := range x.Values {
				list[i] = x.Values[i]
			}
			return jsonNode{list}
		}
		pairs := make(mapping, len(x.Values))
		for i := range x.Values {
			pairs[i] = member{strconv.FormatInt(x.Keys[i], 10), x.Values[i]}
		}
		return jsonNode{pairs}
	case TextTable:
		pairs := make(named, len(x.Values))
		for i := range x.Values {
			pairs[i] = member{x.Keys[i], x.Values[i]}
		}
		return pairs
	}
	return nil
}

// documentWriter writes nodes as JSON without spaces, or in the flow style of YAML.
type documentWriter struct {
	strings.Builder
	yaml bool
}

func (w *documentWriter) value(v any) {
	switch x := v.(type) {
	case string:
		w.text(x)
	case bool:
		w.WriteString(strconv.FormatBool(x))
	case int64:
		w.WriteString(strconv.FormatInt(x, 10))
	case Number:
		w.number(x)
	case mapping:
		w.mapping(x)
	case named:
		w.list('{', len(x), '}', func(i int) {
			w.text(x[i].key)
			w.separate(':')
			w.value(x[i].value)
		})
	case sequence:
		w.list('[', len(x), ']', func(i int) { w.value(x[i]) })
	case operatorNode:
		if w.yaml {
			w.member(member{x.name, x.parameters})
		} else {
			w.mapping(mapping{{x.name, x.parameters}})
		}
	case jsonNode:
		inner := documentWriter{}
		inner.value(x.value)
		w.WriteString(inner.String())
	default:
		w.WriteString("null")
	}
}

func (w *documentWriter) list(begin byte, n int, end byte, item func(i int)) {
	w.WriteByte(begin)
	for i := range n {
		if i > 0 {
			w.separate(',')
		}
		item(i)
	}
	w.WriteByte(end)
}

// separate writes a mark, and a space in YAML.
func (w *documentWriter) separate(mark byte) {
	w.WriteByte(mark)
	if w.yaml {
		w.WriteByte(' ')
	}
}

func (w *documentWriter) mapping(m mapping) {
	w.list('{', len(m), '}', func(i int) { w.member(m[i]) })
}

// member writes a member with a key of the document's own, which YAML needs no quotes for.
func (w *documentWriter) member(m member) {
	if w.yaml {
		w.WriteString(m.key)
	} else {
		w.text(m.key)
	}
	w.separate(':')
	w.value(m.value)
}

func (w *documentWriter) text(s string) {
	if w.yaml {
		w.WriteString(QuoteYAML(s))
		return
	}
	if b, err := json.Marshal(s); err == nil { // a string always marshals
		w.Write(b)
	}
}

func (w *documentWriter) number(n Number) {
	s := n.String()
	if !w.yaml {
		s = strings.Replace(s, ".inf", "1e999", 1)
	}
	w.WriteString(s)
}

// QuoteYAML writes text plain if every YAML reader takes it for text, and in double quotes otherwise.
func QuoteYAML(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f || r == utf8.RuneError || r >= 0x80 && !strconv.IsPrint(r):
			const hex = "0123456789abcdef"
			b.WriteString(`\U`)
			for shift := 28; shift >= 0; shift -= 4 {
				b.WriteByte(hex[r>>shift&15])
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// isPlain reports whether s is a letter and then letters, digits, dots and underscores, and no word that YAML gives
// another meaning.
func isPlain(s string) bool {
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r != '.' && (r < '0' || r > '9')) {
			return false
		}
	}
	return true
}
