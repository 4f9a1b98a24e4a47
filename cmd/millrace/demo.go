package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/cmd/millrace/demo"
	"github.com/millrace/millrace/internal/quantity"
)

func demoCommand(c *console) *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "The main job, on this machine, nothing else installed",
		Long: `Generates RM1 (PreSto, Table I) as Parquet, puts its partitions on two file: drives, which are NVMe
controllers in this process, and feeds a stand-in trainer from them: T, P, T/P, the input queue,
stalls, and the drives' own counters. Under a minute on two cores.

The trainer is a stand-in: it is busy as long as a trainer of --trainer-rows-per-second would be.`,
		Example: "  millrace demo\n  millrace demo --trainer-rows-per-second 1e6 --output json",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Rows < 1 || o.Drives < 1 || o.Partitions < 0 || !(o.RowsPerSecond > 0) || o.Epochs < 1 ||
				o.Measure < 0 {
				return cli.Usagef(
					"--rows, --drives, --epochs and --trainer-rows-per-second must be above 0, --partitions and " +
						"--measure not below")
			}
			o.Say = c.Announce
			shown := &demoProgress{console: c}
			o.Generated, o.Stored, o.Trained = shown.meter("generate", "rows"), shown.meter("store", "bytes"),
				shown.meter("train", "rows")
			r, err := demo.Run(cmd.Context(), o)
			shown.finish()
			if err != nil {
				return err
			}
			native := nativeReport(r)
			return c.Report(native, func(w io.Writer) { printReport(w, native) })
		},
	}
	f := cmd.Flags()
	o.Rows, o.RowsPerSecond = 3_145_728, 5_000_000
	f.Var(quantity.CountFlag[int64]{To: &o.Rows}, "rows", "rows to generate")
	f.IntVar(&o.Drives, "drives", 2, "drives")
	f.IntVar(&o.Partitions, "partitions", 0, "partitions (default: two a drive)")
	f.IntVar(&o.Epochs, "epochs", 1, "epochs")
	f.Var(quantity.RateFlag{To: &o.RowsPerSecond}, "trainer-rows-per-second", "speed of the stand-in trainer")
	f.DurationVar(&o.Measure, "measure", time.Second, "least time to measure T, and P of each drive to 5 %")
	f.StringVar(&o.Dir, "dir", "", "keep data and drives here, in an empty folder (default: a temporary one, removed)")
	f.Var(quantity.BytesFlag[int64]{To: &o.SLM}, "slm", "memory of each drive, as 64MiB")
	return cmd
}

// demoProgress shows the progress of the demonstration's parts, one after the other.
type demoProgress struct {
	*console
	begun *progress // nil between two parts
}

// meter returns a function that shows how far a part is.
func (d *demoProgress) meter(name, unit string) func(done, total int64) {
	var p *progress
	var last int64
	return func(done, total int64) {
		if p == nil {
			p = d.newProgress(name, unit, total)
			d.begun = p
		}
		p.add(done - last)
		if last = done; done == total {
			d.finish()
		}
	}
}

// finish ends the progress of a part that has begun.
func (d *demoProgress) finish() {
	if d.begun != nil {
		d.begun.finish()
		d.begun = nil
	}
}
