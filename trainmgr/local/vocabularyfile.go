package local

import (
	"errors"
	"fmt"
	"os"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// checkPath refuses a path that cannot be written before the pass begins.
func (p *VocabularyPass) checkPath() error {
	if p.Path == "" {
		return fmt.Errorf("%w: name the file of the vocabulary", ErrConfig)
	}
	if p.Replace {
		return nil
	}
	for _, path := range []string{p.Path, p.Path + vocabulary.CountsSuffix} {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s: %w: name another file, or let it be replaced", path, os.ErrExist)
		}
	}
	return nil
}

// builder begins the vocabulary, or its next generation.
func (p *VocabularyPass) builder(
	columns []vocabulary.Column, rules vocabulary.Rules,
) (_ *vocabulary.Builder, closeBuilder func() error, err error) {
	if p.Extend == "" {
		b, err := vocabulary.NewBuilder(columns, rules, p.Builder)
		if err != nil {
			return nil, nil, err
		}
		return b, b.Close, nil
	}
	before, err := vocabulary.Load(p.Extend)
	if err != nil {
		return nil, nil, err
	}
	if want := rules.Normalize(); before.Rules != want {
		return nil, nil, fmt.Errorf("%s: %w: it was made with %v, and the pipeline says %v", p.Extend, vocabulary.ErrOther,
			before.Rules, want)
	}
	counts, err := vocabulary.OpenCounts(p.Extend + vocabulary.CountsSuffix)
	if err != nil {
		return nil, nil, err
	}
	b, err := vocabulary.Extend(before, counts, columns, p.Builder)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", p.Extend, err), counts.Close())
	}
	return b, func() error { return errors.Join(b.Close(), counts.Close()) }, nil
}

// BindVocabularies returns a pipeline with the files of its vocabularies, by name.
func BindVocabularies(spec *pipeline.Spec, files map[string]string) (*pipeline.Spec, error) {
	for name, path := range files {
		if _, err := spec.Bind(name, nil); err != nil {
			return nil, err
		}
		file, err := vocabulary.Load(path)
		if err != nil {
			return nil, err
		}
		if spec, err = spec.Bind(name, file); err != nil {
			return nil, err
		}
	}
	return spec, nil
}
