package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	benchpipeline "github.com/millrace/millrace/bench/pipeline"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
)

func (c benchCommands) pipeline() *cobra.Command {
	var (
		o    benchpipeline.Options
		ways []string
	)
	cmd := &cobra.Command{
		Use:   "pipeline",
		Short: "The whole way: from files on a drive to trainers in Go and Python, beside its bounds",
		Long: `Writes Parquet files, copies them to drives in files, and brings the mini-batches to a trainer in this
process (trainer), to a launcher in Go (launcher-unix, -tcp, -tls) and to the Python package (numpy-unix, -tcp,
-tls, torch-unix, -tcp) over the service, with a control plane and a node in processes of their own. Beside them, in
turns: the cpu engine alone, the drive alone, and raw connections. Every way first delivers each mini-batch once; all
must deliver the same ones, each once, and the nodes must have counted the bytes that came. CPU seconds are those of
each process for a million rows. Ways that this machine cannot have, for example without PyTorch, are named and left
out. For the ways of Python, --python names an interpreter with the Python package and NumPy; in the source tree set
PYTHONPATH=sdk/python/src.`,
		Example: "  millrace bench pipeline --models rm5 --time 6s\n" +
			"  millrace bench pipeline --ways drive,trainer,launcher-unix,raw-unix --output json\n" +
			"  millrace bench pipeline --models rm1,rm1-real --criteo day_11.tsv",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Time <= 0 || o.Rounds <= 0 || o.Threads <= 0 || o.Partitions <= 0 {
				return cli.Usagef("--time, --rounds, --threads and --partitions must be above 0")
			}
			for _, w := range ways {
				o.Ways = append(o.Ways, benchpipeline.Way(w))
			}
			product, absent := cli.FindProgram("millrace")
			o.Command, o.Progress = []string{product}, c.Announce
			r, err := benchpipeline.Run(cmd.Context(), o)
			if errors.Is(err, benchpipeline.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return errors.Join(err, absent) // a run that failed may have wanted it
			}
			return c.Report(r, func(w io.Writer) { printPipeline(w, r) })
		},
	}
	f := cmd.Flags()
	cli.AddNativeTiming(f, cli.ServiceTiming)
	f.StringSliceVar(&o.Models, "models", []string{"rm1", "rm5"}, "workloads: rm1 to rm5, rm1-real")
	f.StringVar(&o.Criteo, "criteo", "", "file of Criteo's rows as text, for rm1-real")
	f.StringSliceVar(&ways, "ways", nil, "which ways (default: all)")
	f.StringVar(&o.Python, "python", "python3", "interpreter of an environment with the Python package and NumPy")
	f.Var(quantity.CountFlag[int64]{To: &o.Rows}, "rows", "rows of the data set (default: about 500 MB)")
	f.IntVar(&o.Partitions, "partitions", 4, "files of the data set")
	f.IntVar(&o.Threads, "threads", 1, "engine threads of each drive and of the cpu engine")
	f.DurationVar(&o.Time, "time", 3*time.Second, "measure each way at least so long, all rounds together")
	f.IntVar(&o.Rounds, "rounds", 3, "turns of each way")
	f.StringVar(&o.Codec, "codec", "none", "none, snappy, gzip, zstd or lz4_raw")
	f.StringVar(&o.Encoding, "encoding", "plain", "plain or dictionary")
	f.Float64Var(&o.Coverage, "coverage", 1, "share of rows that have a feature")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the data")
	return cmd
}

// printPipeline prints the table, and below it the ways that are not in it.
func printPipeline(w io.Writer, r *benchpipeline.Report) {
	fmt.Fprintf(w, "model\tway\trows/s\t±\tGB/s\tof the drive\tCPU-s/M rows: trainer\tnode\tcontrol plane\n")
	for _, x := range r.Results {
		share := ""
		if x.DriveShare > 0 {
			share = fmt.Sprintf("%.0f%%", 100*x.DriveShare)
		}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f%%\t%.2f\t%s\t%.2f\t%.2f\t%.2f\n", strings.ToUpper(x.Model), x.Way,
			x.RowsPerSecond, 100*x.RoundSpread, x.BytesPerSecond/1e9, share, x.TrainerCPU, x.NodeCPU, x.ControlCPU)
	}
	for _, why := range r.LeftOut {
		fmt.Fprintf(w, "left out: %s\n", why)
	}
}
