package resolve

import (
	"errors"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// maxTables bounds the borders of a pipeline, over all its tables.
const maxTables = 1 << 22

// Pipeline resolves a spec: it expands the spec's patterns against the dataset's schema, fills in defaults, and types
// every chain of operators. The error is of type [Errors].
func Pipeline(s *pipeline.Spec, schema []columntypes.Column) (*Resolved, error) {
	return resolveRecorded(s, schema, nil)
}

// Data resolves a spec against a data set, whose manifest may be nil. It refuses partitions that statistics by
// partition do not cover. The error is of type [problem.Errors], and it names the missing columns whose values stand in
// the partitions' names.
func Data(
	s *pipeline.Spec, m *dataset.Manifest, schema []columntypes.Column, malformed program.Malformed,
) (*Resolved, error) {
	resolved, err := Pipeline(s, schema)
	if wrong := (problem.Errors)(nil); errors.As(err, &wrong) && m != nil {
		wrong.ExplainFolders(func(yield func(string) bool) {
			for i := range m.Partitions {
				if !yield(m.Partitions[i].Name) {
					return
				}
			}
		})
	}
	if err != nil {
		return nil, err
	}
	resolved.Malformed = malformed
	if m != nil {
		err = resolved.CheckPartitions(m)
	}
	return resolved, err
}

// resolveRecorded resolves a spec, and records what operators take statistics of; nil records nothing.
func resolveRecorded(s *pipeline.Spec, schema []columntypes.Column, recorder *statisticsRecorder) (*Resolved, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var p problem.List
	r := &resolver{
		List: &p, Index: NewIndex(schema),
		vocabularies: make(map[string]*pipeline.Vocabulary, len(s.Vocabularies)),
		statistics:   make(map[string]*pipeline.NamedStatistics, len(s.Statistics)), recorder: recorder, modules: s.Modules,
	}
	for i := range s.Statistics {
		r.statistics[s.Statistics[i].Name] = &s.Statistics[i]
	}
	for i := range s.Vocabularies {
		r.vocabularies[s.Vocabularies[i].Name] = &s.Vocabularies[i]
	}
	out := &Resolved{Name: s.Name, Batch: s.Batch, IDs: s.IDs, Source: program.Parquet}
	if out.Batch == 0 {
		out.Batch = pipeline.DefaultBatch
	}
	for i := range schema {
		c := &schema[i]
		if i > 0 && c.Source != schema[0].Source {
			p.Add(problem.Place{Column: c.Name}, problem.ErrUnsupported,
				"it is of another format than the dataset's first column")
			return nil, p.Err()
		}
		if c.Source != 0 {
			out.Source = c.Source
		}
		out.LabelField = out.LabelField || c.Source > program.Parquet && c.Field == 0
	}
	r.declareValues(s.Values)
	if s.Label != nil {
		out.Label = r.label(s.Label)
		r.target = out.Label
	}
	sets := 0
	for _, k := range s.GroupLists() {
		features := r.groups(k)
		if k.To == program.ToDense {
			out.Dense = features
		} else {
			out.Keys = append(out.Keys, features...)
		}
	}
	for i := range out.Keys { // the groups that have keys are numbered, across both lists
		if g := out.Keys[i].group; g != nil && g.Deduplicate {
			if i == 0 || out.Keys[i-1].group != g {
				sets++
			}
			out.Keys[i].Set = sets
		}
	}
	if n := out.DenseWidth(); n > program.MaxColumns {
		p.Add(problem.Place{Path: "dense"}, problem.ErrValue, "%d columns, want at most %d", n, program.MaxColumns)
		return nil, p.Err()
	}
	out.Filter, out.Selection = r.filterPass(s), s.Selection
	out.Modules = r.used
	r.refuseUnusedValues()
	r.refuseDuplicates("dense", out.Dense)
	r.refuseDuplicates("key", out.Keys)
	switch {
	case s.IDs == program.IDs32:
		r.refuseWideIDs(out.Keys)
	case s.FitIDs && len(out.Keys) > 0 && fitInt32(out.Keys):
		out.IDs = program.IDs32
	}
	if len(out.Dense) > 0 {
		out.DenseType = s.DenseType
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

// resolver resolves one spec.
type resolver struct {
	*problem.List
	*Index
	borders int                // numbers over all tables
	counted map[any]bool       // tables whose numbers are counted
	made    map[any]program.Op // operators that features share
	values  map[string]*valueState
	order   []*valueState // in the order of the document

	vocabularies map[string]*pipeline.Vocabulary
	statistics   map[string]*pipeline.NamedStatistics // nil: a trial
	recorder     *statisticsRecorder                  // nil: nothing is recorded
	target       *Feature                             // the label; nil: none
	modules      []pipeline.Module
	used         program.Modules     // The modules that steps name and whose bytes are at hand.
	nullAs       *columntypes.Column // the type of columns that have only nulls; nil: the stored type
}

// stopped reports whether the most errors were found, after which the rest is not checked.
func (r *resolver) stopped() bool { return len(r.Errors) >= problem.MaxErrors }

// label resolves the label's column.
func (r *resolver) label(l *pipeline.Label) *Feature {
	a := problem.Place{Path: "label", Pos: l.Pos}
	found, wrong, isMap := r.matchMap(l.Column)
	if i, ok := r.byName[l.Column]; ok {
		found, wrong = []Reference{{Column: i}}, nil
	} else if !isMap {
		wrong = patternError(problem.ErrMissingColumn, "%q is not in the dataset%s", problem.Shorten(l.Column),
			problem.SuggestAccepted(l.Column, r.names(), func(name string) bool {
				return r.wouldTake(name, l.Ops, program.ToLabel, a)
			}))
		wrong.Missing = l.Column
	}
	switch {
	case wrong != nil:
		r.AddFound(a.Key("column", l.Pos), wrong)
		return nil
	case len(found) != 1:
		r.Add(a.Key("column", l.Pos), problem.ErrPattern, "%q names %d features, want one", problem.Shorten(l.Column),
			len(found))
		return nil
	}
	fills := len(l.Ops) > 0 && l.Ops[0].Name == "fill_null"
	if i := found[0].Column; r.schema[i].Absent.Partitions == 0 {
		fills = false // the program is as it was before partitions could lack columns
	}
	return r.feature(found[0], l.Column, l.Ops, program.ToLabel, fills, a)
}

// groups resolves the features of a list of groups.
func (r *resolver) groups(k pipeline.GroupList) []Feature {
	var features []Feature
	for i := range k.Groups {
		g := &k.Groups[i]
		a := problem.Place{Path: k.Name}.Index(i, g.Pos)
		index := 0
		if len(g.Inputs) > 0 {
			if f := r.combinedFeature(g, k.To, a); f != nil {
				features = append(features, *f)
			}
			continue
		}
		for j, pattern := range g.Columns {
			if r.stopped() {
				return features
			}
			here := a.Key("columns", a.Pos).Index(j, pattern.Pos)
			if v := r.values[pattern.Text]; v != nil {
				if f := r.valueFeature(v, g, k.To, index, here, a); f != nil {
					features = append(features, *f)
				}
				index++
				continue
			}
			columns, wrong := r.Match(pattern.Text, func(name string) bool {
				return r.wouldTake(name, g.Ops, k.To, a)
			})
			if wrong != nil {
				r.AddFound(here, wrong)
				continue
			}
			if len(features)+len(columns) > pipeline.MaxFeatures {
				r.Add(here, problem.ErrValue, "more than %d features", pipeline.MaxFeatures)
				return features
			}
			for _, c := range columns {
				if r.stopped() {
					return features
				}
				column, digits := c.Name(r.schema)
				name, wrong := pipeline.FeatureName(g.As, column, digits, index)
				index++
				if wrong != "" {
					here.Column = column
					r.Add(here, problem.ErrPattern, "%s", wrong)
					continue
				}
				at := here
				at.Column = column
				if f := r.groupFeature(r.feature(c, name, g.Ops, k.To, g.AllowAbsent, a), g, at); f != nil {
					features = append(features, *f)
				}
			}
		}
	}
	return features
}

// feature applies a chain of operators to one column. absent says that partitions may lack the column. It returns nil
// after an error.
func (r *resolver) feature(n Reference, name string, ops []pipeline.Op, to program.Dest, absent bool,
	a problem.Place) *Feature {
	a.Column, _ = n.Name(r.schema)
	if c := &r.schema[n.Column]; c.Null&columntypes.NullEverywhere != 0 && r.nullAs == nil {
		for i := range nullTypes {
			trial := r.trial()
			trial.nullAs = &nullTypes[i]
			if (nullTypes[i].List || !c.List) && trial.feature(n, name, ops, to, absent, a) != nil {
				r.nullAs = trial.nullAs
				defer func() { r.nullAs = nil }()
				break
			}
		}
	}
	o := r.columnOperand(n, absent, a)
	if o == nil {
		return nil
	}
	return r.makeFeature(o, name, ops, to, a)
}

// columnOperand returns a column as a value. absent says that partitions may lack the column, whose rows are null
// there. It returns nil after an error.
func (r *resolver) columnOperand(n Reference, absent bool, a problem.Place) *Operand {
	c := r.schema[n.Column]
	switch {
	case c.Unsupported != nil:
		r.Add(a, problem.ErrUnsupported, "%s", strings.ReplaceAll(c.Unsupported.Error(), "\n", "; "))
		return nil
	case r.IsTwice(c.Name):
		r.Add(a, problem.ErrUnsupported, "the dataset has several columns of this name")
		return nil
	case c.Map.IsMap() && !n.IsMap:
		r.Add(a, problem.ErrColumnType, "it is a map: name its features, as %s[%s]", problem.Shorten(c.Name),
			c.Map.ExampleKey())
		return nil
	case c.Kind < program.Int64 || c.Kind > program.Bytes:
		r.Add(a, problem.ErrUnsupported, "it has no kind of values that pipelines know")
		return nil
	case c.Absent.Partitions > 0 && !absent && a.Path == "label":
		r.Add(a, problem.ErrMissingColumn,
			"%v: the label is absent there; write label: {column: %s, null: 0} with the value "+
				"that these rows are to have, or leave the partitions out", c.Absent, pipeline.QuoteYAML(c.Name))
		return nil
	case c.Absent.Partitions > 0 && !absent:
		r.Add(a, problem.ErrMissingColumn, "%v: it is absent there; write absent: allow to read it as null, or leave the "+
			"partitions out", c.Absent)
		return nil
	}
	absent = absent || c.Null != 0
	if c.Null&columntypes.NullEverywhere != 0 && r.nullAs != nil {
		c.Kind, c.List, c.ElementNullable, c.Bits = r.nullAs.Kind, r.nullAs.List, r.nullAs.List, 0
	}
	if c.Null&columntypes.NullLists != 0 && c.Kind != program.Int64 {
		c.Reading = program.ReadValues // chunks of the type null hold integers
	}
	c.Nullable = c.Nullable || absent
	name, _ := n.Name(r.schema)
	o := &Operand{Column: c, Absent: absent, Key: n.key, Text: n.text, kind: c.Kind, ids: rangeOfColumn(&c),
		origin: origin{columns: pipeline.Columns(name), absent: absent}}
	if c.Kind == program.Bytes && c.Logical == "FLOAT16" {
		o.Ops, o.kind = []program.Op{float16.Op{}}, program.Float32
	}
	return o
}

// makeFeature applies a chain of operators to a value and ends it in a tensor. It returns nil after an error.
func (r *resolver) makeFeature(from *Operand, name string, ops []pipeline.Op, to program.Dest,
	a problem.Place) *Feature {
	copied := *from
	o := &copied
	o.dest = to
	switch {
	case name == "":
		r.Add(a, problem.ErrValue, "the column has no name, and a feature must have one; name it with as")
		return nil
	case len(name) > pipeline.MaxName:
		r.Add(a, problem.ErrValue, "a feature's name of %d bytes, want at most %d", len(name), pipeline.MaxName)
		return nil
	}
	ch := r.runOperators(o, ops, 0, a, to != program.ToSparse)
	if ch == nil {
		return nil
	}
	o = ch.from // another one if an operator began another chain
	if o.Column.List && to != program.ToSparse && !r.takesList(ops, to, a) {
		return nil
	}
	if endsInClasses(ch.ops) && to != program.ToDense {
		r.Add(a, problem.ErrColumnType, "onehot makes dense columns; put it to a group of dense")
		return nil
	}
	ch.end(to, a)
	if ch.failed {
		return nil
	}
	if len(ch.ops) > program.MaxOps {
		r.Add(a, problem.ErrValue, "%d operators, conversions included, want at most %d", len(ch.ops), program.MaxOps)
		return nil
	}
	f := &Feature{Name: name, Column: o.Column, Key: o.Key, TextKey: o.Text, Ops: ch.ops, Place: a, nulls: ch.nulls,
		IDs: ch.ids, Step: o.Step, Shared: o.shared, Absent: o.Absent, encoding: ch.encoding}
	if to == program.ToSparse {
		f.NumEmbeddings = ch.embeddings()
	}
	if r.lookUp(f, ch, to, a); ch.failed {
		return nil
	}
	return f
}

// takesList reports whether the dense tensor or the label takes the lists that ops end in, which only fixed_length
// makes possible. It adds an error if not.
func (r *resolver) takesList(ops []pipeline.Op, to program.Dest, a problem.Place) bool {
	hint := "list_length counts their elements"
	if to == program.ToDense {
		if makesDense(ops) {
			return true
		}
		hint = "fixed_length makes dense columns of lists of one length, and " + hint
	}
	r.Add(a, problem.ErrColumnType, "a list cannot be %v: only sparse features have several values a row; %s", to, hint)
	return false
}

// wouldTake reports whether a column can be made a feature without an error.
func (r *resolver) wouldTake(name string, ops []pipeline.Op, to program.Dest, a problem.Place) bool {
	f := r.trial().feature(Reference{Column: r.byName[name]}, name, ops, to, false, a)
	return f != nil && (to == program.ToSparse || f.encoding != nil || !f.Null(program.MalformedFail))
}

// nullTypes are the types that a column with only nulls can have, in the order in which they are tried.
var nullTypes = []columntypes.Column{
	{Kind: program.Int64}, {Kind: program.Bytes}, {Kind: program.Float32},
	{Kind: program.Int64, List: true}, {Kind: program.Bytes, List: true}, {Kind: program.Float32, List: true},
}

// trial returns a resolver of the same schema whose errors are not reported.
func (r *resolver) trial() *resolver {
	return &resolver{List: &problem.List{}, Index: r.Index, vocabularies: r.vocabularies, nullAs: r.nullAs}
}

// refuseDuplicates refuses two features of one name.
func (r *resolver) refuseDuplicates(what string, features []Feature) {
	seen := make(map[string]bool, len(features))
	for i := range features {
		f := &features[i]
		for _, name := range f.columnNames() {
			if seen[name] {
				r.Add(f.Place, problem.ErrDuplicate, "a second %s feature named %q; name it with as", what, name)
			}
			seen[name] = true
		}
	}
}

// fitInt32 reports whether the operators bound every id of the keys within int32.
func fitInt32(keys []Feature) bool {
	return !slices.ContainsFunc(keys, func(f Feature) bool { return !f.IDs.FitsInt32() })
}

// refuseWideIDs refuses keys whose ids may not fit int32.
func (r *resolver) refuseWideIDs(keys []Feature) {
	for i := range keys {
		f := &keys[i]
		if !f.IDs.FitsInt32() {
			r.Add(f.Place, problem.ErrIDs, "ids of %q may be %d to %d; end with sigrid_hash, positive_modulus or clamp "+
				"within int32, or say ids: int64",
				f.Name, f.IDs.Low, f.IDs.High)
		}
	}
}
