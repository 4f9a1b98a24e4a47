package pipeline

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// VocabularyOperator is the name of the operator that looks ids up.
const VocabularyOperator = "vocabulary"

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
		var p problem.List
		p.Add(problem.Place{Path: "vocabularies"}, problem.ErrVocabulary, "the pipeline has no vocabulary %q%s",
			problem.Shorten(name),
			problem.Suggest(name, s.vocabularyNames()))
		return nil, p.Err()
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
	keys.TakeNamed(s)
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
	rest.TakeNamed(s)
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
	if len(g.Ops) == 0 {
		return ""
	}
	return g.Ops[len(g.Ops)-1].VocabularyName()
}

// VocabularyName returns the vocabulary that the operator looks ids up in, or "" if it is another operator.
func (o *Op) VocabularyName() string {
	v, _ := o.Given("name")
	if name, ok := v.(Text); ok && o.Name == VocabularyOperator {
		return string(name)
	}
	return ""
}

// The keys of a vocabulary's declaration.
var vocabularyKeys = []string{"order", "joint", "base", "null_id", "rare_id", "oov_buckets", "min_count", "max_size",
	"unknown"}

// vocabularies reads the declarations.
func (p *parser) vocabularies(n *yaml.Node, a problem.Place) (list []Vocabulary) {
	p.named(n, a, MaxVocabularies, "vocabularies", func(name string, n *yaml.Node, here problem.Place) {
		v := p.vocabulary(n, here)
		v.Name, v.Pos = name, here.Pos
		list = append(list, v)
	})
	return list
}

// vocabulary reads one declaration. Nothing is a declaration of defaults.
func (p *parser) vocabulary(n *yaml.Node, a problem.Place) Vocabulary {
	var v Vocabulary
	if value := p.follow(n, a); value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
		return v
	}
	p.members(n, a, problem.ErrUnknownKey, vocabularyKeys, func(key string, n *yaml.Node, a problem.Place) {
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
			p.Add(a, problem.ErrValue, "%v", err)
		}
	})
	return v
}

// whole reads a whole number from least to greatest.
func (p *parser) whole(n *yaml.Node, a problem.Place, least, greatest int64) int64 {
	x, ok := p.number(n, a)
	if !ok {
		return least
	}
	if !x.Integer || x.Int < least || x.Int > greatest {
		p.Add(a, problem.ErrValue, "%s, want a whole number from %d to %d", x, least, greatest)
		return least
	}
	return x.Int
}

// checkVocabularies checks the declarations, and that operators and declarations name each other.
func (s *Spec) checkVocabularies(p *problem.List) {
	names := make([]declaredName, len(s.Vocabularies))
	for i := range s.Vocabularies {
		v := &s.Vocabularies[i]
		names[i] = declaredName{v.Name, v.Pos}
		err := v.Rules.Normalize().Check()
		if err == nil {
			_, err = v.Rules.Normalize().Policy(v.Unknown)
		}
		if err != nil {
			p.Add(names[i].place("vocabularies"), problem.ErrValue, "%s",
				strings.TrimPrefix(err.Error(), vocabulary.ErrRules.Error()+": "))
		}
	}
	s.checkNames(p, "vocabularies", names, MaxVocabularies, problem.ErrVocabulary, (*Op).VocabularyName)
	s.eachChain(func(ops []Op, a problem.Place) {
		for i := range ops {
			switch here := a.Index(i, ops[i].Pos); {
			case ops[i].Name != VocabularyOperator:
			case strings.HasPrefix(a.Path, "values"):
				p.Add(here, problem.ErrValue, "a vocabulary ends the chain of a key: put it to the group that names the value")
			case i != len(ops)-1:
				p.Add(here, problem.ErrValue, "a vocabulary ends the chain: move the operators behind it before it")
			}
		}
	})
}
