package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/bench/operators"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
)

// operators measures MiniPipe's operators one by one.
func (c benchCommands) operators() *cobra.Command {
	o := operators.Options{Threads: []int{1}}
	cmd := &cobra.Command{
		Use:   "operators",
		Short: "MiniPipe's operators one by one, beside the paper's table",
		Long: `Passes columns that lie in memory through each of the operators in MiniPipe's table, and prints the
seconds that all of the operator's columns of its data set D-I would take at that rate: 13 dense
features or 26 ids of 45,840,617 rows. Each thread has a column of its own. Nothing is read from files
or decoded. Beside them stand the paper's seconds: of one thread of a CPU, of an A100, and of
MiniPipe. Values a second of processor time tell more than those of the wall's clock where other work
runs beside.`,
		Example: "  millrace bench operators --threads 1,2\n" +
			"  millrace bench operators --values 1M --time 5s --output json",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = c.Announce
			results, err := operators.Run(cmd.Context(), o)
			if errors.Is(err, operators.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			return c.Report(results, func(w io.Writer) {
				fmt.Fprintf(w, "operator\tthreads\tM values/s\tM values/cpu-s\tD-I seconds\tpaper: CPU\tA100\tMiniPipe\n")
				for _, r := range results {
					fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.2f\t%.2f\t%.3f\t%.2f\n", r.Operator, r.Threads, r.ValuesPerSecond/1e6,
						r.CPUValuesPerSecond/1e6, r.DataSetSeconds, r.Paper.CPU, r.Paper.A100, r.Paper.MiniPipe)
				}
			})
		},
	}
	f := cmd.Flags()
	cli.AddNativeTiming(f, cli.MachineTiming)
	f.IntSliceVar(&o.Threads, "threads", o.Threads, "threads, several for one measurement each")
	f.Var(quantity.CountFlag[int]{To: &o.Values}, "values", "values of a column (default 4194304)")
	f.DurationVar(&o.Time, "time", operators.DefaultTime, "measure each at least so long")
	f.StringVar(&o.Folder, "temporary", "", "folder for vocabularies while they are built (default: the system's)")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the data")
	return cmd
}
