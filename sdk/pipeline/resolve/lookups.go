package resolve

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// featureLookup is what a vocabulary does to the ids of a key, behind the drive.
type featureLookup struct {
	*vocabulary.Lookup
	digest  vocabulary.Digest
	unknown vocabulary.Unknown
	keys    catalogue.Range // The ids that the drive makes.
}

// applyVocabulary ends a chain with a lookup.
func applyVocabulary(c *chain) {
	if c.RequireIntegers() {
		c.vocabulary = c.r.vocabularies[c.VocabularyName()]
	}
}

// lookUp gives a key the lookup of the vocabulary that ends its chain.
func (r *resolver) lookUp(f *Feature, c *chain, to program.Dest, a problem.Place) {
	v := c.vocabulary
	fail := func(err error, format string, args ...any) {
		c.refuse(a, err, format, args...)
	}
	switch {
	case v == nil || c.r.recorder != nil: // a pass for statistics has no lookups
		return
	case to != program.ToSparse:
		fail(problem.ErrColumnType, "a vocabulary makes ids, and %v has none: use it in sparse or generated", to)
		return
	case v.File == nil:
		fail(problem.ErrVocabulary, "%q has no file: build it with millrace vocabulary build and name it with "+
			"--vocabulary %s=FILE", problem.Shorten(v.Name), problem.Shorten(v.Name))
		return
	}
	if have, want := v.File.Rules, v.Rules.Normalize(); have != want {
		fail(problem.ErrVocabulary, "the file for %q was made with %v, and the pipeline says %v: build it again",
			problem.Shorten(v.Name),
			have, want)
		return
	}
	l, err := v.File.Lookup(vocabulary.Column{Name: f.Name, Chain: keyChain(f)}, v.Unknown, f.Column.List)
	if err != nil {
		fail(problem.ErrVocabulary, "the file for %q: %s: build it with this pipeline", problem.Shorten(v.Name),
			strings.TrimPrefix(err.Error(), "vocabulary: "))
		return
	}
	unknown, _ := v.File.Rules.Policy(v.Unknown) // Lookup refused what it refuses
	f.lookup = &featureLookup{Lookup: l, digest: v.File.Digest, unknown: unknown, keys: f.IDs}
	least, greatest := l.Range()
	f.IDs = catalogue.Range{Low: least, High: greatest}
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
	if f.Step != nil { // names of columns that are combined are kept
		c.str(`,` + c.source(&f.Column, f.Step))
	}
	c.str(`,"kind":"` + kindText(&f.Column) + `","ops":[`)
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

// LookUp returns the lookup of the key's ids behind the drive, or nil if there is none.
func (f *Feature) LookUp() *vocabulary.Lookup {
	if f.lookup == nil {
		return nil
	}
	return f.lookup.Lookup
}

// LeaveLookup makes the feature the keys that the drive makes, before their lookup.
func (f *Feature) LeaveLookup() { f.IDs, f.NumEmbeddings, f.lookup = f.lookup.keys, 0, nil }

// LookUpBy has operators of the program look the ids up, which lets no null pass if they fill them.
func (f *Feature) LookUpBy(fills bool, ops ...program.Op) {
	f.Ops, f.lookup = slices.Concat(f.Ops, ops), nil
	if fills {
		f.nulls = nullness{fills: true}
	}
}

// jagged reports whether a row of the mini-batch can have no id, or more than one.
func (f *Feature) jagged(m program.Malformed) bool {
	if f.lookup == nil {
		return f.jaggedFromDrive(m)
	}
	return f.jaggedFromDrive(m) && !f.lookup.Fills() || f.lookup.Drops()
}

// RefuseLookups refuses a pipeline with vocabularies where ids would stay as the drive made them, and one with a filter
// where every row would stay.
func (r *Resolved) RefuseLookups(p *problem.List) {
	if r.Filter != nil {
		p.Add(problem.Place{Path: "filter"}, problem.ErrSelection,
			"filters are not applied here: preprocess, train and millrace.open of "+
				"one machine apply them")
	}
	for i := range r.Keys {
		if r.Keys[i].lookup != nil {
			p.Add(r.Keys[i].Place, problem.ErrVocabulary, "vocabularies are not applied here: preprocess, train and "+
				"millrace.open apply them")
		}
	}
	for i := range r.Dense {
		if r.Dense[i].encoding != nil {
			p.Add(r.Dense[i].Place, problem.ErrStatistics, "target encodings are not applied here: preprocess, train and "+
				"millrace.open apply them")
		}
	}
}

// VocabularyColumns returns the columns of a vocabulary, of a spec that VocabularyKeys returned.
func (r *Resolved) VocabularyColumns() []vocabulary.Column {
	columns := make([]vocabulary.Column, len(r.Keys))
	for i := range r.Keys {
		columns[i] = vocabulary.Column{Name: r.Keys[i].Name, Chain: keyChain(&r.Keys[i])}
	}
	return columns
}
