package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/bench/regions"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme/cs"
)

func (c benchCommands) regions() *cobra.Command {
	var o regions.Options
	var timed cli.TimingFlags
	cmd := &cobra.Command{
		Use:   "regions",
		Short: "Regions of a drive: switches, what others lose meanwhile, rates added up, host I/O beside them",
		Long: `Makes a drive of several regions, and runs jobs in them. It times switches of a region between two
images that are loaded and tested: the drain, from the interruption of its job to the end of the
slice that executes, and the switch, from there to the first slice that the drive accepts. In turns,
it compares the rates of other regions' jobs while that region is switched after each of its
mini-batches, and while it is not. It runs jobs of one workload in 1, 2, 4 and 7 regions, and of all
workloads mixed; the speedup is the sum of each job's rate over the rate of its workload alone. And it
measures a host's reads and writes of 4 KiB alone and beside jobs, without a limit and with
--host-io-share. Regions of a software drive are threads: rates add up as far as there are cores. With
--timing image the regions are those of a modelled drive, each under the image of its workload, which
share its flash by weight; only the rates of jobs are measured then, and they and --time are of the
model's clock.`,
		Example: "  millrace bench regions --drive mem: --output json\n" +
			"  millrace bench regions --drive file:bench.flash --regions 3 --models rm1 --time 3s\n" +
			"  millrace bench regions --timing image --dilate 20 --models d2,rm1 --time 200ms",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Time <= 0 || o.Turns < 1 || o.Switches < 1 {
				return cli.Usagef("--time must be above 0, --turns and --switches 1 at least")
			}
			if o.HostIOShare == 0 || o.Regions == 0 {
				return cli.Usagef("--regions and --host-io-share must be above 0")
			}
			var err error
			if o.Timing, err = timed.Pacing(); err != nil {
				return err
			}
			o.Progress = c.Announce
			r, err := regions.Run(cmd.Context(), o)
			if errors.Is(err, regions.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return cli.TimingError(o.Timing, err)
			}
			return c.Report(r, func(w io.Writer) { printRegionFigures(w, r) })
		},
	}
	f := cmd.Flags()
	timed.AddFlags(cmd)
	f.StringVar(&o.Drive, "drive", "mem:",
		"mem: or file:PATH of a drive that is made and removed, with ?slm=1GiB&threads=1&lba=512&commands=vendor")
	f.IntVar(&o.Regions, "regions", cs.MaxRegions, "regions of the drive, 2 to 7")
	f.StringSliceVar(&o.Models, "models", []string{"rm1", "d1"},
		"workloads: rm1 to rm5, d1 and d2 with one of MiniPipe's pipelines (d2-3: the third; d2: the first); all "+
			"measurements but the mixed one are of the first")
	f.Var(quantity.CountFlag[int64]{To: &o.Rows}, "rows", "rows of each workload's partition (default: some 40 MB)")
	f.DurationVar(&o.Time, "time", 10*time.Second, "length of each run")
	f.IntVar(&o.Turns, "turns", 5, "turns with and without switches; the medians count")
	f.IntVar(&o.Switches, "switches", 500, "switches that are timed one by one")
	f.IntVar(&o.HostIOShare, "host-io-share", 20,
		"percent of the time for ordinary reads and writes, in the runs with a limit, 5 to 99")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the data, and of random places and moments")
	return cmd
}

// printRegionFigures prints the tables of bench regions.
func printRegionFigures(w io.Writer, r *regions.Result) {
	if r.Timing == nil {
		printSwitches(w, r)
	}
	fmt.Fprintf(w, "regions\tworkloads\trows/s\tspeedup\teach\n")
	for _, t := range r.Throughput {
		each := make([]string, len(t.RowsPerSecond))
		for i, rate := range t.RowsPerSecond {
			each[i] = fmt.Sprintf("%.0f", rate)
		}
		fmt.Fprintf(w, "%d\t%s\t%.0f\t%.2f\t%s\n", t.Regions, strings.Join(t.Models, " "), t.TotalRowsPerSecond, t.Speedup,
			strings.Join(each, " "))
	}
	if r.Timing == nil {
		printHostIO(w, r)
	}
	fmt.Fprintln(w)
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// printSwitches prints how long switches of a region take, and what others lose meanwhile.
func printSwitches(w io.Writer, r *regions.Result) {
	fmt.Fprintf(w, "switch\tp50 ms\tp99 ms\tmax ms\n")
	for _, line := range []struct {
		name string
		q    regions.Quantiles
	}{{"drain", r.Switch.Drain}, {"switch", r.Switch.Switch}, {"of it, activation", r.Switch.Activation}} {
		fmt.Fprintf(w, "%s\t%s\n", line.name, milliseconds(&line.q))
	}
	fmt.Fprintf(w, "%d switches beside %d jobs in other regions\n\n", r.Switch.Switches, r.Switch.OtherJobs)

	b := &r.Beside
	fmt.Fprintf(w, "jobs beside\trows/s\trows/s beside switches\tloss\tof a turn\tswitches/s\n")
	fmt.Fprintf(w, "%d\t%.0f\t%.0f\t%.1f%%\t%.1f%% to %.1f%%\t%.1f\n\n", b.Jobs, b.RowsPerSecond, b.RowsPerSecondSwitched,
		100*b.Loss, 100*b.LeastLoss, 100*b.MostLoss, b.SwitchesPerSecond)
}

// printHostIO prints the latencies of ordinary reads and writes.
func printHostIO(w io.Writer, r *regions.Result) {
	fmt.Fprintf(w, "\nhost I/O\tlimit\tjobs\trows/s\tIOPS\tread p50 ms\tp99 ms\tmax ms\twrite p50 ms\tp99 ms\tmax ms\n")
	for _, h := range r.HostIO {
		limit := "none"
		if h.Share < 100 {
			limit = fmt.Sprintf("%d%%", h.Share)
		}
		fmt.Fprintf(w, "%d at a time\t%s\t%d\t%.0f\t%.0f\t%s\t%s\n", h.Depth, limit, h.Jobs, h.RowsPerSecond, h.IOPS,
			milliseconds(h.Read), milliseconds(h.Write))
	}
}

// milliseconds returns three cells of a table.
func milliseconds(q *regions.Quantiles) string {
	if q == nil {
		return "-\t-\t-"
	}
	return fmt.Sprintf("%.3f\t%.3f\t%.3f", 1e3*q.P50, 1e3*q.P99, 1e3*q.Max)
}
