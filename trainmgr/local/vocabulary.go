package local

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/trainmgr"
)

// VocabularyPass is a pass over a data set that ends in a vocabulary.
type VocabularyPass struct {
	Pipeline *pipeline.Spec // that declares the vocabulary
	Name     string         // of the vocabulary in the pipeline
	Path     string         // of the file to write
	Replace  bool           // the file may be there already
	// Extend names the vocabulary whose keys keep their ids; "" makes a new one. It may be Path.
	Extend     string
	Builder    vocabulary.BuilderOptions
	QueueBytes int64 // bound of the mini-batches that wait; 0 is the default of trainmgr.Options

	// Started is called with the rows of the data set before the pass, and Progress with the rows of each mini-batch.
	Started  func(rows int64)
	Progress func(rows int64)
}

// VocabularyReport is what a pass made.
type VocabularyReport struct {
	*vocabulary.Built
	Columns []vocabulary.Column
	Rules   vocabulary.Rules
	Rows    int64 // of the data set
	Report  *trainmgr.Report
}

// Run checks the whole pipeline and makes the pass: the drives make the keys of the vocabulary, and this machine folds
// them. The mini-batches come in the order of the data set, unshuffled, and cover all of it that the pipeline's filter
// lets pass.
func (p *VocabularyPass) Run(ctx context.Context, storage api.Storage) (_ *VocabularyReport, err error) {
	keys, declared, err := p.Pipeline.VocabularyKeys(p.Name)
	if err != nil {
		return nil, err
	}
	if err := p.checkPath(); err != nil {
		return nil, err
	}
	spec := p.Pipeline
	if spec.Selection == nil {
		if spec, _, err = (&Selections{QueueBytes: p.QueueBytes}).Bind(ctx, storage, spec); err != nil {
			return nil, err
		}
	}
	keys.Selection = spec.Selection
	data, err := storage.Dataset(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the data set: %w", err)
	}
	if rest, ok := spec.WithoutVocabularies(); ok {
		resolved, err := rest.Resolve(data.Columns)
		if err != nil {
			return nil, err
		}
		resolved.Malformed = data.Malformed
		if _, err := pipeline.LowerWithLookups(resolved); err != nil {
			return nil, err
		}
	}
	resolved, err := keys.Resolve(data.Columns)
	if err != nil {
		return nil, err
	}
	columns := resolved.VocabularyColumns()
	builder, closeBuilder, err := p.builder(columns, declared.Rules)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeBuilder()) }()
	job, err := trainmgr.Submit(ctx, storage, trainmgr.Options{
		Pipeline: keys, Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic, AllDrives: true,
		QueueBytes: p.QueueBytes,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	made := &VocabularyReport{Columns: columns, Rules: declared.Rules.Normalize()}
	if p.Started != nil {
		p.Started(job.Plan().Rows())
	}
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return nil, err
		}
		if err := foldMiniBatch(builder, uint64(made.Rows), mb); err != nil {
			return nil, err
		}
		made.Rows += int64(mb.Rows)
		if p.Progress != nil {
			p.Progress(int64(mb.Rows))
		}
	}
	if made.Built, err = builder.Finish(p.Path); err != nil {
		return nil, err
	}
	made.Report, err = job.Report(ctx)
	return made, err
}

// foldMiniBatch folds the keys of a mini-batch in, whose rows begin at a row of the data set. Goroutines take one
// column after the other.
func foldMiniBatch(b *vocabulary.Builder, first uint64, mb *tensor.MiniBatch) error {
	n := len(mb.Schema.Keys)
	starts := make([]int, n+1)
	for i := range n {
		starts[i+1] = starts[i] + mb.Rows
		if mb.Lengths != nil {
			starts[i+1] = starts[i]
			for _, length := range mb.Lengths[i*mb.Rows:][:mb.Rows] {
				starts[i+1] += int(length)
			}
		}
	}
	columns := make(chan int, n)
	for i := range n {
		columns <- i
	}
	close(columns)
	errs := make([]error, n)
	fold := func() {
		for i := range columns {
			var lengths []int32
			if mb.Lengths != nil {
				lengths = mb.Lengths[i*mb.Rows:][:mb.Rows]
			}
			errs[i] = b.Add(i, first, mb.Values64[starts[i]:starts[i+1]], lengths)
		}
	}
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		group.Go(fold)
	}
	fold()
	group.Wait()
	return errors.Join(errs...)
}
