package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/bench/roofline"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk"
)

// benchCommands are the commands that measure this machine.
type benchCommands struct{ *cli.Console }

func (c benchCommands) command() *cobra.Command {
	return cli.Group("bench", "Our own tables, measured on this machine", c.rm(), c.roofline(), c.wire(),
		c.service(), c.pipeline(), c.placement(), c.regions(), c.offload(), c.operators(), c.papers())
}

// rmFlags are the flags that choose the workloads to measure.
type rmFlags struct {
	rm.Options
	engine, commands string
}

func (o *rmFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Models, "models", []string{"rm1", "rm5"},
		"workloads: rm1 to rm5, criteo-tsv, criteo-bin, those with vocabularies, and those over rows of --criteo")
	f.StringVar(&o.Criteo, "criteo", "", "file of Criteo's rows as text, for criteo-real-tsv and the like")
	f.StringVar(&o.engine, "engine", "cpu", "cpu, drive or reference")
	f.StringVar(&o.commands, "commands", "vendor", "command set of the drive: vendor or standard")
	f.IntVar(&o.Threads, "threads", 1, "engine threads")
	f.Var(quantity.CountFlag[int64]{To: &o.Rows}, "rows", "rows of the data set (default: about 100 MB)")
	f.DurationVar(&o.Time, "time", 3*time.Second, "measure each at least so long")
	f.StringVar(&o.Codec, "codec", "none", "none, snappy, gzip, zstd or lz4_raw")
	f.StringVar(&o.Encoding, "encoding", "plain", "plain or dictionary")
	f.Float64Var(&o.Coverage, "coverage", 1, "share of rows that have a feature")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the data")
}

// check parses the flags that are not plain numbers and refuses values out of range.
func (o *rmFlags) check(progress func(string)) error {
	var err error
	if o.Engine, err = host.ParseEngine(o.engine); err != nil {
		return cli.WrongUsage(err)
	}
	if o.Commands = sdk.Commands(o.commands); o.Commands != sdk.Vendor && o.Commands != sdk.Standard {
		return cli.Usagef("--commands %q: want vendor or standard", o.commands)
	}
	if o.Threads < 1 || o.Threads > sdk.MaxThreads || o.Rows < 0 || o.Time <= 0 {
		return cli.Usagef("--threads must be 1 to %d, --rows not below 0, --time above 0", sdk.MaxThreads)
	}
	for _, name := range o.Models {
		if err := rm.Known(name); err != nil {
			return cli.WrongUsage(err)
		}
	}
	o.Progress = progress
	return nil
}

func (c benchCommands) rm() *cobra.Command {
	var (
		o      rmFlags
		timed  cli.TimingFlags
		energy cli.PowerFlags
	)
	cmd := &cobra.Command{
		Use:   "rm",
		Short: "RM1 to RM5: rows a second of one engine, and the share of each stage",
		Long: `Generates each workload (every feature present, so that a row of RM5 has 8,908 bytes), holds it in
memory, and preprocesses it again and again. Files are PLAIN and uncompressed unless flags say
otherwise; the Go scheduler has as many processors as --threads. criteo-tsv and criteo-bin are Criteo's rows as
text and packed, through MiniPipe's stateless pipeline. criteo-5k, criteo-512k, criteo-1m and criteo-zipf (packed;
the last without a modulus), criteo-5k-tsv and criteo-1m-tsv (text), and d1-1 to d2-3 (MiniPipe's data sets and
pipelines) run both loops of Piper: a row counts once for the pass that builds the vocabularies and the pass that
applies them. criteo-real-tsv, criteo-real-bin, criteo-real-5k, criteo-real-5k-tsv and rm1-real (Parquet, RM1's
pipeline) take Criteo's own rows from the file that --criteo names, repeated to --rows, with its skew and its
nulls. With --engine drive and --timing smartssd or u280, rates and --time of rm1 to rm5 are those of the model's
time. Rows a second of processor time tell more than those of the wall's clock where other work runs beside.
Energy is measured where the machine can (docs/planning.md, Power), and modelled otherwise.`,
		Example: "  millrace bench rm --models rm1,rm5 --engine cpu --threads 1 --output json\n" +
			"  millrace bench rm --models criteo-tsv,criteo-bin --threads 2\n" +
			"  millrace bench rm --models criteo-5k,criteo-512k,criteo-1m --threads 2\n" +
			"  millrace bench rm --models rm1,rm1-real,criteo-tsv,criteo-real-tsv --criteo day_11.tsv",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c.Announce); err != nil {
				return err
			}
			pacing, err := timed.Pacing()
			if err != nil {
				return err
			}
			if pacing != nil && timed.Mode == string(timing.ModeImage) {
				return cli.Usagef("--timing image: the drive here has the stock image, which states no parameters; use " +
					"smartssd or u280, or millrace train --image")
			}
			o.Timing = pacing
			if o.Power, err = energy.Open(cmd.Context(), timed.Mode); err != nil {
				return err
			}
			results, err := rm.Run(cmd.Context(), o.Options)
			if errors.Is(err, workload.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			return c.Report(results, func(w io.Writer) { printRates(w, results, pacing) })
		},
	}
	o.register(cmd.Flags())
	timed.AddFlags(cmd)
	energy.AddFlags(cmd.Flags())
	return cmd
}

