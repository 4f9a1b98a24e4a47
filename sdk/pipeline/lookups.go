package pipeline

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// featureLookup is what a vocabulary does to the ids of a key, behind the drive.
type featureLookup struct {
	*vocabulary.Lookup
	digest  vocabulary.Digest
	unknown vocabulary.Unknown
	keys    idRange // of the ids that the drive makes
}

// applyVocabulary ends a chain with a lookup.
func applyVocabulary(c *chain, o *Op, a location) {
	if c.requireIntegers(o, a) {
		c.vocabulary = c.r.vocabularies[o.vocabularyName()]
	}
}

// lookUp gives a key the lookup of the vocabulary that ends its chain.
func (r *resolver) lookUp(f *Feature, c *chain, to program.Dest, a location) {
	v := c.vocabulary
	fail := func(err error, format string, args ...any) {
		c.refuse(a, err, format, args...)
	}
	switch {
	case v == nil || c.r.recorder != nil: // a pass for statistics has no lookups
		return
	case to != program.ToSparse:
		fail(ErrColumnType, "a vocabulary makes ids, and %v has none: use it in sparse or generated", to)
		return
	case v.File == nil:
		fail(ErrVocabulary, "%q has no file: build it with millrace vocabulary build and name it with "+
			"--vocabulary %s=FILE", shorten(v.Name), shorten(v.Name))
		return
	}
	if have, want := v.File.Rules, v.Rules.Normalize(); have != want {
		fail(ErrVocabulary, "the file for %q was made with %v, and the pipeline says %v: build it again", shorten(v.Name),
			have, want)
		return
	}
	l, err := v.File.Lookup(vocabulary.Column{Name: f.Name, Chain: keyChain(f)}, v.Unknown, f.Column.List)
	if err != nil {
		fail(ErrVocabulary, "the file for %q: %s: build it with this pipeline", shorten(v.Name),
			strings.TrimPrefix(err.Error(), "vocabulary: "))
		return
	}
	unknown, _ := v.File.Rules.Policy(v.Unknown) // Lookup refused what it refuses
	f.lookup = &featureLookup{Lookup: l, digest: v.File.Digest, unknown: unknown, keys: f.ids}
	least, greatest := l.Range()
	f.ids = idRange{least, greatest}
	f.NumEmbeddings = 0
	if least >= 0 {
		f.NumEmbeddings = greatest + 1
	}
}

// keyChain returns the digest of what makes a feature's keys: the kind of its column's values and the operators before
// the vocabulary. Names are left out.
func keyChain(f *Feature) vocabulary.Digest {
	c := canonical{}
	c.str(`{"keys":`).int(CanonicalVersion)
	if f.step != nil { // names of columns that are combined are kept
		c.str(`,` + c.source(&f.Column, f.step))
	}
	c.str(`,"kind":"` + f.Column.kindText() + `","ops":[`)
	c.ops(f.Column.Kind, f.Ops)
	c.str(`]`)
	for i, s := range c.steps.list {
		if i == 0 {
			c.str(`,"steps":[`)
		}
		c.comma(i).str(s)
		if i == len(c.steps.list)-1 {
			c.str(`]`)
		}
	}
	c.str(`,"borders":[`)
	c.bordersOfTables()
	c.str(`]}`)
	return vocabulary.Digest(sha256.Sum256(c.b))
}

// hasLookups reports whether ids are looked up behind the drive.
func (r *Resolved) hasLookups() bool {
	for i := range r.Keys {
		if r.Keys[i].lookup != nil {
			return true
		}
	}
	return false
}

// jagged reports whether a row of the mini-batch can have no id, or more than one.
func (f *Feature) jagged(m program.Malformed) bool {
	if f.lookup == nil {
		return f.jaggedFromDrive(m)
	}
	return f.jaggedFromDrive(m) && !f.lookup.Fills() || f.lookup.Drops()
}

// Lowered is a pipeline in its lowered form.
type Lowered struct {
	Program *program.Program
	Made    *tensor.Schema // of the mini-batches that the program makes
	Encoded *tensor.Schema // of those behind the target encodings
	Schema  *tensor.Schema // of the job's mini-batches
	// Encodings turn the first mini-batches into the second, see targetencoding.NewApplier. Without them Encoded is Made.
	Encodings []targetencoding.Column
	// Lookups turn the second mini-batches into the third, see vocabulary.NewApplier: a lookup of each key, or nil where
	// its ids stay. The program does not make keys whose ids a vocabulary keeps. Without lookups Lookups is nil, and
	// Schema is Encoded.
	Lookups []*vocabulary.Lookup
	// InDrive names the keys whose ids the program looks up, see LookUpInDrive.
	InDrive []string
	// Selection says which rows the job's mini-batches are cut from; nil: all rows.
	Selection *selection.Selection

	resolved *Resolved
}

