package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/planpage"
	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
)

// planOptions are the flags of plan.
type planOptions struct {
	model, prices, figures     string
	size                       int64
	image, rateFile, media     string
	pipeline, fromJob, jobID   string
	in                         []string
	t, p, bytesPerRow, tensors float64
	gpuRate, growth, tGrowth   float64
	retention, readSize        float64
	gpus, replicas, ids, nodes int
	printPrices, printFigures  bool
	far                        sourceFlags
	root                       string
	files                      pipelineFiles
	service                    remoteFlags
}

// planResult is the whole answer of plan: the drives alone, and the placements.
type planResult struct {
	*capacity.Result
	Placements *sizing.Report `json:"plan"`
}

func planCommand(c *console) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "How many drives, watts and dollars a job needs, and which constraint binds",
		Long: `Counts drives by capacity, by T/P and by read bandwidth, and sets watts and dollars by PreSto's formula
(throughput x duration / (CapEx + OpEx)). Beside the drives stand three CPU baselines: PreSto's TorchArrow cores,
TorchArrow's loops and our own kernels as make bench-peers measured them. Each is a rate of a core for one model,
whatever the drives do; a model or pipeline without such a rate has no figure there.

Then it sizes each placement of the preprocessing: in the drives, on the storage nodes' CPUs or cards, in a
pool of CPU nodes or accelerators, on the trainers' CPUs. It counts drives, nodes, network interfaces, racks,
watts and dollars, says which constraint binds each, which placement is the cheapest, which figures move
that answer, and where it turns. Every figure is measured, modelled, published or assumed, and has a source.

T is --t, or --gpus times --t-gpu, or that of the table of models and GPUs that have a source (--gpus
alone). P is the model's (fpga/timing), under an image with --image, or what --p says, or what
"millrace bench rm --output json" or a job's report says (--p-from). --in takes bytes and rows of a data set from
its files.

--pipeline plans for a pipeline of your own and your Parquet files instead of a model: the bytes of a row are
those of the columns that the pipeline reads, by the files' footers, the modelled drive has the pipeline's
operators, and the tensors are the pipeline's. --in names the files, or what "millrace dataset inspect
--output json" wrote of them on another machine, or some of the files and the manifest of all.

--from-job compares the plan with a job that ran, by the report of "millrace train --output json": which
assumption was off, by how much, and what that does to the drives. --job takes what a control plane knows of a
job, which is T, P, drives and stalls.

--output html writes one page that needs no network; it prints well.`,
		Example: "  millrace plan --model rm5 --t 3.0e6 --size 500TB\n  millrace plan --model dpp-rm1\n" +
			"  millrace plan --pipeline ads.yaml --in data/ --t 2M\n" +
			"  millrace plan --pipeline ads.yaml --in data/ --t 2M --from-job report.json\n" +
			"  millrace plan --pipeline ads.yaml --in inspected.json --size 500TB --t 2M --p-from report.json\n" +
			"  millrace plan --model rm5 --gpus 8 --size 50TB --output html > plan.html\n" +
			"  millrace plan --model rm5 --t 3.0e6 --image new.mimg\n" +
			"  millrace plan --print-prices > prices.yaml; millrace plan --model rm1 --t 2e7 --prices prices.yaml",
		Args:        cli.NoArgs,
		Annotations: map[string]string{cli.MoreOutputs: "html"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.printPrices:
				_, err := c.Out.Write(capacity.DefaultPrices())
				return err
			case o.printFigures:
				_, err := c.Out.Write(sizing.DefaultFigures())
				return err
			}
			if err := errors.Join(o.check(cmd), o.checkReview(c.Output)); err != nil {
				return err
			}
			if o.reviews() {
				v, err := o.review(cmd.Context())
				if err != nil {
					return err
				}
				return c.Report(v, func(w io.Writer) { printReview(w, v) })
			}
			r, err := o.plan(cmd.Context())
			if err != nil {
				return err
			}
			if c.Output == "html" {
				return planpage.Write(c.Out, r.Result, r.Placements)
			}
			return c.Report(r, func(w io.Writer) { printPlan(w, r) })
		},
	}
	o.register(cmd.Flags())
	o.service.addFlags(cmd)
	return cmd
}

