package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/bench/cluster"
	benchservice "github.com/millrace/millrace/bench/service"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
)

func (c benchCommands) service() *cobra.Command {
	var (
		o          benchservice.Options
		transports []string
		noLedger   bool
		noFailover bool
		noAgents   bool
	)
	cmd := &cobra.Command{
		Use:   "service",
		Short: "From storage nodes to a trainer beside raw connections; acknowledgements a second; a leader's death",
		Long: `Runs a control plane and storage nodes, in processes of this program. Each node has a drive in a file,
with a copy of --drive-rows rows of Criteo's columns, which the drive preprocesses with --threads engine
threads. One trainer takes the mini-batches over unix sockets, over loopback in clear, and over loopback
with mutual TLS, until the rate is known to 5 % or a limit is reached. The same is measured with
stand-ins, nodes that hold mini-batches in memory: the ceiling of what the service can carry. In turns
with the stand-ins as many raw connections of the same kind copy blocks of the same size. Processor
time is that of trainer and nodes together. Then it measures durable acknowledgements of a job of
--splits splits and the control plane's memory, and how long a leader's death is felt.`,
		Example: "  millrace bench service --transports unix,tcp --nodes 1,4 --time 4s --output json\n" +
			"  millrace bench service --no-ledger --no-failover",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Time <= 0 || o.Splits <= 0 || o.LeaderTTL <= 0 || o.DriveRows <= 0 || o.Threads <= 0 {
				return cli.Usagef("--time, --splits, --leader-ttl, --drive-rows and --threads must be above 0")
			}
			for _, t := range transports {
				o.Transports = append(o.Transports, cluster.Transport(t))
			}
			if noLedger {
				o.Splits = -1
			}
			if noAgents {
				o.DriveRows = -1
			}
			if noFailover {
				o.LeaderTTL = -1
			}
			product, absent := cli.FindProgram("millrace")
			o.Command, o.Progress = []string{product}, c.Announce
			r, err := benchservice.Run(cmd.Context(), o)
			if errors.Is(err, benchservice.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return errors.Join(err, absent) // a run that failed may have wanted it
			}
			return c.Report(r, func(w io.Writer) { printService(w, r) })
		},
	}
	f := cmd.Flags()
	cli.AddNativeTiming(f, cli.ServiceTiming)
	f.StringSliceVar(&transports, "transports", []string{"unix", "tcp", "tls"},
		"how the trainer reaches nodes: unix, tcp, tls")
	f.IntSliceVar(&o.Nodes, "nodes", []int{1, 2, 4}, "how many nodes")
	o.Rows, o.Splits, o.DriveRows = 16<<10, 1_000_000, 1<<20
	f.Var(quantity.CountFlag[int]{To: &o.Rows}, "rows", "rows of a mini-batch, of 264 bytes each")
	f.Var(quantity.CountFlag[int64]{To: &o.DriveRows}, "drive-rows", "rows on the drive of each node, of 264 bytes each")
	f.IntVar(&o.Threads, "threads", 1, "engine threads of each node's drive")
	f.BoolVar(&noAgents, "no-agents", false, "measure stand-ins alone, without storage nodes that preprocess")
	f.DurationVar(&o.Time, "time", 2*time.Second, "measure each cell so long, and raw connections as long again")
	f.Var(quantity.CountFlag[int]{To: &o.Splits}, "splits", "splits of the job whose acknowledgements are timed")
	f.DurationVar(&o.LeaderTTL, "leader-ttl", 5*time.Second, "of the control plane whose leader is killed")
	f.BoolVar(&noLedger, "no-ledger", false, "leave acknowledgements out")
	f.BoolVar(&noFailover, "no-failover", false, "leave the leader's death out")
	return cmd
}

func printService(w io.Writer, r *benchservice.Result) {
	fmt.Fprintf(w, "%s\n\n", r.Kinds)
	fmt.Fprintf(w, "transport\tnodes\tkind\tconnections\tGB/s\t±\tof stand-ins\traw GB/s\tratio\tCPU-s/GB\t"+
		"of it in nodes\traw CPU-s/GB\n")
	for _, x := range r.Wire {
		spread, share, nodes := "", "", ""
		if x.Kind == benchservice.Agent {
			spread, share = fmt.Sprintf("%.0f%%", 100*x.Spread), fmt.Sprintf("%.0f%%", 100*x.Ceiling)
			nodes = fmt.Sprintf("%.2f", x.NodeCPUPerGB)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%.2f\t%s\t%s\t%.2f\t%.0f%%\t%.2f\t%s\t%.2f\n", x.Transport, x.Nodes, x.Kind,
			x.Connections, x.BytesPerSecond/1e9, spread, share, x.RawPerSecond/1e9, 100*x.Ratio, x.CPUSecondsPerGB, nodes,
			x.RawCPUPerGB)
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
