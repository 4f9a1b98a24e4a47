package pipeline

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/sdk/vocabulary"
)

// ErrVocabulary says that a vocabulary is not there, or is not of this pipeline.
var ErrVocabulary = errors.New("vocabulary does not fit")

// vocabularyOperator is the name of the operator that looks ids up.
const vocabularyOperator = "vocabulary"

// Vocabulary declares a vocabulary that the operator `vocabulary` names.
type Vocabulary struct {
	Name    string
	Rules   vocabulary.Rules
	Unknown vocabulary.Unknown // 0: as the rules imply, see vocabulary.Rules.Policy
	Pos     Pos

	// File is the vocabulary that was built for the declaration; nil: none is at hand. It is not part of a document. See
	// [Spec.Bind].
	File *vocabulary.Vocabulary
}

// Bind returns the spec with a file for one of its vocabularies. The receiver does not change.
func (s *Spec) Bind(name string, file *vocabulary.Vocabulary) (*Spec, error) {
	i := slices.IndexFunc(s.Vocabularies, func(v Vocabulary) bool { return v.Name == name })
	if i < 0 {
		var p problems
		p.add(location{path: "vocabularies"}, ErrVocabulary, "the pipeline has no vocabulary %q%s", shorten(name),
			suggestAccepted(name, s.vocabularyNames(), func(string) bool { return true }))
		return nil, p.err()
	}
	bound := *s
	bound.Vocabularies = slices.Clone(s.Vocabularies)
	bound.Vocabularies[i].File = file
	return &bound, nil
}

func (s *Spec) vocabularyNames() []string {
	names := make([]string, len(s.Vocabularies))
	for i := range s.Vocabularies {
		names[i] = s.Vocabularies[i].Name
	}
	return names
}

// VocabularyKeys returns the spec of the pass that a vocabulary is built of: its mini-batches hold the keys of the
// vocabulary, as int64, and nothing else, of the rows that the spec's filter chooses. It also returns the vocabulary's
// declaration.
func (s *Spec) VocabularyKeys(name string) (*Spec, *Vocabulary, error) {
	bound, err := s.Bind(name, nil)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(bound.Vocabularies, func(v Vocabulary) bool { return v.Name == name })
	keys := &Spec{Name: s.Name, Batch: s.Batch, Filter: s.Filter, Selection: s.Selection}
	for _, list := range []struct{ from, to *[]Group }{{&s.Sparse, &keys.Sparse}, {&s.Generated, &keys.Generated}} {
		for _, g := range *list.from {
			if g.vocabulary() == name {
				g.Ops, g.Deduplicate = g.Ops[:len(g.Ops)-1], false
				*list.to = append(*list.to, g)
			}
		}
	}
	keys.takeNamed(s)
	return keys, &bound.Vocabularies[i], nil
}

// WithoutVocabularies returns the spec without the groups that use vocabularies; it reports whether a group is left. A
// pass that builds a vocabulary checks it first, so that an error in the rest of the pipeline is not found after a pass
// over all data.
func (s *Spec) WithoutVocabularies() (*Spec, bool) {
	rest := *s
	rest.Vocabularies = nil
	usesVocabulary := func(g Group) bool { return g.vocabulary() != "" }
	left := len(rest.Dense)
	for _, list := range []*[]Group{&rest.Sparse, &rest.Generated} {
		*list = slices.DeleteFunc(slices.Clone(*list), usesVocabulary)
		left += len(*list)
	}
	rest.takeNamed(s)
	return &rest, left > 0
}

// WithoutMissingVocabularies returns the spec, or the part of it that can be resolved before its vocabularies are
// built. Its filter is the same.
func (s *Spec) WithoutMissingVocabularies() (*Spec, error) {
	missing := slices.IndexFunc(s.Vocabularies, func(v Vocabulary) bool { return v.File == nil })
	if missing < 0 {
		return s, nil
	}
	if rest, ok := s.WithoutVocabularies(); ok {
		return rest, nil
	}
	keys, _, err := s.VocabularyKeys(s.Vocabularies[missing].Name)
	return keys, err
}

// vocabulary returns the name of the vocabulary that ends the group's chain, or "".
func (g *Group) vocabulary() string {
	if len(g.Ops) == 0 || g.Ops[len(g.Ops)-1].Name != vocabularyOperator {
		return ""
	}
	return g.Ops[len(g.Ops)-1].vocabularyName()
}

// vocabularyName returns the parameter of the operator `vocabulary`, or "" if it has none.
func (o *Op) vocabularyName() string {
	if a, ok := o.arg("name"); ok {
		if name, ok := a.Value.(Text); ok {
			return string(name)
		}
	}
	return ""
}

// VocabularyColumns returns the columns of a vocabulary, of a spec that VocabularyKeys returned.
func (r *Resolved) VocabularyColumns() []vocabulary.Column {
	columns := make([]vocabulary.Column, len(r.Keys))
	for i := range r.Keys {
		columns[i] = vocabulary.Column{Name: r.Keys[i].Name, Chain: keyChain(&r.Keys[i])}
	}
	return columns
}

// The keys of a vocabulary's declaration.
var vocabularyKeys = []string{"order", "joint", "base", "null_id", "rare_id", "oov_buckets", "min_count", "max_size",
	"unknown"}

