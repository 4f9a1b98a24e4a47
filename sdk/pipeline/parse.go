package pipeline

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Parse reads a spec from a YAML document and checks it against the catalogue. The error is of type [Errors], with
// lines and columns.
func Parse(document []byte) (*Spec, error) {
	p := &parser{}
	root := p.document(document)
	if root == nil {
		return nil, p.Err()
	}
	s := p.spec(root)
	if len(p.Errors) == 0 {
		s.checkParts(&p.List)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// parser walks the node tree against what a spec may hold.
type parser struct {
	problem.List
	nodes int
}

// document returns the root node of the document, or nil after an error.
func (p *parser) document(b []byte) *yaml.Node {
	if len(b) > maxDocument {
		p.Add(problem.Place{}, problem.ErrSyntax, "the document has %d bytes, want at most %d", len(b), maxDocument)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			p.Add(problem.Place{}, problem.ErrSyntax, "the document is empty")
		} else {
			p.Add(problem.Place{}, problem.ErrSyntax, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		return nil
	}
	var second yaml.Node
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			p.Add(problem.Place{}, problem.ErrSyntax, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		} else {
			p.Add(problem.Place{Pos: position(&second)}, problem.ErrSyntax, "a second document; one file holds one pipeline")
		}
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		p.Add(problem.Place{}, problem.ErrSyntax, "the document is empty")
		return nil
	}
	return doc.Content[0]
}

// position returns where a node begins.
func position(n *yaml.Node) Pos { return Pos{Line: n.Line, Column: n.Column} }

// follow returns the node that an alias names, or the node itself, and counts the visit.
func (p *parser) follow(n *yaml.Node, a problem.Place) *yaml.Node {
	p.nodes++
	if p.nodes == maxNodes {
		p.Add(a, problem.ErrSyntax, "the document comes to more than %d values", maxNodes)
	}
	if p.nodes >= maxNodes {
		return &yaml.Node{Line: n.Line, Column: n.Column} // a node without a kind ends the walk
	}
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// stopped reports whether the walk has ended early.
func (p *parser) stopped() bool { return p.nodes >= maxNodes || len(p.Errors) >= problem.MaxErrors }

// members calls f for each key of a mapping. It refuses keys that are not among keys or occur twice, and reports
// whether n is a mapping.
func (p *parser) members(n *yaml.Node, a problem.Place, unknown error, keys []string,
	f func(key string, value *yaml.Node, a problem.Place)) bool {
	n = p.follow(n, a)
	if n.Kind != yaml.MappingNode {
		p.Add(a, problem.ErrValue, "%s, want a mapping of %s", describe(n), strings.Join(keys, ", "))
		return false
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content) && !p.stopped(); i += 2 {
		key := p.follow(n.Content[i], a)
		if key.Kind != yaml.ScalarNode {
			p.Add(problem.Place{Pos: position(n.Content[i]), Path: a.Path}, problem.ErrValue, "%s as a key", describe(key))
			continue
		}
		here := a.Key(problem.Shorten(key.Value), position(n.Content[i]))
		switch {
		case !slices.Contains(keys, key.Value):
			p.Add(here, unknown, "%q%s", problem.Shorten(key.Value), problem.SuggestAccepted(key.Value, keys,
				func(name string) bool {
					return !given(n, name) // the key would be refused as given twice
				}))
		case seen[key.Value]:
			p.Add(here, problem.ErrDuplicate, "%q", key.Value)
		default:
			seen[key.Value] = true
			f(key.Value, n.Content[i+1], a.Key(key.Value, position(n.Content[i+1])))
		}
	}
	return true
}

// given reports whether a mapping has a key.
func given(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == name {
			return true
		}
	}
	return false
}

// items calls f for each item of a list of at most limit items.
func (p *parser) items(n *yaml.Node, a problem.Place, limit int, of string, f func(n *yaml.Node, a problem.Place)) {
	n = p.follow(n, a)
	if n.Kind != yaml.SequenceNode {
		p.Add(a, problem.ErrValue, "%s, want a list of %s", describe(n), of)
		return
	}
	if len(n.Content) > limit {
		p.Add(a, problem.ErrValue, "%d %s, want at most %d", len(n.Content), of, limit)
		return
	}
	for i, item := range n.Content {
		if p.stopped() {
			return
		}
		f(item, a.Index(i, position(item)))
	}
}

// column reads the name of a column or a pattern: a string of at most MaxName bytes. A column may have no name.
func (p *parser) column(n *yaml.Node, a problem.Place) (text string, ok bool) {
	if n = p.follow(n, a); n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && n.Value == "" {
		return "", true
	}
	text = p.text(n, a, "a column")
	return text, text != ""
}

// text reads a string of 1 to MaxName bytes.
func (p *parser) text(n *yaml.Node, a problem.Place, of string) string {
	n = p.follow(n, a)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		hint := ""
		if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
			hint = "; put it in quotes if it is meant as text"
		}
		p.Add(a, problem.ErrValue, "%s, want %s%s", describe(n), of, hint)
		return ""
	}
	if n.Value == "" || len(n.Value) > MaxName {
		p.Add(a, problem.ErrValue, "text of %d bytes, want 1 to %d", len(n.Value), MaxName)
		return ""
	}
	return n.Value
}

