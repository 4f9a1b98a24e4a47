package pipeline

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// Check checks the spec against the catalogue, without a dataset. Parse and Resolve check it too. The error is of type
// [Errors].
func (s *Spec) Check() error {
	var p problems
	s.check(&p)
	return p.err()
}

func (s *Spec) check(p *problems) {
	if s.Batch < 0 || s.Batch > MaxBatch {
		p.add(location{path: "batch"}, ErrValue, "%d, want 1 to %d", s.Batch, MaxBatch)
	}
	if s.IDs > program.IDs32 {
		p.add(location{path: "ids"}, ErrValue, "%v, want int32 or int64", s.IDs)
	}
	if s.FitIDs && s.IDs != program.IDs64 {
		p.add(location{path: "ids"}, ErrValue, "auto and %v, want one of them", s.IDs)
	}
	if s.DenseType > program.DenseBFloat16 {
		p.add(location{path: "dense_type"}, ErrValue, "%v, want float32 or bfloat16", s.DenseType)
	}
	if s.Label == nil && len(s.Dense)+len(s.Sparse)+len(s.Generated) == 0 {
		p.add(location{}, ErrEmpty, "want a label, dense, sparse or generated")
	}
	if s.Label != nil {
		a := location{path: "label", pos: s.Label.Pos}
		if s.Label.Column == "" {
			p.add(a, ErrMissing, "column: the name of the column with the label")
		}
		checkOperators(p, s.Label.Ops, nil, a)
	}
	s.checkValues(p)
	s.checkVocabularies(p)
	s.checkStatistics(p)
	s.checkTargetEncodings(p)
	s.checkFilter(p)
	for _, kind := range s.groupLists() {
		if len(kind.groups) > MaxGroups {
			p.add(location{path: kind.name}, ErrValue, "%d groups of columns, want at most %d", len(kind.groups),
				MaxGroups)
			continue
		}
		for i := range kind.groups {
			g := &kind.groups[i]
			a := location{path: kind.name}.index(i, g.Pos)
			if len(g.Inputs) > 0 {
				g.checkInputs(p, a)
			} else if len(g.Columns) == 0 {
				p.add(a, ErrMissing, "columns: at least one")
			}
			if len(g.Columns) > MaxPatterns {
				p.add(a, ErrValue, "%d columns, want at most %d", len(g.Columns), MaxPatterns)
			}
			if g.Deduplicate && kind.to != program.ToSparse {
				p.add(a, ErrValue, "deduplicate: only keys have rows that are lists of ids; put it to a group of sparse or "+
					"generated")
			}
			if g.KeepNaN && kind.to != program.ToDense {
				p.add(a, ErrValue, "nan: only dense features hold real numbers; bucketize says what becomes of a NaN")
			}
			checkName(p, g.As, a.key("as", g.Pos))
			checkOperators(p, g.Ops, g.Inputs, a)
		}
	}
}

// checkName checks the braces in the name of features.
func checkName(p *problems, as string, a location) {
	if len(as) > MaxName || !utf8.ValidString(as) {
		p.add(a, ErrValue, "want at most %d bytes of UTF-8", MaxName)
		return
	}
	if _, err := expandName(as, "x0", "0", 0); err != "" {
		p.add(a, ErrValue, "%s", err)
	}
}

// checkOperators checks a chain of operators, whose first operator takes the inputs if there are some.
func checkOperators(p *problems, ops []Op, inputs []Pattern, a location) {
	if len(inputs) > 0 && len(ops) == 0 {
		p.add(a, ErrMissing, "ops: the first operator takes the inputs together, as cartesian")
	}
	a = a.key("ops", a.pos)
	if len(ops) > MaxOperators {
		p.add(a, ErrValue, "%d operators, want at most %d", len(ops), MaxOperators)
		return
	}
	for i := range ops {
		checkOperator(p, &ops[i], place{i, inputs}, a.index(i, ops[i].Pos))
	}
}

// checkOperator checks an operator's name and parameters, and that it may stand at its place.
func checkOperator(p *problems, o *Op, at place, a location) {
	entry := operators[o.Name]
	if entry == nil {
		p.add(a, ErrUnknownOperator, "%q%s", shorten(o.Name), suggestOperator(o.Name, func(name string) bool {
			var trial problems
			checkOperator(&trial, &Op{Name: name, Args: o.Args, Pos: o.Pos}, at, a)
			return len(trial.list) == 0
		}))
		return
	}
	at.check(p, o, entry, a)
	in, before := a.key(o.Name, a.pos), len(p.list)
	seen := make(map[string]bool)
	for i := range o.Args {
		v := &o.Args[i]
		here := in.key(shorten(v.Name), firstPos(v.Pos, a.pos))
		param := entry.Param(v.Name)
		switch {
		case param == nil:
			p.add(here, ErrUnknownParam, "%q of %s", shorten(v.Name), o.Name)
		case seen[v.Name]:
			p.add(here, ErrDuplicate, "%q", v.Name)
		default:
			seen[v.Name] = true
			checkValue(p, param, v.Value, here)
		}
	}
	for i := range entry.Params {
		if param := &entry.Params[i]; param.Required() && !seen[param.Name] {
			p.add(in, ErrMissing, "%s: %s", param.Name, param.Summary)
		}
	}
	if entry.Check != nil && len(p.list) == before {
		entry.Check(&checkedOp{o, p, in})
	}
}

// firstPos returns a, or b if a is zero.
func firstPos(a, b Pos) Pos {
	if a == (Pos{}) {
		return b
	}
	return a
}

