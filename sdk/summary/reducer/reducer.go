// Package reducer makes the passes over data sets that end in summaries: [Pass] describes one, and a [Reducer] folds
// its mini-batches.
//
//	made, err := (&reducer.Pass{}).Run(ctx, source)
//
// # Overview
//
// The pass is the one that statisticspass.OfColumns or statisticspass.OfOperators describes: its mini-batches hold the
// values of the columns, cover the data set and come in the order of an unshuffled plan. Whoever made them, and
// whatever their size, the summary is the same.
//
// A pass that is to survive the end of its process keeps the state of each partition: of those that have ended, and
// from time to time of the one that is being read. A part of its work folder is a list of states; of two states of a
// partition the later one counts. A state is about as large as what a partition's statistics take in
// memory, whatever the number of rows: it does not grow with the data.
//
// # The form of a part
//
//	magic "MRSTATE\x04", digest of the job (32 bytes)
//	for each partition of the part
//		as varints its index in the manifest and its rows that were folded in
//		a length and the state of the columns (package accumulator)
//		for each column whose labels are counted a length and the table (package targetencoding)
//	CRC32C of the bytes before, 4 bytes, little-endian
//
// # Concurrency
//
// Add folds the columns of a mini-batch on as many goroutines as the machine runs at once. They end before Add returns.
// A Reducer has one user at a time.
//
// # Errors
//
// [ErrState] says that a part is damaged, or of another pass. Damaged mini-batches give the errors of
// packages accumulator and targetencoding.
package reducer

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/pipeline/statisticspass"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/summary"
	"github.com/millrace/millrace/sdk/summary/accumulator"
	"github.com/millrace/millrace/sdk/targetencoding"
	"github.com/millrace/millrace/sdk/tensor"
)

// Options describe a pass.
type Options struct {
	Job       dataset.Digest // Job names the pass's job, and its parts carry it.
	Columns   []statisticspass.Column
	Manifest  *dataset.Manifest
	Plan      *dataset.Plan
	Selection *selection.Selection // Selection has the rows of the plan; nil: all rows.
	Malformed program.Malformed    // how malformed rows of text are treated
	WholeOnly bool                 // the summary has no statistics of the partitions
}

// countsLabels reports whether the labels of a column are counted.
func (o *Options) countsLabels() bool {
	return slices.ContainsFunc(o.Columns, func(c statisticspass.Column) bool { return c.Folding != nil })
}

// Reducer makes a summary.
type Reducer struct {
	o         Options
	builder   *accumulator.Builder
	targets   []*targetencoding.Builder // targets is by column, over the partitions that have ended; nil: not counted.
	open      []*targetencoding.Builder // open is by column, over the partition that is being read.
	partition int                       // partition is being read.
	rows      int64                     // rows counts those of it so far, without malformed rows that are dropped.
	next      uint64                    // number of the next mini-batch
	kept      keptStates
}

// CheckSize refuses a summary that no file can hold, before the pass.
func CheckSize(columns, partitions int, wholeOnly bool) error {
	if !wholeOnly && columns > summary.MaxCells/max(partitions, 1) {
		return fmt.Errorf("%d columns of %d partitions are more than %d statistics: name fewer columns, or leave the "+
			"partitions out", columns, partitions, summary.MaxCells)
	}
	return nil
}

// New begins a summary.
func New(o Options) (*Reducer, error) {
	described := make([]accumulator.Column, len(o.Columns))
	r := &Reducer{o: o, targets: make([]*targetencoding.Builder, len(o.Columns))}
	for i, c := range o.Columns {
		described[i] = accumulator.Column{Name: c.Name, Type: c.Type, Kind: c.Kind, List: c.List, Unsigned: c.Unsigned}
		if c.Folding == nil {
			continue
		}
		if o.Malformed == program.MalformedDrop {
			return nil, problem.ErrDroppedRows
		}
		r.targets[i] = targetencoding.NewBuilder(c.Folding.Folds)
	}
	var err error
	if r.builder, err = accumulator.NewBuilder(described, !o.WholeOnly); err != nil {
		return nil, err
	}
	return r, r.openTargets()
}

// openTargets begins to count the labels of a partition.
func (r *Reducer) openTargets() error {
	r.open = make([]*targetencoding.Builder, len(r.targets))
	if r.partition == len(r.o.Manifest.Partitions) {
		return nil
	}
	partition, err := targetencoding.NewPartition(r.o.Manifest.Partitions[r.partition].Name)
	for i, c := range r.o.Columns {
		if c.Folding != nil && err == nil {
			r.open[i] = targetencoding.NewBuilder(c.Folding.Folds)
			err = r.open[i].AddPartition(partition)
		}
	}
	return err
}

