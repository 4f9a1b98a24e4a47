// Package summaries makes the pass over a data set that ends in a summary: the statistics of its columns. The drives of
// this machine decode the columns, and the machine folds their values. It is a package of its own, so that launchers do
// not link the sketches of package accumulator.
//
//	manager, err := local.Open(ctx, local.Config{Files: paths})
//	defer manager.Close()
//	made, err := (&summaries.Pass{}).Run(ctx, manager)
//
// # Concurrency
//
// Run folds the columns of a mini-batch on as many goroutines as the machine runs at once. They end before Run returns.
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
	"runtime"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/summary/accumulator"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
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
	if err := p.checkSize(len(columns), len(data.Manifest.Partitions)); err != nil {
		return nil, err
	}
	digest, err := data.Manifest.Digest()
	if err != nil {
		return nil, err
	}
	described := make([]accumulator.Column, len(columns))
	for i, c := range columns {
		described[i] = accumulator.Column{Name: c.Name, Type: c.Type, Kind: c.Kind, List: c.List}
	}
	builder, err := accumulator.NewBuilder(described, !p.WholeOnly)
	if err != nil {
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
	fold := folding{builder: builder, columns: columns, manifest: data.Manifest, plan: job.Plan(),
		selection: spec.Selection, targets: make([]*targetencoding.Builder, len(columns))}
	for i, c := range columns {
		if c.Folding != nil && data.Malformed == program.MalformedDrop {
			return nil, pipeline.ErrDroppedRows
		}
		if c.Folding != nil {
			fold.targets[i] = targetencoding.NewBuilder(c.Folding.Folds)
		}
	}
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return nil, err
		}
		if err := fold.miniBatch(mb); err != nil {
			return nil, err
		}
		if p.Progress != nil {
			p.Progress(int64(mb.Rows))
		}
	}
	if err := fold.endPartitions(len(data.Manifest.Partitions)); err != nil {
		return nil, err
	}
	made, err := builder.Finish(summary.Digest(digest))
	if err != nil {
		return nil, err
	}
	for i, targets := range fold.targets {
		if targets != nil {
			made.Columns[i].Targets = targets.Table()
		}
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

// checkSize refuses a summary that no file can hold, before the pass.
func (p *Pass) checkSize(columns, partitions int) error {
	if !p.WholeOnly && columns > summary.MaxCells/max(partitions, 1) {
		return fmt.Errorf("%d columns of %d partitions are more than %d statistics: name fewer columns, or leave the "+
			"partitions out", columns, partitions, summary.MaxCells)
	}
	return nil
}

// folding is a pass on its way through the data set.
type folding struct {
	builder   *accumulator.Builder
	columns   []pipeline.StatisticsColumn
	manifest  *dataset.Manifest
	plan      *dataset.Plan
	selection *selection.Selection      // nil: all rows
	targets   []*targetencoding.Builder // of each column; nil: its labels are not counted
	partition int                       // that is being folded
	rows      int64                     // of it, so far
}

// endPartitions ends the partitions before one.
func (f *folding) endPartitions(before int) error {
	for ; f.partition < before; f.partition++ {
		if err := f.builder.EndPartition(f.manifest.Partitions[f.partition].Name, f.rows); err != nil {
			return err
		}
		f.rows = 0
	}
	return nil
}

// miniBatch folds a mini-batch in. Goroutines take one column after the other.
func (f *folding) miniBatch(mb *tensor.MiniBatch) error {
	at, err := f.plan.MiniBatch(mb.Name.Number)
	if err != nil {
		return err
	}
	if err := f.endPartitions(at.Partition); err != nil {
		return err
	}
	f.rows += int64(mb.Rows)
	keys := keyBlocks(mb)
	columns := make(chan int, len(f.columns))
	for i := range f.columns {
		columns <- i
	}
	close(columns)
	errs := make([]error, len(f.columns))
	foldColumns := func() {
		for i := range columns {
			block := columnBlock(&f.columns[i], mb, keys)
			if errs[i] = f.builder.Add(i, block); errs[i] == nil && f.targets[i] != nil {
				errs[i] = f.addTargets(i, at, mb, block)
			}
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(f.columns)) - 1 {
		group.Go(foldColumns)
	}
	foldColumns()
	group.Wait()
	return errors.Join(errs...)
}

// addTargets counts the labels of a column of a mini-batch.
func (f *folding) addTargets(column int, at dataset.MiniBatch, mb *tensor.MiniBatch, keys accumulator.Block) error {
	name := f.manifest.Partitions[at.Partition].Name
	partition, err := targetencoding.NewPartition(name)
	if err != nil {
		return err
	}
	next := 0
	for i, label := range mb.Label {
		row := at.First + int64(i)
		if f.selection != nil {
			row = f.selection.Rows(at.Partition).Row(row)
		}
		key, hasKey := int64(0), keys.Lengths == nil || keys.Lengths[i] > 0
		if hasKey {
			key = keys.Integers[next]
			next++
		}
		c := &f.columns[column]
		if err := f.targets[column].Add(key, hasKey, c.Folding.Fold(partition, row), label); err != nil {
			return fmt.Errorf("%s: row %d: %s: %w", name, row, c.Name, err)
		}
	}
	return nil
}

// keyBlocks returns the values and the lengths of each key.
func keyBlocks(mb *tensor.MiniBatch) []accumulator.Block {
	blocks := make([]accumulator.Block, len(mb.Schema.Keys))
	first := 0
	for i := range blocks {
		values := mb.Rows
		if mb.Lengths != nil {
			blocks[i].Lengths = mb.Lengths[i*mb.Rows:][:mb.Rows]
			values = 0
			for _, length := range blocks[i].Lengths {
				values += int(length)
			}
		}
		blocks[i].Integers = mb.Values64[first:][:values]
		first += values
	}
	return blocks
}

// columnBlock returns a column of a mini-batch.
func columnBlock(c *pipeline.StatisticsColumn, mb *tensor.MiniBatch, keys []accumulator.Block) accumulator.Block {
	var b accumulator.Block
	if c.Key >= 0 {
		b = keys[c.Key]
	}
	switch c.Kind {
	case summary.Reals:
		b.Integers, b.Reals, b.Stride = nil, mb.Dense[c.Dense:], len(mb.Schema.Dense)
	case summary.Lengths:
		b.Integers = nil
	}
	return b
}