func (c benchCommands) roofline() *cobra.Command {
	var o rmFlags
	cmd := &cobra.Command{
		Use:   "roofline",
		Short: "How near preprocessing comes to a plain copy of memory",
		Long: `Measures what a copy between large buffers reads and writes a second on this machine, and each
workload's share of it: bytes in and out over bytes read and written, with as many threads, copies
and workloads taken in turn.`,
		Example: "  millrace bench roofline --threads 1\n" +
			"  millrace bench roofline --models rm5 --threads 2 --output json",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c.Announce); err != nil {
				return err
			}
			results, err := roofline.Run(cmd.Context(), roofline.Options{Options: o.Options})
			if errors.Is(err, workload.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			return c.Report(results, func(w io.Writer) {
				fmt.Fprintf(w, "model\tengine\tthreads\trows/s\tGB/s in and out\tcopy's GB/s\tshare\n")
				for _, r := range results {
					fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.2f\t%.2f\t%.1f%%\n", strings.ToUpper(r.Model), r.Engine,
						r.Threads, r.RowsPerSecond,
						r.BytesPerSecond/1e9, r.CopyBytesPerSecond/1e9, 100*r.Share)
				}
			})
		},
	}
	o.register(cmd.Flags())
	cli.AddNativeTiming(cmd.Flags(), cli.MachineTiming)
	return cmd
}

// printRates prints the rates of models, and the energy of each.
func printRates(w io.Writer, results []rm.Result, pacing *timing.Pacing) {
	fmt.Fprintf(w,
		"model\tengine\tthreads\trows/s\trows/cpu-s\tGB/s "+
			"in\tGB/s out\twait\tmove\tdecode\ttransform\tfetch\tother\n")
	for _, r := range results {
		fmt.Fprintf(w,
			"%s\t%s\t%d\t%.0f\t%.0f\t%.2f\t%.2f\t%.0f%%\t%.0f%%\t%.0f%%\t%.0f%%\t%.0f%%\t%.0f%%\n",
			strings.ToUpper(r.Model), r.Engine, r.Threads, r.RowsPerSecond, r.CPURowsPerSecond,
			r.InputBytesPerSecond/1e9, r.OutputBytesPerSecond/1e9, 100*r.WaitShare, 100*r.MoveShare,
			100*r.DecodeShare, 100*r.TransformShare, 100*r.FetchShare, 100*r.OtherShare)
	}
	if pacing != nil {
		fmt.Fprintf(w, "timing: %s\n", pacing.Report())
	}
	for _, r := range results {
		fmt.Fprintf(w, "\n%s\n", strings.ToUpper(r.Model))
		cli.PrintEnergy(w, r.Energy)
	}
}
