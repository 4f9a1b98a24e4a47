package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	benchservice "github.com/millrace/millrace/bench/service"
	"github.com/millrace/millrace/internal/quantity"
)

func (c benchCommands) service() *cobra.Command {
	var (
		o          benchservice.Options
		transports []string
		noLedger   bool
		noFailover bool
	)
	cmd := &cobra.Command{
		Use:   "service",
		Short: "From storage nodes to a trainer beside raw connections; acknowledgements a second; a leader's death",
		Long: `Runs a control plane, in processes of this program, and nodes that hold mini-batches in memory. One
trainer takes them over unix sockets, over loopback in clear, and over loopback with mutual TLS; in
turns with it as many raw connections of the same kind copy blocks of the same size. Processor time
is that of trainer and nodes together. Then it measures durable acknowledgements of a job of
--splits splits and the control plane's memory, and how long a leader's death is felt.`,
		Example: "  millrace bench service --transports unix,tcp --nodes 1,4 --time 4s --output json\n" +
			"  millrace bench service --no-ledger --no-failover",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Time <= 0 || o.Splits <= 0 || o.LeaderTTL <= 0 {
				return usagef("--time, --splits and --leader-ttl must be above 0")
			}
			for _, t := range transports {
				o.Transports = append(o.Transports, benchservice.Transport(t))
			}
			if noLedger {
				o.Splits = -1
			}
			if noFailover {
				o.LeaderTTL = -1
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.Command, o.Progress = []string{self}, c.announce
			r, err := benchservice.Run(cmd.Context(), o)
			if errors.Is(err, benchservice.ErrOptions) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			return c.print(r, func(w io.Writer) { printService(w, r) })
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&transports, "transports", []string{"unix", "tcp", "tls"},
		"how the trainer reaches nodes: unix, tcp, tls")
	f.IntSliceVar(&o.Nodes, "nodes", []int{1, 2, 4}, "how many nodes")
	o.Rows, o.Splits = 16<<10, 1_000_000
	f.Var(quantity.CountFlag[int]{To: &o.Rows}, "rows", "rows of a mini-batch, of 264 bytes each")
	f.DurationVar(&o.Time, "time", 2*time.Second, "measure each cell so long, and raw connections as long again")
	f.Var(quantity.CountFlag[int]{To: &o.Splits}, "splits", "splits of the job whose acknowledgements are timed")
	f.DurationVar(&o.LeaderTTL, "leader-ttl", 5*time.Second, "of the control plane whose leader is killed")
	f.BoolVar(&noLedger, "no-ledger", false, "leave acknowledgements out")
	f.BoolVar(&noFailover, "no-failover", false, "leave the leader's death out")
	return cmd
}

func printService(w io.Writer, r *benchservice.Result) {
	fmt.Fprintf(w, "nodes are %s\n\n", r.Nodes)
	fmt.Fprintf(w, "transport\tnodes\tconnections\tGB/s\traw GB/s\tratio\tCPU-s/GB\traw CPU-s/GB\n")
	for _, x := range r.Wire {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%.2f\t%.0f%%\t%.2f\t%.2f\n", x.Transport, x.Nodes, x.Connections,
			x.BytesPerSecond/1e9, x.RawPerSecond/1e9, 100*x.Ratio, x.CPUSecondsPerGB, x.RawCPUPerGB)
	}
	if l := r.Ledger; l != nil {
		fmt.Fprintf(w,
			"\n%d splits acknowledged in %.2f s: %.0f a second, durable; control plane %.0f MB, at most %.0f MB\n",
			l.Splits, l.Seconds, l.PerSecond,
			float64(l.ResidentBytes)/1e6, float64(l.MaxResidentBytes)/1e6)
	}
	if f := r.Failover; f != nil {
		fmt.Fprintf(w,
			"\nleader killed: acknowledgements durable again after %.2f s (TTL %.0f s); the trainer took %d "+
				"mini-batches meanwhile and waited %.3f s at the longest\n",
			f.Seconds, f.LeaderTTLSeconds, f.MiniBatches, f.StallSeconds)
	}
}
