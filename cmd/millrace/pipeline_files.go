package main

import (
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/remote"
)

// pipelineFiles are the flags that name the files of a pipeline: its vocabularies, summaries and modules.
type pipelineFiles struct {
	have    vocabularyFlags
	modules moduleFlags
}

func (p *pipelineFiles) addFlags(f *pflag.FlagSet) {
	p.have.addFlag(f)
	p.modules.addFlag(f)
}

// given reports whether a flag names a file.
func (p *pipelineFiles) given() bool {
	return len(p.have.files) > 0 || len(p.have.summaries) > 0 || len(p.modules.files) > 0
}

// load reads a pipeline, which is a document or a name, and gives it its files.
func (p *pipelineFiles) load(document string) (*pipeline.Spec, error) {
	spec, err := loadPipeline(document)
	if err != nil {
		return nil, err
	}
	return p.bind(spec, document)
}

// bind gives a pipeline its files.
func (p *pipelineFiles) bind(spec *pipeline.Spec, document string) (*pipeline.Spec, error) {
	spec, err := p.have.bind(spec, document)
	if err != nil {
		return nil, err
	}
	return p.modules.bind(spec, document)
}

// submitted returns the files of a job that is submitted to a control plane.
func (p *pipelineFiles) submitted() (files remote.Files, err error) {
	if files.Vocabularies, err = p.have.named(); err != nil {
		return files, err
	}
	files.Modules, err = p.modules.read()
	return files, err
}
