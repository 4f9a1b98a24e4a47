package pipeline

import (
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// Resolved is a spec against the schema of a dataset.
type Resolved struct {
	Name  string
	Batch int // rows of a mini-batch
	IDs   program.IDs
	// Source is the format of the partitions; with program.CriteoTSV, LabelField tells whether rows begin with a label.
	Source     program.Source
	LabelField bool
	// Malformed says what becomes of malformed text rows. Resolve leaves it at fail; set it before Canonical and Lower.
	// With program.MalformedNull every column may be null.
	Malformed program.Malformed

	Label *Feature // nil: none
	Dense []Feature
	Keys  []Feature // the sparse features, then the generated ones
}

// Feature is one column of the label or dense tensor, or one key, and how it comes about.
type Feature struct {
	Name   string
	Column ColumnInfo
	Key    int64        // whose value it is, where the column is a map
	Ops    []program.Op // conversions included
	// DropScores: the scores of a scored list do not become weights.
	DropScores bool
	// NumEmbeddings is, for a key, the size of the embedding table that its ids need: ids are in [0, NumEmbeddings). 0
	// when the operators do not bound them.
	NumEmbeddings int64

	at    at
	chain nullness
	ids   span
}

// nullness tells how nulls pass through a chain of operators.
type nullness struct {
	fills bool // a null of the column is replaced on the way
	makes bool // an operator behind that makes new ones
}

// null reports whether a row can lack a value at the end of the chain.
func (f *Feature) null(m program.Malformed) bool {
	in := f.Column.Nullable || f.Column.Source == program.CriteoTSV && m == program.MalformedNull
	return in && !f.chain.fills || f.chain.makes
}

// jagged reports whether a row can have other than exactly one id.
func (f *Feature) jagged(m program.Malformed) bool { return f.Column.List || f.null(m) }

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
func (s *Spec) Resolve(schema []ColumnInfo) (*Resolved, error) {
	var p problems
	s.check(&p)
	if err := p.err(); err != nil {
		return nil, err
	}
	r := &resolver{
		problems: &p, schema: schema, byName: make(map[string]int, len(schema)), twice: make(map[string]bool),
		tables: make(map[tableKey]*program.Bucketize),
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
			p.add(at{column: c.Name}, ErrUnsupported, "it is of another format than the dataset's first column")
			return nil, p.err()
		}
		if c.Source != 0 {
			out.Source = c.Source
		}
		out.LabelField = out.LabelField || c.Source > program.Parquet && c.Field == 0
	}
	if s.Label != nil {
		out.Label = r.label(s.Label)
	}
	for _, k := range s.kinds() {
		features := r.groups(k)
		if k.to == program.ToDense {
			out.Dense = features
		} else {
			out.Keys = append(out.Keys, features...)
		}
	}
	r.unique("dense", out.Dense)
	r.unique("key", out.Keys)
	if s.IDs == program.IDs32 {
		r.fits(out.Keys)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return out, nil
}

type resolver struct {
	*problems
	schema  []ColumnInfo
	byName  map[string]int
	twice   map[string]bool // names that more than one column has
	tables  map[tableKey]*program.Bucketize
	borders int // over all tables
}

// spent reports whether enough was found wrong.
func (r *resolver) spent() bool { return len(r.list) >= maxErrors }

func (r *resolver) label(l *Label) *Feature {
	a := at{path: "label", pos: l.Pos}
	found, wrong, isMap := matchMap(l.Column, r.schema, r.byName)
	if i, ok := r.byName[l.Column]; ok {
		found, wrong = []named{{column: i}}, nil
	} else if !isMap {
		wrong = mismatch(ErrMissingColumn, "%q is not in the dataset%s", clip(l.Column), suggestThat(l.Column, names(r.schema), func(name string) bool {
			return r.takes(name, l.Ops, program.ToLabel, a)
		}))
	}
	switch {
	case wrong != nil:
		r.add(a.key("column", l.Pos), wrong.Err, "%s", wrong.Detail)
		return nil
	case len(found) != 1:
		r.add(a.key("column", l.Pos), ErrPattern, "%q names %d features, want one", clip(l.Column), len(found))
		return nil
	}
	return r.feature(found[0], l.Column, l.Ops, program.ToLabel, a)
}

func (r *resolver) groups(k kind) []Feature {
	var features []Feature
	for i := range k.groups {
		g := &k.groups[i]
		a := at{path: k.name}.index(i, g.Pos)
		place := 0
		for j, pattern := range g.Columns {
			if r.spent() {
				return features
			}
			here := a.key("columns", a.pos).index(j, orPos(pattern.Pos, a.pos))
			columns, wrong := match(pattern.Text, r.schema, r.byName, func(name string) bool {
				return r.takes(name, g.Ops, k.to, a)
			})
			if wrong != nil {
				r.add(here, wrong.Err, "%s", wrong.Detail)
				continue
			}
			if len(features)+len(columns) > maxFeatures {
				r.add(here, ErrValue, "more than %d features", maxFeatures)
				return features
			}
			for _, c := range columns {
				if r.spent() {
					return features
				}
				column, digits := c.name(r.schema)
				name, wrong := expandName(g.As, column, digits, place)
				place++
				if wrong != "" {
					here.column = column
					r.add(here, ErrPattern, "%s", wrong)
					continue
				}
				if f := r.feature(c, name, g.Ops, k.to, a); f != nil {
					if f.DropScores = g.DropScores; g.DropScores && f.Column.Map.Scores == "" {
						here.column = column
						r.add(here, ErrColumnType, "scores: drop, and it has none")
						continue
					}
					features = append(features, *f)
				}
			}
		}
	}
	return features
}

// feature types a chain of operators for one column; nil when it cannot be.
func (r *resolver) feature(n named, name string, ops []Op, to program.Dest, a at) *Feature {
	c := r.schema[n.column]
	a.column, _ = n.name(r.schema)
	switch {
	case c.Unsupported != nil:
		r.add(a, ErrUnsupported, "%s", strings.ReplaceAll(c.Unsupported.Error(), "\n", "; "))
		return nil
	case r.twice[c.Name]:
		r.add(a, ErrUnsupported, "the dataset has several columns of this name")
		return nil
	case c.Map.IsMap() && !n.isMap:
		r.add(a, ErrColumnType, "it is a map: name its features, as %s[101]", clip(c.Name))
		return nil
	case c.Kind < program.Int64 || c.Kind > program.Bytes:
		r.add(a, ErrUnsupported, "it has no kind of values that pipelines know")
		return nil
	case name == "":
		r.add(a, ErrValue, "the column has no name, and a feature must have one; name it with as")
		return nil
	case len(name) > maxName:
		r.add(a, ErrValue, "a feature's name of %d bytes, want at most %d", len(name), maxName)
		return nil
	case c.List && to != program.ToSparse:
		r.add(a, ErrColumnType, "a list cannot be %v: only sparse features have several values a row", to)
		return nil
	}
	ch := &chain{r: r, column: &c, kind: c.Kind, ids: width(&c)}
	for i := range ops {
		ch.entry = operators[ops[i].Name]
		ch.entry.apply(ch, &ops[i], a.key("ops", a.pos).index(i, orPos(ops[i].Pos, a.pos)))
		if ch.failed {
			return nil
		}
	}
	ch.end(to, a)
	if ch.failed {
		return nil
	}
	if len(ch.ops) > program.MaxOps {
		r.add(a, ErrValue, "%d operators, conversions included, want at most %d", len(ch.ops), program.MaxOps)
		return nil
	}
	f := &Feature{Name: name, Column: c, Key: n.key, Ops: ch.ops, at: a, chain: ch.nulls, ids: ch.ids}
	if to == program.ToSparse {
		f.NumEmbeddings = ch.embeddings()
	}
	return f
}

// takes reports whether a column would be taken for a feature.
func (r *resolver) takes(name string, ops []Op, to program.Dest, a at) bool {
	trial := &resolver{problems: &problems{}, schema: r.schema, byName: r.byName, twice: r.twice, tables: make(map[tableKey]*program.Bucketize)}
	f := trial.feature(named{column: r.byName[name]}, name, ops, to, a)
	return f != nil && (to == program.ToSparse || !f.null(program.MalformedFail))
}

// unique refuses two features of one name.
func (r *resolver) unique(what string, features []Feature) {
	seen := make(map[string]bool, len(features))
	for i := range features {
		f := &features[i]
		if seen[f.Name] {
			r.add(f.at, ErrDuplicate, "a second %s feature named %q; name it with as", what, f.Name)
		}
		seen[f.Name] = true
	}
}

// fits refuses keys whose ids may not fit int32.
func (r *resolver) fits(keys []Feature) {
	for i := range keys {
		f := &keys[i]
		if f.ids.lo < -1<<31 || f.ids.hi > 1<<31-1 {
			r.add(f.at, ErrIDs, "ids of %q may be %d to %d; end with sigrid_hash, positive_modulus or clamp within int32, or say ids: int64",
				f.Name, f.ids.lo, f.ids.hi)
		}
	}
}