// choice reads one of the words that a text such as "int32, int64 or auto" lists. It returns an empty text after an
// error.
func (p *parser) choice(n *yaml.Node, a problem.Place, words string) string {
	word := p.text(n, a, words)
	if word == "" || slices.Contains(strings.Fields(strings.NewReplacer(",", "", " or ", " ").Replace(words)), word) {
		return word
	}
	p.Add(a, problem.ErrValue, "%q, want %s", problem.Shorten(word), words)
	return ""
}

// truth reads true or false.
func (p *parser) truth(n *yaml.Node, a problem.Place) bool {
	var value bool
	n = p.follow(n, a)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&value) != nil {
		p.Add(a, problem.ErrValue, "%s, want true or false", describe(n))
	}
	return value
}

// number reads an integer or a real number.
func (p *parser) number(n *yaml.Node, a problem.Place) (Number, bool) {
	n = p.follow(n, a)
	x, ok := numberOf(n)
	switch {
	case ok:
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int":
		p.Add(a, problem.ErrValue, "%s does not fit 64 bits", problem.Shorten(n.Value))
	default:
		p.Add(a, problem.ErrValue, "%s, want a number", describe(n))
	}
	return x, ok
}

func numberOf(n *yaml.Node) (Number, bool) {
	if n.Kind != yaml.ScalarNode {
		return Number{}, false
	}
	switch n.ShortTag() {
	case "!!int":
		// The common form first; what begins with 0 may be of another base.
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil && strings.IndexByte("+-0", n.Value[0]) < 0 {
			return Int(i), true
		}
		var i int64
		err := n.Decode(&i)
		return Int(i), err == nil
	case "!!float":
		var x float64
		err := n.Decode(&x)
		return Real(x), err == nil
	}
	return Number{}, false
}

// describe says what a node is, for errors.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
			return "nothing"
		case "!!str":
			return "the text " + problem.Quote(n.Value)
		case "!!int", "!!float":
			return "the number " + problem.Shorten(n.Value)
		case "!!bool":
			return "the truth value " + problem.Shorten(n.Value)
		}
		return "the value " + problem.Shorten(n.Value)
	}
	return "nothing"
}

// spec reads the whole document.
func (p *parser) spec(n *yaml.Node) *Spec {
	s := &Spec{Batch: DefaultBatch}
	p.members(n, problem.Place{Pos: position(n)}, problem.ErrUnknownKey, specKeys, func(key string, v *yaml.Node,
		a problem.Place) {
		switch key {
		case "name":
			s.Name = p.text(v, a, "the pipeline's name")
		case "batch":
			if x, ok := p.number(v, a); ok {
				if !x.Integer || x.Int < 1 || x.Int > MaxBatch {
					p.Add(a, problem.ErrValue, "%s, want a whole number from 1 to %d", x, MaxBatch)
					return
				}
				s.Batch = int(x.Int)
			}
		case "ids":
			word := p.choice(v, a, "int32, int64 or auto")
			s.FitIDs = word == "auto"
			if word == "int32" {
				s.IDs = program.IDs32
			}
		case "dense_type":
			if p.choice(v, a, "float32 or bfloat16") == "bfloat16" {
				s.DenseType = program.DenseBFloat16
			}
		case "label":
			s.Label = p.label(v, a)
		case "values":
			s.Values = p.values(v, a)
		case "dense":
			s.Dense = p.groups(v, a)
		case "sparse":
			s.Sparse = p.groups(v, a)
		case "generated":
			s.Generated = p.groups(v, a)
		case "vocabularies":
			s.Vocabularies = p.vocabularies(v, a)
		case "statistics":
			s.Statistics = p.statistics(v, a)
		case "filter":
			f := p.filter(v, a, 0)
			s.Filter = &f
		}
	})
	return s
}