func (o *planOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.model, "model", "rm1", "rm1 to rm5 (PreSto), or dpp-rm1 to dpp-rm3; another name with "+
		"--bytes-per-row, --tensor-bytes-per-row and --p, or with --p-from")
	f.StringVar(&o.pipeline, "pipeline", "", "a pipeline of your own instead of a model: a YAML file, or the name of "+
		"a built-in pipeline; with --in")
	o.files.addFlags(f)
	f.Var(quantity.RateFlag{To: &o.t}, "t", "T: rows a second that the trainers take")
	f.IntVar(&o.gpus, "gpus", 0, "GPUs that train: T is --t-gpu times this, or that of the table")
	f.Var(quantity.RateFlag{To: &o.gpuRate}, "t-gpu", "T of one GPU, for --gpus")
	f.Var(quantity.RateFlag{To: &o.p}, "p", "P: rows a second of one drive, measured")
	f.StringVar(&o.rateFile, "p-from", "", "what bench rm --output json or train --output json wrote: with --engine "+
		"drive P of a drive, with --engine cpu the rate of our kernels; also the bytes of a row, without --pipeline")
	f.Var(quantity.RateFlag{To: &o.bytesPerRow}, "bytes-per-row", "bytes of a row as stored")
	f.Var(quantity.RateFlag{To: &o.tensors}, "tensor-bytes-per-row", "bytes of a row's tensors, which go to the "+
		"trainer")
	f.Var(quantity.BytesFlag[int64]{To: &o.size}, "size", "bytes of the data set, as 500TB or 1.5PiB")
	addNames(f, &o.in, "in", "files of the data set, folders or patterns, its manifest or what dataset inspect "+
		"wrote (*.json): its bytes, unless --size gives them, and the bytes of a row")
	f.IntVar(&o.replicas, "replicas", 1, "copies of every partition")
	f.IntVar(&o.ids, "id-bytes", 8, "bytes of a stored id: 8 or 4")
	f.Float64Var(&o.growth, "growth", 0, "growth of the data a year, as 0.5 for half as much again")
	f.Float64Var(&o.tGrowth, "t-growth", 0, "growth of T a year")
	f.Float64Var(&o.retention, "retention", 0, "days after which data is replaced by new data (default: never)")
	f.IntVar(&o.nodes, "training-nodes", 0, "training nodes that there are (default: as few as take the tensors in)")
	cli.AddChoice(f, &o.media, "media", "ssd", "what plain drives are: ssd or hdd", string(sizing.SSD), string(sizing.HDD))
	f.Var(quantity.RateFlag{To: &o.readSize}, "read-bytes", "bytes of a read from flash, on average")
	f.StringVar(&o.prices, "prices", "", "YAML of prices and powers")
	f.StringVar(&o.figures, "figures", "", "YAML of the other figures that differ for you")
	f.StringVar(&o.image, "image", "", "image file whose parameters the model of a drive takes")
	f.StringVar(&o.fromJob, "from-job", "", "compare the plan with a job: the report that train --output json wrote")
	f.StringVar(&o.jobID, "job", "", "compare the plan with a job of a control plane, by id or name")
	f.BoolVar(&o.printPrices, "print-prices", false, "print the built-in prices with their sources")
	f.BoolVar(&o.printFigures, "print-figures", false, "print the other built-in figures with their sources")
	o.far.addFlags(f)
	o.far.addNameFlags(f)
	rootFlag(f, &o.root)
}

// check refuses values that no plan has.
func (o *planOptions) check(cmd *cobra.Command) error {
	if err := refuseUnused(cmd, placeOf(source.ParseLocations(o.in...)), sourceUses); err != nil {
		return err
	}
	switch {
	case o.pipeline != "" && (cmd.Flags().Changed("model") || cmd.Flags().Changed("id-bytes")):
		return cli.Usagef("--pipeline says what the rows are, and so do --model and --id-bytes: leave them out")
	case o.pipeline != "" && len(o.in) == 0:
		return cli.Usagef("--pipeline: give --in with the data's Parquet files, or with what millrace dataset inspect " +
			"--output json wrote of them: the bytes of a row are in their footers")
	case o.pipeline == "" && o.files.given():
		return cli.Usagef("--vocabulary, --statistics, --wasm and --split are of a pipeline: give --pipeline")
	case !(o.t >= 0) || !(o.p >= 0) || !(o.bytesPerRow >= 0) || o.replicas < 1 || o.ids != 4 && o.ids != 8:
		return cli.Usagef("--t %v, --p %v, --bytes-per-row %v, --replicas %d, --id-bytes %d: want rates and bytes not "+
			"below 0, 1 copy or more, ids of 4 or 8 bytes", o.t, o.p, o.bytesPerRow, o.replicas, o.ids)
	case !(o.growth >= 0) || !(o.tGrowth >= 0) || !(o.retention >= 0) || o.nodes < 0 || o.gpus < 0:
		return cli.Usagef("--growth %v, --t-growth %v, --retention %v, --training-nodes %d, --gpus %d: want numbers not "+
			"below 0", o.growth, o.tGrowth, o.retention, o.nodes, o.gpus)
	case o.t > 0 && o.gpus > 0:
		return cli.Usagef("--t and --gpus both say T: give one of them")
	case o.gpuRate > 0 && o.gpus == 0:
		return cli.Usagef("--t-gpu is the rate of one GPU: give their number with --gpus")
	case o.p > 0 && o.rateFile != "":
		return cli.Usagef("--p and --p-from both say P: give one of them")
	case o.image != "" && (o.p > 0 || o.rateFile != ""):
		return cli.Usagef("--image gives P by the model of a drive, and so do --p and --p-from by measurement: give one " +
			"of them")
	}
	return nil
}