// endPartitions ends the partitions before one.
func (r *Reducer) endPartitions(before int) error {
	for r.partition < before {
		if err := r.keepEnded(); err != nil {
			return err
		}
		if err := r.builder.EndPartition(r.o.Manifest.Partitions[r.partition].Name, r.rows); err != nil {
			return err
		}
		for i, t := range r.open {
			if t == nil {
				continue
			}
			if err := r.targets[i].AddTable(t.Table()); err != nil {
				return fmt.Errorf("%s: %w", r.o.Columns[i].Name, err)
			}
		}
		r.partition, r.rows = r.partition+1, 0
		if err := r.openTargets(); err != nil {
			return err
		}
	}
	return nil
}

// Add folds the next mini-batch in. Goroutines take one column after the other.
func (r *Reducer) Add(at dataset.Fragment, mb *tensor.MiniBatch) error {
	if mb.Name.Number != r.next || mb.Rows > at.Rows {
		return fmt.Errorf("mini-batch %d with %d rows came, want mini-batch %d, of at most %d rows", mb.Name.Number,
			mb.Rows, r.next, at.Rows)
	}
	if err := r.endPartitions(at.Partition); err != nil {
		return err
	}
	if at.Partition != r.partition {
		return fmt.Errorf("mini-batch %d is of partition %d, which has ended", mb.Name.Number, at.Partition)
	}
	r.next, r.rows = r.next+1, r.rows+int64(mb.Rows)
	starts := mb.OffsetPerKey()
	columns := make(chan int, len(r.o.Columns))
	for i := range r.o.Columns {
		columns <- i
	}
	close(columns)
	errs := make([]error, len(r.o.Columns))
	foldColumns := func() {
		for i := range columns {
			block := columnBlock(&r.o.Columns[i], mb, starts)
			if errs[i] = r.builder.Add(i, block); errs[i] == nil && r.open[i] != nil {
				errs[i] = r.addTargets(i, at, mb, block)
			}
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(r.o.Columns)) - 1 {
		group.Go(foldColumns)
	}
	foldColumns()
	group.Wait()
	return errors.Join(errs...)
}

// Finish ends the last partitions and returns the summary.
func (r *Reducer) Finish() (*summary.Summary, error) {
	if err := r.endPartitions(len(r.o.Manifest.Partitions)); err != nil {
		return nil, err
	}
	digest, err := r.o.Manifest.Digest()
	if err != nil {
		return nil, err
	}
	made, err := r.builder.Finish(summary.Digest(digest))
	if err != nil {
		return nil, err
	}
	for i, targets := range r.targets {
		if targets != nil {
			made.Columns[i].Targets = targets.Table()
		}
	}
	return made, nil
}

// addTargets counts the labels of a column of a mini-batch.
func (r *Reducer) addTargets(column int, at dataset.Fragment, mb *tensor.MiniBatch, keys accumulator.Block) error {
	name := r.o.Manifest.Partitions[at.Partition].Name
	partition, err := targetencoding.NewPartition(name)
	if err != nil {
		return err
	}
	next := 0
	for i, label := range mb.Label {
		row := at.First + int64(i)
		if r.o.Selection != nil {
			row = r.o.Selection.Rows(at.Partition).Row(row)
		}
		key, hasKey := int64(0), keys.Lengths == nil || keys.Lengths[i] > 0
		if hasKey {
			key = keys.Integers[next]
			next++
		}
		c := &r.o.Columns[column]
		if err := r.open[column].Add(key, hasKey, c.Folding.Fold(partition, row), label); err != nil {
			return fmt.Errorf("%s: row %d: %s: %w", name, row, c.Name, err)
		}
	}
	return nil
}

// columnBlock returns a column of a mini-batch. starts says where the values of each key begin.
func columnBlock(c *statisticspass.Column, mb *tensor.MiniBatch, starts []int64) (b accumulator.Block) {
	if c.Key >= 0 {
		b.Integers = mb.Values64[starts[c.Key]:starts[c.Key+1]]
		if mb.Lengths != nil {
			b.Lengths = mb.Lengths[c.Key*mb.Rows:][:mb.Rows]
		}
	}
	if c.Dense >= 0 {
		b.Integers, b.Reals, b.Stride = nil, mb.Dense[c.Dense:], len(mb.Schema.Dense)
	}
	return b
}
