package pipeline

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Check checks the spec against the catalogue, without a dataset. Parse and Resolve check it too. The error is of type
// [Errors].
func (s *Spec) Check() error {
	var p problem.List
	s.checkParts(&p)
	return p.Err()
}

func (s *Spec) checkParts(p *problem.List) {
	if s.Batch < 0 || s.Batch > MaxBatch {
		p.Add(problem.Place{Path: "batch"}, problem.ErrValue, "%d, want 1 to %d", s.Batch, MaxBatch)
	}
	if s.IDs > program.IDs32 {
		p.Add(problem.Place{Path: "ids"}, problem.ErrValue, "%v, want int32 or int64", s.IDs)
	}
	if s.FitIDs && s.IDs != program.IDs64 {
		p.Add(problem.Place{Path: "ids"}, problem.ErrValue, "auto and %v, want one of them", s.IDs)
	}
	if s.DenseType > program.DenseBFloat16 {
		p.Add(problem.Place{Path: "dense_type"}, problem.ErrValue, "%v, want float32 or bfloat16", s.DenseType)
	}
	if s.Label == nil && len(s.Dense)+len(s.Sparse)+len(s.Generated) == 0 {
		p.Add(problem.Place{}, problem.ErrEmpty, "want a label, dense, sparse or generated")
	}
	if s.Label != nil {
		a := problem.Place{Path: "label", Pos: s.Label.Pos}
		if s.Label.Column == "" {
			p.Add(a, problem.ErrMissing, "column: the name of the column with the label")
		}
		checkOperators(p, s.Label.Ops, nil, a)
	}
	s.checkValues(p)
	s.checkVocabularies(p)
	s.checkStatistics(p)
	s.checkTargetEncodings(p)
	s.checkFilter(p)
	for _, kind := range s.GroupLists() {
		if len(kind.Groups) > MaxGroups {
			p.Add(problem.Place{Path: kind.Name}, problem.ErrValue, "%d groups of columns, want at most %d", len(kind.Groups),
				MaxGroups)
			continue
		}
		for i := range kind.Groups {
			g := &kind.Groups[i]
			a := problem.Place{Path: kind.Name}.Index(i, g.Pos)
			if len(g.Inputs) > 0 {
				g.checkInputs(p, a)
			} else if len(g.Columns) == 0 {
				p.Add(a, problem.ErrMissing, "columns: at least one")
			}
			if len(g.Columns) > MaxPatterns {
				p.Add(a, problem.ErrValue, "%d columns, want at most %d", len(g.Columns), MaxPatterns)
			}
			if g.Deduplicate && kind.To != program.ToSparse {
				p.Add(a, problem.ErrValue, "deduplicate: only keys have rows that are lists of ids; put it to a group of sparse "+
					"or generated")
			}
			if g.KeepNaN && kind.To != program.ToDense {
				p.Add(a, problem.ErrValue, "nan: only dense features hold real numbers; bucketize says what becomes of a NaN")
			}
			checkName(p, g.As, a.Key("as", g.Pos))
			checkOperators(p, g.Ops, g.Inputs, a)
		}
	}
}

// checkName checks the braces in the name of features.
func checkName(p *problem.List, as string, a problem.Place) {
	if len(as) > MaxName || !utf8.ValidString(as) {
		p.Add(a, problem.ErrValue, "want at most %d bytes of UTF-8", MaxName)
		return
	}
	if _, err := FeatureName(as, "x0", "0", 0); err != "" {
		p.Add(a, problem.ErrValue, "%s", err)
	}
}

// checkOperators checks a chain of operators, whose first operator takes the inputs if there are some.
func checkOperators(p *problem.List, ops []Op, inputs []Pattern, a problem.Place) {
	if len(inputs) > 0 && len(ops) == 0 {
		p.Add(a, problem.ErrMissing, "ops: the first operator takes the inputs together, as cartesian")
	}
	a = a.Key("ops", a.Pos)
	if len(ops) > MaxOperators {
		p.Add(a, problem.ErrValue, "%d operators, want at most %d", len(ops), MaxOperators)
		return
	}
	for i := range ops {
		checkOperator(p, &ops[i], place{i, inputs}, a.Index(i, ops[i].Pos))
	}
}

