package pipeline

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// YAML writes the spec as a document. [Parse] reads it back to the same spec with other positions. Text that is not
// UTF-8, which no document can hold, is replaced.
func (s *Spec) YAML() []byte {
	var w bytes.Buffer
	if s.Name != "" {
		w.WriteString("name: " + yamlText(s.Name) + "\n")
	}
	if s.Batch != 0 {
		w.WriteString("batch: " + strconv.Itoa(s.Batch) + "\n")
	}
	if s.IDs == program.IDs32 {
		w.WriteString("ids: int32\n")
	}
	if s.FitIDs {
		w.WriteString("ids: auto\n")
	}
	if s.DenseType != program.DenseFloat32 {
		w.WriteString("dense_type: " + s.DenseType.String() + "\n")
	}
	if s.Label != nil {
		w.WriteString("label: {column: " + yamlText(s.Label.Column))
		if len(s.Label.Ops) > 0 {
			w.WriteString(", ops: " + yamlOps(s.Label.Ops))
		}
		w.WriteString("}\n")
	}
	if len(s.Values) > 0 {
		w.WriteString("values:\n")
	}
	for i := range s.Values {
		v := &s.Values[i]
		w.WriteString("  - as: " + yamlText(v.As) + "\n")
		if len(v.Inputs) > 0 {
			w.WriteString("    inputs: " + yamlPatterns(v.Inputs) + "\n")
		} else {
			w.WriteString("    from: " + yamlText(v.From.Text) + "\n")
		}
		if v.AllowAbsent {
			w.WriteString("    absent: allow\n")
		}
		if len(v.Ops) > 0 {
			w.WriteString("    ops: " + yamlOps(v.Ops) + "\n")
		}
	}
	for _, k := range s.groupLists() {
		if len(k.groups) == 0 {
			continue
		}
		w.WriteString(k.name + ":\n")
		for i := range k.groups {
			g := &k.groups[i]
			if len(g.Inputs) > 0 {
				w.WriteString("  - inputs: " + yamlPatterns(g.Inputs) + "\n")
			} else {
				w.WriteString("  - columns: " + yamlPatterns(g.Columns) + "\n")
			}
			if g.As != "" {
				w.WriteString("    as: " + yamlText(g.As) + "\n")
			}
			if g.DropScores {
				w.WriteString("    scores: drop\n")
			}
			if g.Deduplicate {
				w.WriteString("    deduplicate: true\n")
			}
			if g.AllowAbsent {
				w.WriteString("    absent: allow\n")
			}
			if g.KeepNaN {
				w.WriteString("    nan: keep\n")
			}
			if len(g.Ops) > 0 {
				w.WriteString("    ops: " + yamlOps(g.Ops) + "\n")
			}
		}
	}
	for i := range s.Vocabularies {
		v := &s.Vocabularies[i]
		if i == 0 {
			w.WriteString("vocabularies:\n")
		}
		var members []string
		v.declarations(func(key string, value any) { members = append(members, fmt.Sprintf("%s: %v", key, value)) })
		w.WriteString("  " + yamlText(v.Name) + ": {" + strings.Join(members, ", ") + "}\n")
	}
	if len(s.Statistics) > 0 {
		n := jsonWriter{first: true} // JSON is YAML
		n.statistics(s.Statistics)
		w.WriteString("statistics: " + n.b.String() + "\n")
	}
	if s.Filter != nil {
		f := jsonWriter{first: true} // JSON is YAML
		f.filter(s.Filter)
		w.WriteString("filter: " + f.b.String() + "\n")
	}
	return w.Bytes()
}

func yamlPatterns(patterns []Pattern) string {
	texts := make([]string, len(patterns))
	for i, p := range patterns {
		texts[i] = yamlText(p.Text)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func yamlOps(ops []Op) string {
	items := make([]string, len(ops))
	for i := range ops {
		args := make([]string, len(ops[i].Args))
		for j := range ops[i].Args {
			args[j] = ops[i].Args[j].Name + ": " + yamlValue(ops[i].Args[j].Value)
		}
		items[i] = ops[i].Name + ": {" + strings.Join(args, ", ") + "}"
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func yamlValue(v Value) string {
	switch x := v.(type) {
	case Number:
		return x.String()
	case Text:
		return yamlText(string(x))
	case Borders:
		if l := x.LogSpaced; l != nil {
			return "{log_spaced: {from: " + Real(l.From).String() + ", to: " + Real(l.To).String() +
				", count: " + strconv.Itoa(l.Count) + "}}"
		}
		items := make([]string, len(x.List))
		for i, b := range x.List {
			items[i] = b.String()
		}
		return "[" + strings.Join(items, ", ") + "]"
	case Words:
		items := make([]string, len(x))
		for i, word := range x {
			items[i] = yamlText(word)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case IDTable:
		w := jsonWriter{first: true} // JSON is YAML
		w.table(x)
		return w.b.String()
	case TextTable:
		items := make([]string, len(x.Values))
		for i, value := range x.Values {
			items[i] = yamlText(x.Keys[i]) + ": " + strconv.FormatInt(value, 10)
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return "null"
}

// yamlText writes text plain if every YAML reader takes it for text, and in double quotes otherwise.
func yamlText(s string) string {
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