// Behind returns the names of the keys whose ids are looked up behind the drive, by the host that takes the program's
// mini-batches.
func (l *Lowered) Behind() []string {
	var names []string
	for i, v := range l.Lookups {
		if v != nil {
			names = append(names, l.Schema.Keys[i].Name)
		}
	}
	return names
}

// LowerWithLookups is Lower for callers that apply vocabularies and selections.
func LowerWithLookups(r *Resolved) (*Lowered, error) {
	if err := r.checkSelection(); err != nil {
		return nil, err
	}
	return r.lowerWithTables(nil)
}

// lowerWithTables lowers the pipeline. The program looks ids up in tables, and the lookups of other keys are left to
// whoever takes the mini-batches.
func (r *Resolved) lowerWithTables(tables *driveTables) (_ *Lowered, err error) {
	l := &Lowered{resolved: r}
	drive := *r // what the drive makes: the keys before their lookups, of every row
	if drive.Filter = nil; r.Filter != nil {
		l.Selection = r.selection
	}
	encodings := drive.takeEncodings()
	if encodings != nil && r.Malformed == program.MalformedDrop {
		return nil, ErrDroppedRows
	}
	if !r.hasLookups() && encodings == nil {
		l.Program, l.Made, err = Lower(&drive)
		l.Encoded, l.Schema = l.Made, l.Made
		return l, err
	}
	kept := encodings == nil && r.takesKept()
	drive.Keys = slices.Clone(drive.Keys)
	made := drive.Keys[:0]
	for i := range drive.Keys {
		f := drive.Keys[i]
		l.Lookups = append(l.Lookups, nil)
		if kept && f.lookup != nil && f.lookup.Kept() {
			l.Lookups[i] = f.lookup.Lookup
			continue
		}
		if tables.replaceLookup(&f, i) {
			l.InDrive = append(l.InDrive, f.Name)
		} else if f.lookup != nil {
			l.Lookups[i] = f.lookup.WithoutKept()
			f.ids, f.NumEmbeddings, f.lookup = f.lookup.keys, 0, nil
		}
		if !f.ids.fitInt32() {
			drive.IDs = program.IDs64
		}
		made = append(made, f)
	}
	drive.Keys = made
	if tables != nil {
		drive.lookupTables = tables.list
	}
	if l.Program, l.Made, err = Lower(&drive); err != nil {
		return nil, err
	}
	l.Schema = r.schema()
	l.Encoded, l.Encodings = l.Made, encodings
	if l.Lookups = l.Lookups[:len(r.Keys)]; encodings != nil {
		encoded := *l.Schema
		if encoded.Keys = l.Made.Keys[:len(r.Keys):len(r.Keys)]; len(r.Keys) > 0 {
			encoded.IDs = l.Made.IDs
		}
		l.Encoded = &encoded
	}
	behind := slices.ContainsFunc(l.Lookups, func(v *vocabulary.Lookup) bool { return v != nil })
	if !behind && (encodings == nil || l.Encoded.IDs == l.Schema.IDs) {
		l.Lookups, l.Schema = nil, l.Encoded // no id changes behind the program
	}
	return l, nil
}

// takesKept reports whether mini-batches can have ids that a vocabulary keeps, beside what the program makes: every row
// has one id of every key, and the program makes something.
func (r *Resolved) takesKept() bool {
	s := r.schema()
	makes := s.Label || len(s.Dense) > 0
	for i := range r.Keys {
		f := &r.Keys[i]
		makes = makes || f.lookup == nil || !f.lookup.Kept()
	}
	return makes && s.Fixed() && !s.Weights && s.Sets() == 0
}

// refuseLookups refuses a pipeline with vocabularies where ids would stay as the drive made them, and one with a filter
// where every row would stay.
func (r *Resolved) refuseLookups(p *problems) {
	if r.Filter != nil {
		p.add(location{path: "filter"}, ErrSelection, "filters are not applied here: preprocess, train and millrace.open of "+
			"one machine apply them")
	}
	for i := range r.Keys {
		if r.Keys[i].lookup != nil {
			p.add(r.Keys[i].location, ErrVocabulary, "vocabularies are not applied here: preprocess, train and "+
				"millrace.open apply them")
		}
	}
	for i := range r.Dense {
		if r.Dense[i].encoding != nil {
			p.add(r.Dense[i].location, ErrStatistics, "target encodings are not applied here: preprocess, train and "+
				"millrace.open apply them")
		}
	}
}
