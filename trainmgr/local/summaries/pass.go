// Package summaries makes the pass over a data set that ends in a summary: the statistics of its columns. The drives of
// this machine decode the columns, and the machine folds their values. It is a package of its own, so that launchers do
// not link the sketches of package sdk/summary/accumulator.
//
//	manager, err := local.Open(ctx, local.Config{Files: source.ParseLocations(paths...)})
//	defer manager.Close()
//	made, err := (&summaries.Pass{}).Run(ctx, manager)
//
// # Concurrency
//
// Run folds the columns of a mini-batch on several goroutines, see package sdk/summary/reducer.
//
// # Errors
//
// Patterns that name no column, or one without statistics, are a pipeline.Errors. Damaged data give the errors of
// package trainmgr.
package summaries

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/summary/reducer"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// Pass is a pass over a data set that ends in a summary.
type Pass struct {
	Columns []string // patterns; none: every column that a pass can read
	// Pipeline, if it is not nil, takes the place of Columns: the summary is of the values that the pipeline's operators
	// take the statistics Name of, in the rows that its filter chooses.
	Pipeline   *pipeline.Spec
	Name       string
	WholeOnly  bool  // the summary has no statistics of the partitions
	Batch      int   // rows of a mini-batch; 0: pipeline.DefaultBatch. It changes no statistics
	QueueBytes int64 // bound of the mini-batches that wait; 0 is the default of trainmgr.Options

	// Started is called with the rows of the data set before the pass, and Progress with the rows of each mini-batch.
	Started  func(rows int64)
	Progress func(rows int64)
}

// Report is what a pass made.
type Report struct {
	*summary.Summary
	Skipped []pipeline.SkippedColumn
}

// Run makes the pass. The mini-batches come in the order of the data set, unshuffled, and cover all of it.
func (p *Pass) Run(ctx context.Context, storage api.Storage) (_ *Report, err error) {
	data, err := storage.Dataset(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the data set: %w", err)
	}
	spec, columns, skipped, err := p.spec(ctx, storage, data.Columns)
	if err != nil {
		return nil, err
	}
	if err := reducer.CheckSize(len(columns), len(data.Manifest.Partitions), p.WholeOnly); err != nil {
		return nil, err
	}
	if p.Pipeline == nil || p.Batch > 0 {
		spec.Batch = p.Batch
	}
	job, err := trainmgr.Submit(ctx, storage, trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone,
		Order: dataset.Deterministic, AllDrives: true, QueueBytes: p.QueueBytes})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	if p.Started != nil {
		p.Started(job.Plan().Rows())
	}
	fold, err := reducer.New(reducer.Options{Job: job.Digest(), Columns: columns, Manifest: data.Manifest,
		Plan: job.Plan(), Selection: spec.Selection, Malformed: data.Malformed, WholeOnly: p.WholeOnly})
	if err != nil {
		return nil, err
	}
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return nil, err
		}
		if err := fold.Add(mb); err != nil {
			return nil, err
		}
		if p.Progress != nil {
			p.Progress(int64(mb.Rows))
		}
	}
	made, err := fold.Finish()
	if err != nil {
		return nil, err
	}
	return &Report{Summary: made, Skipped: skipped}, nil
}

// spec returns the spec of the pass, and the columns that it summarises.
func (p *Pass) spec(ctx context.Context, storage api.Storage, schema []pipeline.ColumnInfo) (
	*pipeline.Spec, []pipeline.StatisticsColumn, []pipeline.SkippedColumn, error) {
	if p.Pipeline == nil {
		return pipeline.Statistics(schema, p.Columns)
	}
	spec, columns, err := p.Pipeline.StatisticsPass(p.Name, schema)
	if err == nil && spec.Selection == nil {
		spec, _, err = (&local.Selections{QueueBytes: p.QueueBytes}).Bind(ctx, storage, spec)
	}
	return spec, columns, nil, err
}
