package main

import (
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/remote"
)

// pipelineFiles are the flags that name the files of a pipeline, its vocabularies, summaries and modules, and the part
// of the rows that it takes.
type pipelineFiles struct {
	have    vocabularyFlags
	modules moduleFlags
	split   splitFlag
}

func (p *pipelineFiles) addFlags(f *pflag.FlagSet) {
	p.have.addFlag(f)
	p.modules.addFlag(f)
	p.split.addFlag(f)
}

// given reports whether one of the flags is given.
func (p *pipelineFiles) given() bool {
	return len(p.have.files) > 0 || len(p.have.summaries) > 0 || len(p.modules.files) > 0 || p.split.split != nil
}

// load reads a pipeline, which is a document or a name, and gives it its files.
func (p *pipelineFiles) load(document string) (*pipeline.Spec, error) {
	spec, err := loadPipeline(document)
	if err != nil {
		return nil, err
	}
	return p.bind(spec, document)
}

// bind gives a pipeline its part of the rows and its files.
func (p *pipelineFiles) bind(spec *pipeline.Spec, document string) (*pipeline.Spec, error) {
	spec, err := p.split.bind(spec, document)
	if err != nil {
		return nil, err
	}
	if spec, err = p.have.bind(spec, document); err != nil {
		return nil, err
	}
	return p.modules.bind(spec, document)
}

// document returns the document of a pipeline for a control plane, with its part of the rows and the numbers of its
// statistics.
func (p *pipelineFiles) document(name string) ([]byte, error) {
	document, err := pipelineDocument(name)
	if err != nil || len(p.have.summaries) == 0 && p.split.split == nil {
		return document, err
	}
	spec, err := pipeline.Parse(document)
	if err != nil {
		return nil, namePipeline(err, name)
	}
	if spec, err = p.split.bind(spec, name); err != nil {
		return nil, err
	}
	if spec, err = p.have.statisticsFlags.bind(spec, name); err != nil {
		return nil, err
	}
	return spec.YAML(), nil
}

// submitted returns the files of a job that is submitted to a control plane.
func (p *pipelineFiles) submitted() (files remote.Files, err error) {
	if files.Vocabularies, err = p.have.named(); err != nil {
		return files, err
	}
	files.Modules, err = p.modules.read()
	return files, err
}