// The keys of the document's mappings.
var (
	specKeys = []string{"name", "batch", "ids", "dense_type", "label", "values", "dense", "sparse", "generated",
		"vocabularies", "statistics", "filter"}
	labelKeys = []string{"column", "null", "nan", "ops"}
	valueKeys = []string{"as", "from", "inputs", "ops", "absent"}
	groupKeys = []string{"columns", "inputs", "ops", "as", "scores", "deduplicate", "absent", "nan"}
)

// label reads the label. "null: VALUE" and "nan: VALUE" are short for operators that begin with fill_null and fill_nan,
// and make the same pipeline.
func (p *parser) label(n *yaml.Node, a problem.Place) *Label {
	l := &Label{Pos: a.Pos}
	var fill []Op
	if p.members(n, a, problem.ErrUnknownKey, labelKeys, func(key string, v *yaml.Node, a problem.Place) {
		switch key {
		case "column":
			l.Column = p.text(v, a, "a column's name")
		case "null":
			fill = append(p.labelFill("fill_null", v, a), fill...)
		case "nan":
			fill = append(fill, p.labelFill("fill_nan", v, a)...)
		case "ops":
			l.Ops = p.ops(v, a, n)
		}
	}) && l.Column == "" && len(p.Errors) == 0 {
		p.Add(a, problem.ErrMissing, "column: the name of the column with the label")
	}
	l.Ops = append(fill, l.Ops...)
	return l
}

// labelFill reads what becomes of a label that is null or a NaN: a number replaces it, by the named operator, and
// "fail", the default, refuses it. It returns nil for fail and for any other value that is not a number.
func (p *parser) labelFill(operator string, n *yaml.Node, a problem.Place) []Op {
	if v := p.follow(n, a); v.Kind == yaml.ScalarNode && v.Value == "fail" {
		return nil
	}
	x, ok := p.number(n, a)
	if !ok {
		return nil
	}
	return []Op{{Name: operator, Args: []Arg{{Name: "value", Value: x, Pos: a.Pos}}, Pos: a.Pos}}
}

// values reads the list of intermediate values.
func (p *parser) values(n *yaml.Node, a problem.Place) []NamedValue {
	var values []NamedValue
	p.items(n, a, MaxGroups, "values", func(n *yaml.Node, a problem.Place) {
		v := NamedValue{Pos: a.Pos}
		p.members(n, a, problem.ErrUnknownKey, valueKeys, func(key string, node *yaml.Node, a problem.Place) {
			switch key {
			case "as":
				v.As = p.text(node, a, "a name for the value")
			case "from":
				if t, ok := p.column(node, a); ok {
					v.From = Pattern{Text: t, Pos: a.Pos}
				}
			case "inputs":
				v.Inputs = p.patterns(node, a)
			case "ops":
				v.Ops = p.ops(node, a, n)
			case "absent":
				v.AllowAbsent = p.choice(node, a, "allow or fail") == "allow"
			}
		})
		values = append(values, v)
	})
	return values
}

// patterns reads a list of names of columns.
func (p *parser) patterns(n *yaml.Node, a problem.Place) (list []Pattern) {
	p.items(n, a, MaxPatterns, "columns", func(n *yaml.Node, a problem.Place) {
		if t, ok := p.column(n, a); ok {
			list = append(list, Pattern{Text: t, Pos: a.Pos})
		}
	})
	return list
}

func (p *parser) groups(n *yaml.Node, a problem.Place) []Group {
	var groups []Group
	p.items(n, a, MaxGroups, "groups of columns", func(n *yaml.Node, a problem.Place) {
		g := Group{Pos: a.Pos}
		p.members(n, a, problem.ErrUnknownKey, groupKeys, func(key string, v *yaml.Node, a problem.Place) {
			switch key {
			case "columns":
				g.Columns = p.patterns(v, a)
			case "inputs":
				g.Inputs = p.patterns(v, a)
			case "ops":
				g.Ops = p.ops(v, a, n)
			case "scores":
				g.DropScores = p.choice(v, a, "keep or drop") == "drop"
			case "deduplicate":
				g.Deduplicate = p.truth(v, a)
			case "absent":
				g.AllowAbsent = p.choice(v, a, "allow or fail") == "allow"
			case "nan":
				g.KeepNaN = p.choice(v, a, "keep or fail") == "keep"
			case "as":
				g.As = p.text(v, a, "a name for the features")
				checkName(&p.List, g.As, a)
			}
		})
		groups = append(groups, g)
	})
	return groups
}
