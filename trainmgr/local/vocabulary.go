package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/trainmgr"
)

// VocabularyPass is a pass over a data set that ends in a vocabulary.
type VocabularyPass struct {
	Pipeline *pipeline.Spec // that declares the vocabulary
	Name     string         // of the vocabulary in the pipeline
	Path     string         // of the file to write
	Replace  bool           // the file may be there already
	// InMemory keeps the vocabulary in VocabularyReport.Vocabulary and writes no file: Path, Replace and Extend are not
	// used.
	InMemory bool
	// KeepIDs has a vocabulary in memory keep the ids of all rows, if memory holds them, so that a job over the same
	// partitions neither decodes the keys again nor looks them up. The vocabulary is then good for those only.
	KeepIDs bool
	// Extend names the vocabulary whose keys keep their ids; "" makes a new one. It may be Path.
	Extend     string
	Builder    vocabulary.BuilderOptions
	QueueBytes int64 // bound of the mini-batches that wait; 0 is the default of trainmgr.Options

	// Started is called with the rows of the data set before the pass, and Progress behind each mini-batch.
	Started  func(rows int64)
	Progress func(vocabulary.Progress)
}

// VocabularyReport is what a pass made.
type VocabularyReport struct {
	*vocabulary.Built                        // nil for VocabularyPass.InMemory
	Vocabulary        *vocabulary.Vocabulary // nil unless for VocabularyPass.InMemory
	Columns           []vocabulary.Column
	Rules             vocabulary.Rules
	Rows              int64 // of the data set
	Report            *trainmgr.Report
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
		resolved, err := data.Resolve(rest)
		if err != nil {
			return nil, err
		}
		if _, err := pipeline.LowerWithLookups(resolved); err != nil {
			return nil, err
		}
	}
	resolved, err := keys.Resolve(data.Columns)
	if err != nil {
		return nil, err
	}
	columns := resolved.VocabularyColumns()
	builder, err := p.builder(columns, declared.Rules, data.Manifest)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, builder.close()) }()
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
	rows := make([]int64, len(data.Manifest.Partitions)) // of each partition
	splits := dataset.NewSplitCounter(job.Plan())
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return nil, err
		}
		if err := builder.add(uint64(made.Rows), mb); err != nil {
			return nil, err
		}
		at, err := job.Plan().MiniBatch(mb.Name.Number)
		if err != nil {
			return nil, err
		}
		rows[at.Partition] += int64(mb.Rows)
		made.Rows += int64(mb.Rows)
		if err := splits.Add(mb.Name.Number); err != nil {
			return nil, err
		}
		if p.Progress != nil {
			p.Progress(vocabulary.Progress{Rows: int64(mb.Rows), Splits: splits.Done(), AllSplits: job.Plan().Splits(),
				Keys: builder.keys()})
		}
	}
	if p.KeepIDs && data.Malformed != program.MalformedDrop { // which rows are dropped is not known before they are read
		builder.keep(partitionRows(data.Manifest, rows))
	}
	if err = builder.finish(made); err != nil {
		return nil, err
	}
	made.Report, err = job.Report(ctx)
	return made, err
}

// partitionRows says how many rows of each partition a pass saw.
func partitionRows(m *dataset.Manifest, rows []int64) []vocabulary.PartitionRows {
	list := make([]vocabulary.PartitionRows, len(rows))
	for i, p := range m.Partitions {
		list[i] = vocabulary.PartitionRows{Name: p.Name, Digest: p.Content, Rows: rows[i]}
	}
	return list
}
