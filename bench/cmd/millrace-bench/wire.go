package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/bench/wire"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/quantity"
)

func (c benchCommands) wire() *cobra.Command {
	var (
		o          wire.Options
		operations []string
		digests    []string
		size       string
	)
	cmd := &cobra.Command{
		Use:   "wire",
		Short: "NVMe/TCP over loopback beside raw TCP: 4 KiB random reads, 1 MiB sequential reads and writes",
		Long: `Serves a drive in memory on loopback, connects to it, and measures each combination of operation,
I/O queues (a connection each), commands outstanding on each, and digests. In turns with it as many
raw TCP connections copy blocks of the same size between the same places; the ratio is what NVMe/TCP
reaches of their bytes a second. Processor time and allocations are the whole process's: initiator
and target.`,
		Example: "  millrace bench wire --depths 32 --connections 1,2 --digests off --time 3s --output json",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range operations {
				o.Operations = append(o.Operations, wire.Operation(name))
			}
			for _, d := range digests {
				if d != "on" && d != "off" {
					return cli.Usagef("--digests %q: want on or off", d)
				}
				o.Digests = append(o.Digests, d == "on")
			}
			if o.Time <= 0 {
				return cli.Usagef("--time must be above 0")
			}
			var err error
			if o.DriveBytes, err = quantity.Bytes(size); err != nil {
				return cli.Usagef("--size: %w", err)
			}
			o.Progress = c.Announce
			results, err := wire.Run(cmd.Context(), o)
			if errors.Is(err, wire.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err != nil {
				return err
			}
			return c.Report(results, func(w io.Writer) {
				fmt.Fprintf(w,
					"operation\tdepth\tconnections\tdigests\tIOPS\tGB/s\traw "+
						"TCP GB/s\tratio\tCPU-s/GB\traw CPU-s/GB\tCPU-µs/command\tallocs/command\n")
				for _, r := range results {
					digests := "off"
					if r.Digests {
						digests = "on"
					}
					fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%.0f\t%.2f\t%.2f\t%.0f%%\t%.2f\t%.2f\t%.1f\t%.2f\n", r.Operation,
						r.Depth, r.Connections, digests, r.IOPS,
						r.BytesPerSecond/1e9, r.RawTCPBytesPerSecond/1e9, 100*r.Ratio, r.CPUSecondsPerGB,
						r.RawTCPCPUSecondsPerGB, 1e6*r.CPUSecondsPerCommand, r.AllocsPerCommand)
				}
			})
		},
	}
	f := cmd.Flags()
	cli.AddNativeTiming(f, cli.ServedTiming)
	f.StringSliceVar(&operations, "operations", []string{"random_read", "sequential_read", "sequential_write"},
		"random_read (4 KiB), sequential_read, sequential_write (1 MiB)")
	f.IntSliceVar(&o.Depths, "depths", []int{1, 32, 128}, "commands outstanding on each connection, 1 to 128")
	f.IntSliceVar(&o.Connections, "connections", []int{1, 2}, "I/O queues, a connection each, 1 to 16")
	f.StringSliceVar(&digests, "digests", []string{"off", "on"}, "header and data digests: off, on")
	f.DurationVar(&o.Time, "time", time.Second, "measure each cell so long, and raw TCP as long again")
	f.StringVar(&size, "size", "256MiB", "size of the drive, a multiple of 1 MiB")
	f.BoolVar(&o.NoFlowControl, "no-flow-control", false,
		"turn submission queue flow control off, so that a read needs no response capsule")
	return cmd
}