// checkValue checks a parameter's value.
func checkValue(p *problems, param *Param, v Value, a location) {
	switch param.Type {
	case ParamChoice:
		if t, ok := v.(Text); !ok || !slices.Contains(param.Choices, string(t)) {
			p.add(a, ErrValue, "%s, want one of %s", describeValue(v), strings.Join(param.Choices, ", "))
		}
	case ParamBorders:
		b, ok := v.(Borders)
		if !ok {
			p.add(a, ErrValue, "%s, want borders", describeValue(v))
			return
		}
		checkBorders(p, b, a)
	case ParamText:
		if _, ok := v.(Text); !ok {
			p.add(a, ErrValue, "%s, want text", describeValue(v))
		}
	case ParamTable:
		checkTable(p, v, a)
	case ParamTextTable:
		checkTextTable(p, v, a)
	case ParamWords:
		words, ok := v.(Words)
		if !ok {
			p.add(a, ErrValue, "%s, want a list of words", describeValue(v))
		}
		for i, word := range words {
			if !slices.Contains(param.Choices, word) {
				p.add(a.index(i, a.pos), ErrValue, "%q, want one of %s", shorten(word), strings.Join(param.Choices, ", "))
			}
		}
	case ParamInteger:
		x, ok := v.(Number)
		switch {
		case !ok || !x.Integer:
			p.add(a, ErrValue, "%s, want a whole number", describeValue(v))
		case x.Int < param.Min:
			p.add(a, ErrValue, "%s, want at least %d", x, param.Min)
		}
	default:
		x, ok := v.(Number)
		if !ok || !x.Finite() {
			p.add(a, ErrValue, "%s, want a finite number", describeValue(v))
			return
		}
		if param.Type == ParamReal && math.IsInf(float64(float32(x.Real())), 0) {
			p.add(a, ErrValue, "%s does not fit float32", x)
		}
	}
}

// checkBorders checks that borders are numbers, sorted, and not too many.
func checkBorders(p *problems, b Borders, a location) {
	if b.LogSpaced != nil {
		l := b.LogSpaced
		switch {
		case len(b.List) > 0:
			p.add(a, ErrValue, "a list and log_spaced, want one")
		case !(l.From > 0) || !(l.To > l.From) || math.IsInf(l.To, 0):
			p.add(a.key("log_spaced", a.pos), ErrValue, "from %v to %v, want 0 < from < to", l.From, l.To)
		case l.Count < 2 || l.Count > program.MaxBorders:
			p.add(a.key("log_spaced", a.pos), ErrValue, "count %d, want 2 to %d", l.Count, program.MaxBorders)
		}
		return
	}
	if len(b.List) == 0 || len(b.List) > program.MaxBorders {
		p.add(a, ErrValue, "%d borders, want 1 to %d", len(b.List), program.MaxBorders)
		return
	}
	for i, x := range b.List {
		if !x.Integer && math.IsNaN(x.Float) {
			p.add(a.index(i, a.pos), ErrValue, "a border is not a number")
			return
		}
		if i > 0 && x.Less(b.List[i-1]) {
			p.add(a.index(i, a.pos), ErrValue, "borders are not sorted: %s comes behind %s", x, b.List[i-1])
			return
		}
	}
}

// describeValue renders a value for an error.
func describeValue(v Value) string {
	switch x := v.(type) {
	case Number:
		return "the number " + x.String()
	case Text:
		return "the text " + quote(string(x))
	case Borders:
		return "borders"
	case IDTable:
		return "a table"
	case TextTable:
		return "a table of texts"
	case Words:
		return "a list of words"
	}
	return "nothing"
}

// checkTable checks a table of ids.
func checkTable(p *problems, v Value, a location) {
	t, ok := v.(IDTable)
	switch {
	case !ok:
		p.add(a, ErrValue, "%s, want a table", describeValue(v))
	case len(t.Values) == 0 || len(t.Values) > program.MaxBorders:
		p.add(a, ErrValue, "%d values, want 1 to %d", len(t.Values), program.MaxBorders)
	case t.Keys != nil && len(t.Keys) != len(t.Values):
		p.add(a, ErrValue, "%d keys and %d values", len(t.Keys), len(t.Values))
	default:
		for i := 1; i < len(t.Keys); i++ {
			if t.Keys[i] <= t.Keys[i-1] {
				p.add(a, ErrValue, "keys do not ascend: %d comes behind %d", t.Keys[i], t.Keys[i-1])
				return
			}
		}
	}
}

// checkTextTable checks a table of texts.
func checkTextTable(p *problems, v Value, a location) {
	t, ok := v.(TextTable)
	switch {
	case !ok:
		p.add(a, ErrValue, "%s, want a table of texts", describeValue(v))
	case len(t.Values) == 0 || len(t.Values) > program.MaxTexts:
		p.add(a, ErrValue, "%d texts, want 1 to %d", len(t.Values), program.MaxTexts)
	case len(t.Keys) != len(t.Values):
		p.add(a, ErrValue, "%d texts and %d values", len(t.Keys), len(t.Values))
	default:
		for i, key := range t.Keys {
			switch {
			case len(key) > program.MaxTextBytes:
				p.add(a, ErrValue, "a text of %d bytes, want at most %d", len(key), program.MaxTextBytes)
				return
			case !utf8.ValidString(key):
				p.add(a, ErrValue, "the text %q is not UTF-8", shorten(key))
				return
			case i > 0 && key <= t.Keys[i-1]:
				p.add(a, ErrValue, "texts do not ascend: %s comes behind %s", quote(key), quote(t.Keys[i-1]))
				return
			}
		}
	}
}
