package main

import (
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/sdk/pipeline"
)

// splitFlag is the flag --split, which takes one part of a pipeline's rows (pflag.Value).
type splitFlag struct{ split *pipeline.ValidationSplit } // nil: all rows

func (s *splitFlag) addFlag(f *pflag.FlagSet) {
	f.Var(s, "split", "take one part of the rows, as train:0.9:7: the part train has the share 0.9, drawn with the seed "+
		"7 (default 0), and validation:0.9:7 all other rows; train:0.9:7:user_id draws the values of a column, so that "+
		"the rows of a user are in one part")
}

// Set reads the flag's value.
func (s *splitFlag) Set(text string) error {
	split, err := pipeline.ParseValidationSplit(text)
	if err == nil {
		s.split = &split
	}
	return err
}

// String returns the flag's value; it is empty without one.
func (s *splitFlag) String() string {
	if s == nil || s.split == nil {
		return ""
	}
	return s.split.String()
}

// Type returns the form of the flag's value for help.
func (*splitFlag) Type() string { return "PART:RATE[:SEED[:COLUMN]]" }

// bind returns the pipeline of the part's rows.
func (s *splitFlag) bind(spec *pipeline.Spec, document string) (*pipeline.Spec, error) {
	if s.split == nil {
		return spec, nil
	}
	spec, err := spec.WithSplit(*s.split)
	return spec, namePipeline(err, document)
}
