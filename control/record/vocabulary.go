package record

import (
	"fmt"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// VocabularyFile returns the file that a job names.
func VocabularyFile(v *apiv1.JobVocabulary) (jobfiles.File, error) {
	if len(v.GetSha256()) != len(vocabulary.Digest{}) {
		return jobfiles.File{}, fmt.Errorf("%w: vocabulary %.80q: a digest of %d bytes, want %d", ErrSpec, v.GetName(),
			len(v.GetSha256()), len(vocabulary.Digest{}))
	}
	return jobfiles.File{Digest: vocabulary.Digest(v.GetSha256()), Bytes: v.GetBytes()}, nil
}

// bindVocabularies gives a pipeline the descriptions of its vocabularies. Each that the pipeline declares must be named
// once, and no other.
func bindVocabularies(p *pipeline.Spec, list []*apiv1.JobVocabulary) (*pipeline.Spec, error) {
	named := map[string]bool{}
	for _, v := range list {
		file, err := VocabularyFile(v)
		if err != nil {
			return nil, err
		}
		if named[v.GetName()] {
			return nil, fmt.Errorf("vocabulary %.80q is named twice", v.GetName())
		}
		named[v.GetName()] = true
		d, err := vocabulary.ReadDescription(v.GetDescription(), file.Digest)
		if err != nil {
			return nil, fmt.Errorf("vocabulary %.80q: its description: %w", v.GetName(), err)
		}
		if d.Bytes() != file.Bytes {
			return nil, fmt.Errorf("vocabulary %.80q: a file of %d bytes, and its description is of %d", v.GetName(),
				file.Bytes, d.Bytes())
		}
		if p, err = p.Bind(v.GetName(), d.Vocabulary()); err != nil {
			return nil, fmt.Errorf("pipeline: %w", err)
		}
	}
	for i := range p.Vocabularies {
		if name := p.Vocabularies[i].Name; !named[name] {
			return nil, fmt.Errorf("pipeline: %w: the job names no file for %q: build it with millrace vocabulary build, "+
				"and submit the job with --vocabulary %s=FILE", problem.ErrVocabulary, name, name)
		}
	}
	return p, nil
}
