package reducer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/statisticspass"
	"github.com/millrace/millrace/sdk/summary"
)

// Pass is a pass over a data set that ends in a summary: the statistics of its columns.
type Pass struct {
	Columns []string // patterns; none: every column that a pass can read
	// Pipeline, if it is not nil, takes the place of Columns: the summary is of the values that the pipeline's operators
	// take the statistics Name of, in the rows that its filter chooses.
	Pipeline  *pipeline.Spec
	Name      string
	WholeOnly bool // the summary has no statistics of the partitions
	Batch     int  // rows of a mini-batch; 0: pipeline.DefaultBatch, or the pipeline's. It changes no statistics

	// Finished is called with the summary before the work folder is removed; after an error of it the same call goes on.
	Finished func(*summary.Summary) error
	passes.Options
}

// Report is what a pass made.
type Report struct {
	*summary.Summary
	Skipped []statisticspass.SkippedColumn
	passes.Report
}

// Run makes the pass, or goes on with one that ended early in the same work folder. Patterns that name no column, or
// one without statistics, are a problem.Errors.
func (p *Pass) Run(ctx context.Context, source passes.Source) (_ *Report, err error) {
	data, err := source.Describe(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	var spec *pipeline.Spec
	var columns []statisticspass.Column
	if p.Pipeline == nil {
		spec, columns, report.Skipped, err = statisticspass.OfColumns(data.Columns, p.Columns)
	} else {
		spec, columns, err = statisticspass.OfOperators(p.Pipeline, p.Name, data.Columns)
	}
	if err == nil {
		err = CheckSize(len(columns), len(data.Manifest.Partitions), p.WholeOnly)
	}
	if err != nil {
		return nil, err
	}
	if p.Batch > 0 {
		spec.Batch = p.Batch
	}
	described, err := json.Marshal(columns)
	if err != nil {
		return nil, err
	}
	digest := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	work, err := p.OpenWork("summary", source, nil, func() []passes.Fact {
		return []passes.Fact{{What: "pipeline before the statistics", Is: digest(spec.YAML())},
			{What: "set of statistics", Is: digest(described)}}
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	var made *Reducer
	pass := passes.Pass{Data: data, Pipeline: spec, Order: dataset.Deterministic, Options: p.Options,
		Begin: func(ctx context.Context, run passes.Run) (_ passes.Reducer, err error) {
			o := Options{Job: run.Digest(), Columns: columns, Manifest: data.Manifest, Plan: run.Plan(),
				Malformed: data.Malformed, WholeOnly: p.WholeOnly}
			if o.countsLabels() {
				if o.Selection, err = run.Selection(ctx); err != nil {
					return nil, err
				}
			}
			made, err = New(o)
			return made, err
		}}
	taken, err := pass.Run(ctx, source, work)
	if err != nil {
		return nil, err
	}
	report.Report = *taken
	if report.Summary, err = made.Finish(); err != nil {
		return nil, err
	}
	if p.Finished != nil {
		if err := p.Finished(report.Summary); err != nil {
			return nil, err
		}
	}
	return report, work.Remove()
}
