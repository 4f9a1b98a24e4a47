package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// checkPath refuses a path that cannot be written before the pass begins.
func (p *VocabularyPass) checkPath() error {
	if p.InMemory {
		return nil
	}
	if p.Path == "" {
		return fmt.Errorf("%w: name the file of the vocabulary", ErrConfig)
	}
	if err := wholefile.CheckFolderOf(p.Path); err != nil {
		return err
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

// passBuilder folds the mini-batches of a pass.
type passBuilder struct {
	add    func(first uint64, mb *tensor.MiniBatch) error
	finish func(made *VocabularyReport) error // sets what was built
	keep   func(partitions []vocabulary.PartitionRows)
	keys   func() int64
	close  func() error
}

// builder begins the vocabulary, or its next generation.
func (p *VocabularyPass) builder(
	columns []vocabulary.Column, rules vocabulary.Rules, m *dataset.Manifest,
) (*passBuilder, error) {
	o := p.Builder
	for i := range m.Partitions {
		p := &m.Partitions[i]
		o.Partitions = append(o.Partitions, vocabulary.Counted{Name: p.Name, Digest: p.Content})
	}
	if p.InMemory {
		b, err := vocabulary.NewMemoryBuilder(columns, rules, p.Builder)
		if err != nil {
			return nil, err
		}
		return &passBuilder{add: b.AddMiniBatch, keep: b.KeepIDs, keys: b.Keys, close: b.Close,
			finish: func(made *VocabularyReport) (err error) {
				made.Vocabulary, err = b.Vocabulary()
				return err
			}}, nil
	}
	if p.Extend == "" {
		b, err := vocabulary.NewBuilder(columns, rules, o)
		if err != nil {
			return nil, err
		}
		return p.fileBuilder(b, b.Close), nil
	}
	before, err := vocabulary.Load(p.Extend)
	if err != nil {
		return nil, err
	}
	if want := rules.Normalize(); before.Rules != want {
		return nil, fmt.Errorf("%s: %w: it was made with %v, and the pipeline says %v", p.Extend, vocabulary.ErrOther,
			before.Rules, want)
	}
	counts, err := vocabulary.OpenCounts(p.Extend, before.Digest)
	if err != nil {
		return nil, err
	}
	b, err := vocabulary.Extend(before, counts, columns, o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.Extend, err), counts.Close())
	}
	return p.fileBuilder(b, func() error { return errors.Join(b.Close(), counts.Close()) }), nil
}

// fileBuilder is a builder that writes the pass's files.
func (p *VocabularyPass) fileBuilder(b *vocabulary.Builder, closeBuilder func() error) *passBuilder {
	return &passBuilder{add: b.AddMiniBatch, keep: func([]vocabulary.PartitionRows) {}, keys: b.Keys,
		close: closeBuilder,
		finish: func(made *VocabularyReport) (err error) {
			made.Built, err = b.Finish(p.Path)
			return err
		}}
}

// BindStatistics returns a pipeline with the numbers of summaries for its statistics, by name.
func BindStatistics(spec *pipeline.Spec, files map[string]string) (*pipeline.Spec, error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := spec.BindStatistics(name, &summary.Summary{}, summary.Digest{}); err != nil {
			return nil, err
		}
		file, digest, err := summary.Load(files[name])
		if err != nil {
			return nil, err
		}
		if spec, err = spec.BindStatistics(name, file, digest); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// BindVocabularies returns a pipeline with the files of its vocabularies, by name.
func BindVocabularies(spec *pipeline.Spec, files map[string]string) (*pipeline.Spec, error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := spec.Bind(name, nil); err != nil {
			return nil, err
		}
		file, err := vocabulary.LoadForLookups(files[name])
		if err != nil {
			return nil, err
		}
		if spec, err = spec.Bind(name, file); err != nil {
			return nil, err
		}
	}
	return spec, nil
}