// checkOperator checks an operator's name and parameters, and that it may stand at its place.
func checkOperator(p *problem.List, o *Op, at place, a problem.Place) {
	entry := operators[o.Name]
	if entry == nil {
		p.Add(a, problem.ErrUnknownOperator, "%q%s", problem.Shorten(o.Name), suggestOperator(o.Name, func(name string) bool {
			var trial problem.List
			checkOperator(&trial, &Op{Name: name, Args: o.Args, Pos: o.Pos}, at, a)
			return len(trial.Errors) == 0
		}))
		return
	}
	at.admits(p, o, entry, a)
	in, before := a.Key(o.Name, a.Pos), len(p.Errors)
	seen := make(map[string]bool)
	for i := range o.Args {
		v := &o.Args[i]
		here := in.Key(problem.Shorten(v.Name), v.Pos)
		param := entry.Param(v.Name)
		switch {
		case param == nil:
			p.Add(here, problem.ErrUnknownParam, "%q of %s", problem.Shorten(v.Name), o.Name)
		case seen[v.Name]:
			p.Add(here, problem.ErrDuplicate, "%q", v.Name)
		default:
			seen[v.Name] = true
			checkValue(p, param, v.Value, here)
		}
	}
	for i := range entry.Params {
		if param := &entry.Params[i]; param.Required() && !seen[param.Name] {
			p.Add(in, problem.ErrMissing, "%s: %s", param.Name, param.Summary)
		}
	}
	if entry.Check != nil && len(p.Errors) == before {
		entry.Check(&checkedOp{o, p, in})
	}
}

// checkValue checks a parameter's value.
func checkValue(p *problem.List, param *Param, v Value, a problem.Place) {
	switch param.Type {
	case ParamChoice:
		if t, ok := v.(Text); !ok || !slices.Contains(param.Choices, string(t)) {
			p.Add(a, problem.ErrValue, "%s, want one of %s", describeValue(v), strings.Join(param.Choices, ", "))
		}
	case ParamBorders:
		b, ok := v.(Borders)
		if !ok {
			p.Add(a, problem.ErrValue, "%s, want borders", describeValue(v))
			return
		}
		checkBorders(p, b, a)
	case ParamText:
		if _, ok := v.(Text); !ok {
			p.Add(a, problem.ErrValue, "%s, want text", describeValue(v))
		}
	case ParamTable:
		checkTable(p, v, a)
	case ParamTextTable:
		checkTextTable(p, v, a)
	case ParamWords:
		words, ok := v.(Words)
		if !ok {
			p.Add(a, problem.ErrValue, "%s, want a list of words", describeValue(v))
		}
		for i, word := range words {
			if !slices.Contains(param.Choices, word) {
				p.Add(a.Index(i, a.Pos), problem.ErrValue, "%q, want one of %s", problem.Shorten(word), strings.Join(param.Choices,
					", "))
			}
		}
	case ParamInteger:
		x, ok := v.(Number)
		switch {
		case !ok || !x.Integer:
			p.Add(a, problem.ErrValue, "%s, want a whole number", describeValue(v))
		case x.Int < param.Min:
			p.Add(a, problem.ErrValue, "%s, want at least %d", x, param.Min)
		}
	default:
		x, ok := v.(Number)
		if !ok || !x.Finite() {
			p.Add(a, problem.ErrValue, "%s, want a finite number", describeValue(v))
			return
		}
		if param.Type == ParamReal && math.IsInf(float64(float32(x.Real())), 0) {
			p.Add(a, problem.ErrValue, "%s does not fit float32", x)
		}
	}
}