// vocabularies reads the declarations.
func (p *parser) vocabularies(n *yaml.Node, a location) []Vocabulary {
	n = p.follow(n, a)
	if n.Kind != yaml.MappingNode {
		p.add(a, ErrValue, "%s, want a mapping of names to vocabularies", describe(n))
		return nil
	}
	if len(n.Content)/2 > MaxVocabularies {
		p.add(a, ErrValue, "%d vocabularies, want at most %d", len(n.Content)/2, MaxVocabularies)
		return nil
	}
	var list []Vocabulary
	for i := 0; i+1 < len(n.Content) && !p.stopped(); i += 2 {
		at := location{pos: position(n.Content[i]), path: a.path}
		name := p.text(n.Content[i], at, "the name of a vocabulary")
		if name == "" {
			continue
		}
		here := a.key(shorten(name), position(n.Content[i]))
		v := p.vocabulary(n.Content[i+1], here)
		v.Name, v.Pos = name, here.pos
		list = append(list, v)
	}
	return list
}

// vocabulary reads one declaration. Nothing is a declaration of defaults.
func (p *parser) vocabulary(n *yaml.Node, a location) Vocabulary {
	var v Vocabulary
	if value := p.follow(n, a); value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
		return v
	}
	p.members(n, a, ErrUnknownKey, vocabularyKeys, func(key string, n *yaml.Node, a location) {
		r := &v.Rules
		var err error
		switch key {
		case "order":
			if t := p.text(n, a, strings.Join(vocabulary.OrderNames(), ", ")); t != "" {
				r.Order, err = vocabulary.ParseOrder(t)
			}
		case "unknown":
			if t := p.text(n, a, strings.Join(vocabulary.UnknownNames(), ", ")); t != "" {
				v.Unknown, err = vocabulary.ParseUnknown(t)
			}
		case "joint":
			r.Joint = p.truth(n, a)
		case "base":
			r.Base = p.whole(n, a, 0, vocabulary.MaxBase)
		case "null_id":
			r.Null = vocabulary.SomeID(p.whole(n, a, vocabulary.LeastID, vocabulary.MaxBase))
		case "rare_id":
			r.Rare = vocabulary.SomeID(p.whole(n, a, vocabulary.LeastID, vocabulary.MaxBase))
		case "oov_buckets":
			r.Buckets = uint32(p.whole(n, a, 0, vocabulary.MaxBuckets))
		case "min_count":
			r.MinCount = uint64(p.whole(n, a, 1, 1<<62))
		case "max_size":
			r.MaxSize = uint64(p.whole(n, a, 1, 1<<62))
		}
		if err != nil {
			p.add(a, ErrValue, "%v", err)
		}
	})
	return v
}

// whole reads a whole number from least to greatest.
func (p *parser) whole(n *yaml.Node, a location, least, greatest int64) int64 {
	x, ok := p.number(n, a)
	if !ok {
		return least
	}
	if !x.Integer || x.Int < least || x.Int > greatest {
		p.add(a, ErrValue, "%s, want a whole number from %d to %d", x, least, greatest)
		return least
	}
	return x.Int
}

// checkVocabularies checks the declarations, and that operators and declarations name each other.
func (s *Spec) checkVocabularies(p *problems) {
	declared := map[string]bool{}
	if len(s.Vocabularies) > MaxVocabularies {
		p.add(location{path: "vocabularies"}, ErrValue, "%d vocabularies, want at most %d", len(s.Vocabularies),
			MaxVocabularies)
		return
	}
	for i := range s.Vocabularies {
		v := &s.Vocabularies[i]
		a := location{path: "vocabularies"}.key(shorten(v.Name), v.Pos)
		switch {
		case v.Name == "" || len(v.Name) > MaxName:
			p.add(a, ErrValue, "a name of %d bytes, want 1 to %d", len(v.Name), MaxName)
		case declared[v.Name]:
			p.add(a, ErrDuplicate, "%q", shorten(v.Name))
		}
		declared[v.Name] = true
		rules := v.Rules.Normalize()
		if err := rules.Check(); err != nil {
			p.add(a, ErrValue, "%s", strings.TrimPrefix(err.Error(), vocabulary.ErrRules.Error()+": "))
		} else if _, err := rules.Policy(v.Unknown); err != nil {
			p.add(a, ErrValue, "%s", strings.TrimPrefix(err.Error(), vocabulary.ErrRules.Error()+": "))
		}
	}
	used := map[string]bool{}
	s.eachChain(func(ops []Op, a location) {
		for i := range ops {
			if ops[i].Name != vocabularyOperator {
				continue
			}
			here, name := a.index(i, ops[i].Pos), ops[i].vocabularyName()
			_, named := ops[i].arg("name")
			used[name] = true
			switch {
			case strings.HasPrefix(a.path, "values"):
				p.add(here, ErrValue, "a vocabulary ends the chain of a key: put it to the group that names the value")
			case named && !declared[name]:
				p.add(here, ErrVocabulary, "%q is not among vocabularies%s", shorten(name),
					suggestAccepted(name, s.vocabularyNames(), func(string) bool { return true }))
			case i != len(ops)-1:
				p.add(here, ErrValue, "a vocabulary ends the chain: move the operators behind it before it")
			}
		}
	})
	for i := range s.Vocabularies {
		if v := &s.Vocabularies[i]; !used[v.Name] {
			p.add(location{path: "vocabularies"}.key(shorten(v.Name), v.Pos), ErrVocabulary, "no group uses it")
		}
	}
}
