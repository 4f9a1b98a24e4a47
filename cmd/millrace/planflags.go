package main

import (
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr"
)

// planFlags are the flags of train, jobs submit and preprocess that say how rows become mini-batches.
type planFlags struct {
	batch, splitBatches, window int
	tail, shuffle               string
	seed                        uint64
}

// addCutFlags adds the flags that say how rows are cut.
func (p *planFlags) addCutFlags(f *pflag.FlagSet) {
	f.IntVar(&p.batch, "batch", 0, "rows of a mini-batch (default: the pipeline's)")
	f.IntVar(&p.splitBatches, "split-batches", 0, "mini-batches of a split (default 16)")
	f.StringVar(&p.tail, "tail", "keep", "a partition's short last mini-batch: keep or drop")
}

// addFlags adds the flags that say how rows are cut and mixed.
func (p *planFlags) addFlags(f *pflag.FlagSet) {
	p.addCutFlags(f)
	f.IntVar(&p.window, "window", 0, "mini-batches whose rows --shuffle rows mixes (default 4)")
	f.StringVar(&p.shuffle, "shuffle", "splits", "what is mixed: splits, rows or none")
	f.Uint64Var(&p.seed, "seed", 0, "seed of the shuffle")
}

// set sets the options of the plan in a job's, and refuses values that no plan has. Without addFlags nothing is mixed.
func (p *planFlags) set(o *trainmgr.Options) error {
	o.Batch, o.SplitBatches, o.Window, o.Seed = p.batch, p.splitBatches, p.window, p.seed
	if err := o.Tail.UnmarshalText([]byte(p.tail)); err != nil {
		return cli.WrongUsage(err)
	}
	o.Shuffle = dataset.ShuffleNone
	if p.shuffle != "" {
		if err := o.Shuffle.UnmarshalText([]byte(p.shuffle)); err != nil {
			return cli.WrongUsage(err)
		}
	}
	_, err := dataset.NewPlan(&dataset.Manifest{}, dataset.Options{Batch: o.Batch, Tail: o.Tail, Shuffle: o.Shuffle,
		SplitBatches: o.SplitBatches, Window: o.Window})
	if err != nil {
		return cli.WrongUsage(err)
	}
	return nil
}

// message returns the options of the plan as a control plane takes them.
func (p *planFlags) message() (*apiv1.PlanOptions, error) {
	if err := p.set(&trainmgr.Options{}); err != nil {
		return nil, err
	}
	return &apiv1.PlanOptions{
		Batch: int64(p.batch), Tail: p.tail, Shuffle: p.shuffle, Seed: p.seed, SplitBatches: int64(p.splitBatches),
		Window: int64(p.window),
	}, nil
}
