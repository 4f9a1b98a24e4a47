package local

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/vocabulary"
)

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