// checkBorders checks that borders are numbers, sorted, and not too many.
func checkBorders(p *problem.List, b Borders, a problem.Place) {
	if b.LogSpaced != nil {
		l := b.LogSpaced
		switch {
		case len(b.List) > 0:
			p.Add(a, problem.ErrValue, "a list and log_spaced, want one")
		case !(l.From > 0) || !(l.To > l.From) || math.IsInf(l.To, 0):
			p.Add(a.Key("log_spaced", a.Pos), problem.ErrValue, "from %v to %v, want 0 < from < to", l.From, l.To)
		case l.Count < 2 || l.Count > program.MaxBorders:
			p.Add(a.Key("log_spaced", a.Pos), problem.ErrValue, "count %d, want 2 to %d", l.Count, program.MaxBorders)
		}
		return
	}
	if len(b.List) == 0 || len(b.List) > program.MaxBorders {
		p.Add(a, problem.ErrValue, "%d borders, want 1 to %d", len(b.List), program.MaxBorders)
		return
	}
	for i, x := range b.List {
		if !x.Integer && math.IsNaN(x.Float) {
			p.Add(a.Index(i, a.Pos), problem.ErrValue, "a border is not a number")
			return
		}
		if i > 0 && x.Less(b.List[i-1]) {
			p.Add(a.Index(i, a.Pos), problem.ErrValue, "borders are not sorted: %s comes behind %s", x, b.List[i-1])
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
		return "the text " + problem.Quote(string(x))
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
func checkTable(p *problem.List, v Value, a problem.Place) {
	t, ok := v.(IDTable)
	switch {
	case !ok:
		p.Add(a, problem.ErrValue, "%s, want a table", describeValue(v))
	case len(t.Values) == 0 || len(t.Values) > program.MaxBorders:
		p.Add(a, problem.ErrValue, "%d values, want 1 to %d", len(t.Values), program.MaxBorders)
	case t.Keys != nil && len(t.Keys) != len(t.Values):
		p.Add(a, problem.ErrValue, "%d keys and %d values", len(t.Keys), len(t.Values))
	default:
		for i := 1; i < len(t.Keys); i++ {
			if t.Keys[i] <= t.Keys[i-1] {
				p.Add(a, problem.ErrValue, "keys do not ascend: %d comes behind %d", t.Keys[i], t.Keys[i-1])
				return
			}
		}
	}
}

// checkTextTable checks a table of texts.
func checkTextTable(p *problem.List, v Value, a problem.Place) {
	t, ok := v.(TextTable)
	switch {
	case !ok:
		p.Add(a, problem.ErrValue, "%s, want a table of texts", describeValue(v))
	case len(t.Values) == 0 || len(t.Values) > program.MaxTexts:
		p.Add(a, problem.ErrValue, "%d texts, want 1 to %d", len(t.Values), program.MaxTexts)
	case len(t.Keys) != len(t.Values):
		p.Add(a, problem.ErrValue, "%d texts and %d values", len(t.Keys), len(t.Values))
	default:
		for i, key := range t.Keys {
			switch {
			case len(key) > program.MaxTextBytes:
				p.Add(a, problem.ErrValue, "a text of %d bytes, want at most %d", len(key), program.MaxTextBytes)
				return
			case !utf8.ValidString(key):
				p.Add(a, problem.ErrValue, "the text %q is not UTF-8", problem.Shorten(key))
				return
			case i > 0 && key <= t.Keys[i-1]:
				p.Add(a, problem.ErrValue, "texts do not ascend: %s comes behind %s", problem.Quote(key),
					problem.Quote(t.Keys[i-1]))
				return
			}
		}
	}
}

// checkedOp is an operator whose parameters are checked.
type checkedOp struct {
	*Op
	problems *problem.List
	location problem.Place
}

// Wrong implements [catalogue.Check].
func (c *checkedOp) Wrong(name string, kind error, format string, args ...any) {
	at := c.location
	if v, ok := c.Argument(name); ok {
		at = at.Key(name, v.Pos)
	}
	c.problems.Add(at, kind, format, args...)
}

// HasConstants implements [catalogue.Check].
func (c *checkedOp) HasConstants(names ...string) bool {
	return checkConstants(c.problems, c.Op, c.location, names...)
}

// CheckZone implements [catalogue.Check].
func (c *checkedOp) CheckZone(name string) error {
	_, err := LoadZone(name)
	return err
}

// checkTargetEncodings checks that target encodings end the chains of dense features.
func (s *Spec) checkTargetEncodings(p *problem.List) {
	s.eachChain(func(ops []Op, a problem.Place) {
		for i := range ops {
			if ops[i].Name != TargetEncodingOperator {
				continue
			}
			here := a.Index(i, ops[i].Pos)
			switch {
			case strings.HasPrefix(a.Path, "values"):
				p.Add(here, problem.ErrValue, "%s ends the chain of a dense feature: put it to the group that names the value",
					TargetEncodingOperator)
			case !strings.HasPrefix(a.Path, "dense"):
				p.Add(here, problem.ErrValue, "%s makes real numbers: put it to a group of dense", TargetEncodingOperator)
			case i != len(ops)-1:
				p.Add(here, problem.ErrValue, "%s ends the chain: move the operators behind it before it", TargetEncodingOperator)
			}
		}
	})
}

// checkConstants checks that an operator has either both of its constants or the name of statistics, and reports
// whether it has constants.
func checkConstants(p *problem.List, o *Op, a problem.Place, constants ...string) bool {
	named, ok := o.Argument(StatisticsParameter)
	for _, name := range constants {
		given, has := o.Argument(name)
		switch {
		case ok && has:
			p.Add(a.Key(name, given.Pos), problem.ErrValue, "%s beside statistics, want one of them",
				name)
		case !ok && !has:
			p.Add(a, problem.ErrMissing, "%s, or statistics instead of constants", name)
		}
	}
	if ok && named.Value == Text("") {
		p.Add(a.Key(StatisticsParameter, named.Pos), problem.ErrValue,
			"no name, want that of statistics")
	}
	return !ok
}
