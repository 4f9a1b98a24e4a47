package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// The parts of a ValidationSplit.
const (
	PartTrain      = "train"
	PartValidation = "validation"
)

// ValidationSplit divides the rows of a pipeline into two parts, of which a job takes one. Two jobs whose splits differ
// in Part alone share no row, and together they take each row that passes the pipeline's own filter once.
//
// The part train has the rows that a Sampling of Key By, Rate and the salt h(Seed, [dataset.DomainValidation]) keeps,
// with h the hash of SigridHash before its modulus, and with By the rows without a value, too. The part validation has
// all others.
type ValidationSplit struct {
	Part string // PartTrain or PartValidation
	// Rate is the share of the rows, or of the values of By, that belong to the part train: more than 0 and less than 1.
	Rate float64
	Seed uint64 // Another seed draws other rows.
	// By is the column or named value whose values are drawn, so that the rows of one value are in one part. Empty, or
	// SamplingRow, draws each row by the name of its partition and its number: only partitions that neither change nor get
	// other names keep their rows in the part in which they were.
	By string
}

// validationSplitPath is the path of errors about the column of a ValidationSplit.
const validationSplitPath = "split"

// ValidationSplitError says that a ValidationSplit, or its text, is wrong.
type ValidationSplitError struct{ Message string }

func (e *ValidationSplitError) Error() string { return "validation split: " + e.Message }

// wrongSplit returns a *ValidationSplitError.
func wrongSplit(format string, args ...any) error {
	return &ValidationSplitError{fmt.Sprintf(format, args...)}
}

// ParseValidationSplit reads the form of the flag --split, PART:RATE[:SEED[:COLUMN]], as "train:0.9:7:user_id". The
// seed is 0 if it is not given. The error is a [*ValidationSplitError].
func ParseValidationSplit(text string) (v ValidationSplit, err error) {
	fields := strings.SplitN(text, ":", 4)
	if len(fields) < 2 {
		return v, wrongSplit("%q, want PART:RATE[:SEED[:COLUMN]], as train:0.9:7", problem.Shorten(text))
	}
	v.Part = fields[0]
	if v.Rate, err = strconv.ParseFloat(fields[1], 64); err != nil {
		return v, wrongSplit("the rate %q, want a number between 0 and 1, as 0.9", problem.Shorten(fields[1]))
	}
	if len(fields) > 2 {
		if v.Seed, err = strconv.ParseUint(fields[2], 10, 64); err != nil {
			return v, wrongSplit("the seed %q, want a whole number from 0 to 2^64 - 1", problem.Shorten(fields[2]))
		}
	}
	if len(fields) > 3 {
		if v.By = fields[3]; v.By == "" {
			return v, wrongSplit("the name of the column is empty: name one, or leave out the colon to draw each row by " +
				"itself")
		}
	}
	return v, v.Check()
}

// String returns the split in the form that ParseValidationSplit reads.
func (v ValidationSplit) String() string {
	text := fmt.Sprintf("%s:%v:%d", v.Part, v.Rate, v.Seed)
	if v.By != "" {
		text += ":" + v.By
	}
	return text
}

// Check checks the values of the split. The error is a [*ValidationSplitError].
func (v ValidationSplit) Check() error {
	switch {
	case v.Part != PartTrain && v.Part != PartValidation:
		return wrongSplit("the part %q, want %s or %s", problem.Shorten(v.Part), PartTrain, PartValidation)
	case !(v.Rate > 0 && v.Rate < 1):
		return wrongSplit("the rate %v, want more than 0 and less than 1: it is the share of the rows in the part %s, "+
			"whichever part is taken", v.Rate, PartTrain)
	case len(v.By) > MaxName || !utf8.ValidString(v.By):
		return wrongSplit("the column %q, want a name of at most %d bytes of UTF-8", problem.Shorten(v.By), MaxName)
	}
	return nil
}

// filter returns the filter that the rows of the part pass.
func (v *ValidationSplit) filter() Filter {
	key := v.By
	if key == "" {
		key = SamplingRow
	}
	salt := sigridhash.Combine(int64(v.Seed), int64(dataset.DomainValidation))
	train := Filter{Sampling: &Sampling{Key: key, Rate: v.Rate, Salt: salt}, Path: validationSplitPath}
	if key != SamplingRow {
		// A sampling keeps no row without a value.
		null := Filter{Column: key, Comparisons: []Comparison{{Operator: "null"}}, Path: validationSplitPath}
		train = Filter{Any: []Filter{train, null}, Path: validationSplitPath}
	}
	if v.Part == PartValidation {
		return Filter{Not: &train, Path: validationSplitPath}
	}
	return train
}

// WithSplit returns the spec of the rows that pass its filter and are in the split's part. The receiver does not
// change. The error is a [*ValidationSplitError], or of type [Errors] if the filter becomes too large. A column that is
// missing, or whose values cannot be drawn, is an error of package resolve.
func (s *Spec) WithSplit(v ValidationSplit) (*Spec, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	part := v.filter()
	with := *s
	with.Filter, with.Selection = &part, nil
	if f := s.Filter; f != nil && f.All != nil {
		with.Filter = &Filter{All: append(slices.Clone(f.All), part), Pos: f.Pos}
	} else if f != nil {
		with.Filter = &Filter{All: []Filter{*f, part}, Pos: f.Pos}
	}
	var p problem.List
	with.checkFilter(&p)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return &with, nil
}
