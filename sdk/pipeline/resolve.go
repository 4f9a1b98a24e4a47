package pipeline

import (
	"errors"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/operator/float16"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

// Resolved is a spec that was applied to the schema of a dataset.
type Resolved struct {
	Name  string
	Batch int // rows of a mini-batch
	IDs   program.IDs
	// DenseType is the type of dense features; float32 if there are none.
	DenseType program.DenseType
	// Source is the format of the partitions. LabelField says that text or binary rows begin with a label.
	Source     program.Source
	LabelField bool
	// Malformed says what becomes of malformed text rows. Resolve sets it to fail; the caller changes it before it
	// calls Canonical and Lower. With program.MalformedNull every column may be null.
	Malformed program.Malformed

	Label *Feature // nil: none
	Dense []Feature
	Keys  []Feature // the sparse features, then the generated ones

	Filter    *FilterPass // nil: every row
	selection *selection.Selection
	modules   program.Modules // that steps name, and that are at hand

	lookupTables []program.LookupTable // of operators of the keys, see Lowered.LookUpInDrive
}

// Feature is one column of the label or dense tensor, or one key, with the operators that make it.
type Feature struct {
	Name   string
	Column ColumnInfo
	Key    int64 // of the map, if the column is a map
	// TextKey is the key if the keys of the map are text.
	TextKey string
	Ops     []program.Op // conversions included
	// DropScores says that the scores of a scored list do not become weights.
	DropScores bool
	// Set numbers the keys that are deduplicated together, from 1; 0: the key is not deduplicated.
	Set int
	// NumEmbeddings is, for a key, the size of the embedding table that its ids need: ids are in [0, NumEmbeddings). It
	// is 0 if the operators do not bound the ids.
	NumEmbeddings int64

	step     *step // what makes the feature, if several columns do; Column then describes the step's value
	shared   int   // how many of the first Ops belong to a named value
	absent   bool  // partitions may lack the column
	location location
	group    *Group // of the spec; nil for the label
	nulls    nullness
	ids      idRange
	lookup   *featureLookup   // nil: no vocabulary ends the chain
	encoding *featureEncoding // nil: no target encoding ends the chain
}

// nullness says how nulls pass through a chain of operators.
type nullness struct {
	fills bool // an operator replaces the nulls of the column
	makes bool // a later operator makes new nulls
}

// null reports whether a row can lack a value at the end of the chain.
func (f *Feature) null(m program.Malformed) bool {
	o := operand{column: f.Column, step: f.step, nulls: f.nulls}
	return o.null(m)
}

// jaggedFromDrive reports whether a row of what the drive makes can have no id, or more than one.
func (f *Feature) jaggedFromDrive(m program.Malformed) bool { return f.Column.List || f.null(m) }

// Fixed reports whether every row has exactly one id of every key.
func (r *Resolved) Fixed() bool {
	for i := range r.Keys {
		if r.Keys[i].jagged(r.Malformed) {
			return false
		}
	}
	return true
}

// maxTables bounds the borders of a pipeline, over all its tables.
const maxTables = 1 << 22

// Resolve expands the spec's patterns against the dataset's schema, fills in defaults, and types every chain of
// operators. The error is of type [Errors].
func (s *Spec) Resolve(schema []ColumnInfo) (*Resolved, error) { return s.resolve(schema, nil) }

// ResolveData resolves the spec against a data set, whose manifest may be nil. It refuses partitions that statistics by
// partition do not cover. The error is of type [Errors], and it names the missing columns whose values stand in the
// partitions' names.
func (s *Spec) ResolveData(
	m *dataset.Manifest, schema []ColumnInfo, malformed program.Malformed,
) (*Resolved, error) {
	resolved, err := s.Resolve(schema)
	if wrong := (Errors)(nil); errors.As(err, &wrong) && m != nil {
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

// resolve resolves the spec, and records what operators take statistics of; nil records nothing.
func (s *Spec) resolve(schema []ColumnInfo, recorder *statisticsRecorder) (*Resolved, error) {
	var p problems
	s.check(&p)
	if err := p.err(); err != nil {
		return nil, err
	}
	r := &resolver{
		problems: &p, schema: schema, byName: make(map[string]int, len(schema)), twice: make(map[string]bool),
		vocabularies: make(map[string]*Vocabulary, len(s.Vocabularies)),
		statistics:   make(map[string]*NamedStatistics, len(s.Statistics)), recorder: recorder, modules: s.Modules,
	}
	for i := range s.Statistics {
		r.statistics[s.Statistics[i].Name] = &s.Statistics[i]
	}
	for i := range s.Vocabularies {
		r.vocabularies[s.Vocabularies[i].Name] = &s.Vocabularies[i]
	}
	out := &Resolved{Name: s.Name, Batch: s.Batch, IDs: s.IDs, Source: program.Parquet}
	if out.Batch == 0 {
		out.Batch = DefaultBatch
	}
	for i := range schema {
		c := &schema[i]
		if _, twice := r.byName[c.Name]; twice {
			r.twice[c.Name] = true
		} else {
			r.byName[c.Name] = i
		}
		if i > 0 && c.Source != schema[0].Source {
			p.add(location{column: c.Name}, ErrUnsupported, "it is of another format than the dataset's first column")
			return nil, p.err()
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
	for _, k := range s.groupLists() {
		features := r.groups(k)
		if k.to == program.ToDense {
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
	if n := out.denseWidth(); n > program.MaxColumns {
		p.add(location{path: "dense"}, ErrValue, "%d columns, want at most %d", n, program.MaxColumns)
		return nil, p.err()
	}
	out.Filter, out.selection = r.filterPass(s), s.Selection
	out.modules = r.used
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
	if err := p.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// resolver resolves one spec.
type resolver struct {
	*problems
	schema  []ColumnInfo
	byName  map[string]int
	twice   map[string]bool    // names that more than one column has
	borders int                // numbers over all tables
	counted map[any]bool       // tables whose numbers are counted
	made    map[any]program.Op // operators that features share
	values  map[string]*valueState
	order   []*valueState // in the order of the document

	vocabularies map[string]*Vocabulary
	statistics   map[string]*NamedStatistics // nil: a trial
	recorder     *statisticsRecorder         // nil: nothing is recorded
	target       *Feature                    // the label; nil: none
	modules      []Module
	used         program.Modules // of modules, those at hand that steps name
	nullAs       *ColumnInfo     // the type of columns that have only nulls; nil: the stored type
}

// stopped reports whether the most errors were found, after which the rest is not checked.
func (r *resolver) stopped() bool { return len(r.list) >= maxErrors }

// label resolves the label's column.
func (r *resolver) label(l *Label) *Feature {
	a := location{path: "label", pos: l.Pos}
	found, wrong, isMap := matchMap(l.Column, r.schema, r.byName)
	if i, ok := r.byName[l.Column]; ok {
		found, wrong = []columnRef{{column: i}}, nil
	} else if !isMap {
		wrong = patternError(ErrMissingColumn, "%q is not in the dataset%s", shorten(l.Column),
			suggestAccepted(l.Column, names(r.schema), func(name string) bool {
				return r.wouldTake(name, l.Ops, program.ToLabel, a)
			}))
		wrong.missing = l.Column
	}
	switch {
	case wrong != nil:
		r.addFound(a.key("column", l.Pos), wrong)
		return nil
	case len(found) != 1:
		r.add(a.key("column", l.Pos), ErrPattern, "%q names %d features, want one", shorten(l.Column), len(found))
		return nil
	}
	fills := len(l.Ops) > 0 && l.Ops[0].Name == "fill_null"
	if i := found[0].column; r.schema[i].Absent.Partitions == 0 {
		fills = false // the program is as it was before partitions could lack columns
	}
	return r.feature(found[0], l.Column, l.Ops, program.ToLabel, fills, a)
}

// groups resolves the features of a list of groups.
func (r *resolver) groups(k groupList) []Feature {
	var features []Feature
	for i := range k.groups {
		g := &k.groups[i]
		a := location{path: k.name}.index(i, g.Pos)
		index := 0
		if len(g.Inputs) > 0 {
			if f := r.combinedFeature(g, k.to, a); f != nil {
				features = append(features, *f)
			}
			continue
		}
		for j, pattern := range g.Columns {
			if r.stopped() {
				return features
			}
			here := a.key("columns", a.pos).index(j, firstPos(pattern.Pos, a.pos))
			if v := r.values[pattern.Text]; v != nil {
				if f := r.valueFeature(v, g, k.to, index, here, a); f != nil {
					features = append(features, *f)
				}
				index++
				continue
			}
			columns, wrong := matchPattern(pattern.Text, r.schema, r.byName, func(name string) bool {
				return r.wouldTake(name, g.Ops, k.to, a)
			})
			if wrong != nil {
				r.addFound(here, wrong)
				continue
			}
			if len(features)+len(columns) > MaxFeatures {
				r.add(here, ErrValue, "more than %d features", MaxFeatures)
				return features
			}
			for _, c := range columns {
				if r.stopped() {
					return features
				}
				column, digits := c.name(r.schema)
				name, wrong := expandName(g.As, column, digits, index)
				index++
				if wrong != "" {
					here.column = column
					r.add(here, ErrPattern, "%s", wrong)
					continue
				}
				if f := r.feature(c, name, g.Ops, k.to, g.AllowAbsent, a); f != nil {
					f.group = g
					if f.DropScores = g.DropScores; g.DropScores && !f.hasScores() {
						here.column = column
						r.add(here, ErrColumnType, "scores: drop, and it has none")
						continue
					}
					if name := f.movesIDs(); name != "" {
						here.column = column
						r.add(here, ErrColumnType, "%s moves ids, and each of them has a score; say scores: drop", name)
						continue
					}
					features = append(features, *f)
				}
			}
		}
	}
	return features
}

// feature applies a chain of operators to one column. absent says that partitions may lack the column. It returns nil
// after an error.
func (r *resolver) feature(n columnRef, name string, ops []Op, to program.Dest, absent bool, a location) *Feature {
	a.column, _ = n.name(r.schema)
	if c := &r.schema[n.column]; c.Null&NullEverywhere != 0 && r.nullAs == nil {
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
func (r *resolver) columnOperand(n columnRef, absent bool, a location) *operand {
	c := r.schema[n.column]
	switch {
	case c.Unsupported != nil:
		r.add(a, ErrUnsupported, "%s", strings.ReplaceAll(c.Unsupported.Error(), "\n", "; "))
		return nil
	case r.twice[c.Name]:
		r.add(a, ErrUnsupported, "the dataset has several columns of this name")
		return nil
	case c.Map.IsMap() && !n.isMap:
		r.add(a, ErrColumnType, "it is a map: name its features, as %s[%s]", shorten(c.Name), c.Map.exampleKey())
		return nil
	case c.Kind < program.Int64 || c.Kind > program.Bytes:
		r.add(a, ErrUnsupported, "it has no kind of values that pipelines know")
		return nil
	case c.Absent.Partitions > 0 && !absent && a.path == "label":
		r.add(a, ErrMissingColumn, "%v: the label is absent there; write label: {column: %s, null: 0} with the value "+
			"that these rows are to have, or leave the partitions out", c.Absent, yamlText(c.Name))
		return nil
	case c.Absent.Partitions > 0 && !absent:
		r.add(a, ErrMissingColumn, "%v: it is absent there; write absent: allow to read it as null, or leave the "+
			"partitions out", c.Absent)
		return nil
	}
	absent = absent || c.Null != 0
	if c.Null&NullEverywhere != 0 && r.nullAs != nil {
		c.Kind, c.List, c.ElementNullable, c.Bits = r.nullAs.Kind, r.nullAs.List, r.nullAs.List, 0
	}
	if c.Null&NullLists != 0 && c.Kind != program.Int64 {
		c.Reading = program.ReadValues // chunks of the type null hold integers
	}
	c.Nullable = c.Nullable || absent
	name, _ := n.name(r.schema)
	o := &operand{column: c, absent: absent, key: n.key, text: n.text, kind: c.Kind, ids: rangeOfColumn(&c),
		origin: origin{columns: Columns(name), absent: absent}}
	if c.Kind == program.Bytes && c.Logical == "FLOAT16" {
		o.ops, o.kind = []program.Op{float16.Op{}}, program.Float32
	}
	return o
}

// makeFeature applies a chain of operators to a value and ends it in a tensor. It returns nil after an error.
func (r *resolver) makeFeature(from *operand, name string, ops []Op, to program.Dest, a location) *Feature {
	copied := *from
	o := &copied
	o.dest = to
	switch {
	case name == "":
		r.add(a, ErrValue, "the column has no name, and a feature must have one; name it with as")
		return nil
	case len(name) > MaxName:
		r.add(a, ErrValue, "a feature's name of %d bytes, want at most %d", len(name), MaxName)
		return nil
	}
	ch := r.runOperators(o, ops, 0, a, to != program.ToSparse)
	if ch == nil {
		return nil
	}
	o = ch.from // another one if an operator began another chain
	if o.column.List && to != program.ToSparse && !r.takesList(ops, to, a) {
		return nil
	}
	if endsInClasses(ch.ops) && to != program.ToDense {
		r.add(a, ErrColumnType, "onehot makes dense columns; put it to a group of dense")
		return nil
	}
	ch.end(to, a)
	if ch.failed {
		return nil
	}
	if len(ch.ops) > program.MaxOps {
		r.add(a, ErrValue, "%d operators, conversions included, want at most %d", len(ch.ops), program.MaxOps)
		return nil
	}
	f := &Feature{Name: name, Column: o.column, Key: o.key, TextKey: o.text, Ops: ch.ops, location: a, nulls: ch.nulls,
		ids: ch.ids, step: o.step, shared: o.shared, absent: o.absent, encoding: ch.encoding}
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
func (r *resolver) takesList(ops []Op, to program.Dest, a location) bool {
	hint := "list_length counts their elements"
	if to == program.ToDense {
		if makesDense(ops) {
			return true
		}
		hint = "fixed_length makes dense columns of lists of one length, and " + hint
	}
	r.add(a, ErrColumnType, "a list cannot be %v: only sparse features have several values a row; %s", to, hint)
	return false
}

// wouldTake reports whether a column can be made a feature without an error.
func (r *resolver) wouldTake(name string, ops []Op, to program.Dest, a location) bool {
	f := r.trial().feature(columnRef{column: r.byName[name]}, name, ops, to, false, a)
	return f != nil && (to == program.ToSparse || f.encoding != nil || !f.null(program.MalformedFail))
}

// nullTypes are the types that a column with only nulls can have, in the order in which they are tried.
var nullTypes = []ColumnInfo{
	{Kind: program.Int64}, {Kind: program.Bytes}, {Kind: program.Float32},
	{Kind: program.Int64, List: true}, {Kind: program.Bytes, List: true}, {Kind: program.Float32, List: true},
}

// trial returns a resolver of the same schema whose errors are not reported.
func (r *resolver) trial() *resolver {
	return &resolver{problems: &problems{}, schema: r.schema, byName: r.byName, twice: r.twice,
		vocabularies: r.vocabularies}
}

// refuseDuplicates refuses two features of one name.
func (r *resolver) refuseDuplicates(what string, features []Feature) {
	seen := make(map[string]bool, len(features))
	for i := range features {
		f := &features[i]
		for _, name := range f.columnNames() {
			if seen[name] {
				r.add(f.location, ErrDuplicate, "a second %s feature named %q; name it with as", what, name)
			}
			seen[name] = true
		}
	}
}

// fitInt32 reports whether the operators bound every id of the keys within int32.
func fitInt32(keys []Feature) bool {
	return !slices.ContainsFunc(keys, func(f Feature) bool { return !f.ids.fitInt32() })
}

// refuseWideIDs refuses keys whose ids may not fit int32.
func (r *resolver) refuseWideIDs(keys []Feature) {
	for i := range keys {
		f := &keys[i]
		if !f.ids.fitInt32() {
			r.add(f.location, ErrIDs, "ids of %q may be %d to %d; end with sigrid_hash, positive_modulus or clamp "+
				"within int32, or say ids: int64",
				f.Name, f.ids.lo, f.ids.hi)
		}
	}
}
