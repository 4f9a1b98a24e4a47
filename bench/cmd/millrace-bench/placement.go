package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/bench/placement"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
)

func (c benchCommands) placement() *cobra.Command {
	var (
		o     placement.Options
		modes []string
		slm   string
	)
	cmd := &cobra.Command{
		Use:   "placement",
		Short: "Where to preprocess: bytes over each link, and rows a CPU-second, of five placements",
		Long: `Makes a data set, and has the same mini-batches made in five places: by the drive that holds the
partitions; by the storage node's CPU beside a plain drive; by a drive without flash that the node
feeds over NVMe/TCP; by a worker without data that reads ranges over HTTP; and by the trainer's own
CPU, which reads them too. Every link's bytes are counted over one pass, and the mini-batches are
compared: they are the same. All parts run on this machine and share its cores, and drives are
software: what a row says about that stands below the table.`,
		Example: "  millrace bench placement --model rm1 --time 3s\n" +
			"  millrace bench placement --model rm5 --modes in-storage,pool --codec zstd --output json",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, m := range modes {
				o.Modes = append(o.Modes, placement.Mode(m))
			}
			var err error
			if o.SLM, err = quantity.Bytes(slm); err != nil {
				return cli.Usagef("--slm: %w", err)
			}
			if o.Time <= 0 {
				return cli.Usagef("--time must be above 0")
			}
			o.Progress = c.Announce
			results, err := placement.Run(cmd.Context(), o)
			if errors.Is(err, placement.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			return c.Report(results, func(w io.Writer) { printPlacements(w, results) })
		},
	}
	f := cmd.Flags()
	cli.AddNativeTiming(f, cli.MachineTiming)
	f.StringVar(&o.Model, "model", "rm1", "workload: rm1 to rm5")
	f.StringSliceVar(&modes, "modes", nil, "in-storage, node-cpu, card, pool, trainer (default: all)")
	f.Var(quantity.CountFlag[int64]{To: &o.Rows}, "rows", "rows of the data set (default: 262144, of lists 8192)")
	f.IntVar(&o.Partitions, "partitions", 2, "files of the data set")
	f.IntVar(&o.Batch, "batch", 0, "rows of a mini-batch (default: the pipeline's)")
	f.StringVar(&o.Codec, "codec", "none", "none, snappy, gzip, zstd or lz4_raw")
	f.Float64Var(&o.Coverage, "coverage", 1, "share of rows that have a feature")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the data")
	f.StringVar(&slm, "slm", "1GiB", "memory of a drive that computes")
	f.DurationVar(&o.Time, "time", 2*time.Second, "measure each placement at least so long")
	return cmd
}

// printPlacements prints the table, and below it what each row's numbers are.
func printPlacements(w io.Writer, results []placement.Result) {
	fmt.Fprintf(w, "placement\tflash to drive B/row\tflash to node B/row\tto worker B/row\tto card B/row\t"+
		"from drive B/row\tto trainer B/row\tbetween machines B/row\trows/s\trows/CPU-s\tmove ms\tdecode ms\t"+
		"transform ms\tfetch ms\n")
	for _, r := range results {
		each := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/float64(max(r.Rows, 1))) }
		l := &r.Links
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\n", r.Mode, each(l.FlashToDrive),
			each(l.FlashToNode), each(l.NodeToWorker), each(l.HostToCard), each(l.CardToHost+l.DriveToNode),
			each(l.WorkerToTrainer), each(r.NetworkBytes), r.RowsPerSecond, r.RowsPerCPUSecond, 1e3*r.Steps.Move,
			1e3*r.Steps.Decode, 1e3*r.Steps.Transform, 1e3*r.Steps.Fetch)
	}
	for _, r := range results {
		fmt.Fprintf(w, "%s: by %s; chunks of %d bytes, tensors of %d bytes", r.Mode, r.Engine, r.ChunkBytes, r.TensorBytes)
		for _, note := range r.Notes {
			fmt.Fprintf(w, "; %s", note)
		}
		fmt.Fprintln(w)
	}
}
