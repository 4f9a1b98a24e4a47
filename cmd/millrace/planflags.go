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
	boundary, tail, shuffle     string
	seed                        uint64
}

// addCutFlags adds the flags that say how rows are cut.
func (p *planFlags) addCutFlags(f *pflag.FlagSet) {
	f.IntVar(&p.batch, "batch", 0, "rows of a mini-batch (default: the pipeline's)")
	f.IntVar(&p.splitBatches, "split-batches", 0, "mini-batches of a split (default 16)")
	f.StringVar(&p.boundary, "boundary", "partition",
		"partition: mini-batches end where a partition does; none: they go on in the next partition")
	f.StringVar(&p.tail, "tail", "keep",
		"the short last mini-batch of a partition, or with --boundary none of an epoch: keep or drop")
}

// addFlags adds the flags that say how rows are cut and mixed.
func (p *planFlags) addFlags(f *pflag.FlagSet) {
	p.addCutFlags(f)
	f.IntVar(&p.window, "window", 0, "mini-batches whose rows --shuffle rows mixes (default 4)")
	f.StringVar(&p.shuffle, "shuffle", "splits", "what is mixed: splits, rows or none")
	f.Uint64Var(&p.seed, "seed", 0, "seed of the shuffle")
}

// options returns the options of the plan, and refuses values that no plan has. Without addFlags nothing is mixed.
func (p *planFlags) options() (dataset.Options, error) {
	o := dataset.Options{Batch: p.batch, Shuffle: dataset.ShuffleNone, Seed: p.seed, SplitBatches: p.splitBatches,
		Window: p.window}
	if err := o.Boundary.UnmarshalText([]byte(p.boundary)); err != nil {
		return o, cli.WrongUsage(err)
	}
	if err := o.Tail.UnmarshalText([]byte(p.tail)); err != nil {
		return o, cli.WrongUsage(err)
	}
	if p.shuffle != "" {
		if err := o.Shuffle.UnmarshalText([]byte(p.shuffle)); err != nil {
			return o, cli.WrongUsage(err)
		}
	}
	if _, err := dataset.NewPlan(&dataset.Manifest{}, o); err != nil {
		return o, cli.WrongUsage(err)
	}
	return o, nil
}

// set sets the options of the plan in a job's.
func (p *planFlags) set(o *trainmgr.Options) error {
	plan, err := p.options()
	o.Batch, o.Boundary, o.Tail, o.Shuffle = plan.Batch, plan.Boundary, plan.Tail, plan.Shuffle
	o.Seed, o.SplitBatches, o.Window = plan.Seed, plan.SplitBatches, plan.Window
	return err
}

// message returns the options of the plan as a control plane takes them.
func (p *planFlags) message() (*apiv1.PlanOptions, error) {
	plan, err := p.options()
	if err != nil {
		return nil, err
	}
	return apiv1.WritePlan(plan), nil
}
