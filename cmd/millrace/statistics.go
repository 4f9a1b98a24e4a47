package main

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/local"
)

// statisticsFlags name the summaries of a pipeline's statistics.
type statisticsFlags struct{ summaries []string }

func (s *statisticsFlags) addFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&s.summaries, "statistics", nil,
		"the summary of one of the pipeline's statistics, as train=monday.summary; may be given again")
}

// bind gives the pipeline the numbers of its statistics.
func (s *statisticsFlags) bind(spec *pipeline.Spec, document string) (*pipeline.Spec, error) {
	files, err := namedFiles("--statistics", s.summaries)
	if err != nil {
		return nil, err
	}
	bound, err := local.BindStatistics(spec, files)
	return bound, namePipeline(err, document)
}

// theStatistics returns the name of statistics of the pipeline: those that are asked for, or the only ones.
func theStatistics(spec *pipeline.Spec, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	switch len(spec.Statistics) {
	case 0:
		return "", errors.New("the pipeline names no statistics, see millrace's docs/pipelines.md")
	case 1:
		return spec.Statistics[0].Name, nil
	}
	names := make([]string, len(spec.Statistics))
	for i := range spec.Statistics {
		names[i] = spec.Statistics[i].Name
	}
	return "", cli.Usagef("say --name: the pipeline names the statistics %s", strings.Join(names, ", "))
}
