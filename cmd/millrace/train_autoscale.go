package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/trainmgr"
)

const autoscaleFlag = "autoscale"

func addAutoscaleFlag(f *pflag.FlagSet, every *time.Duration) {
	f.DurationVar(every, autoscaleFlag, 0, "decide after each such time how many drives or regions of drives run at "+
		"once, and give the others up (default: T/P run throughout)")
}

// checkAutoscale checks the time between two decisions. shared says that this machine's CPUs make a share of the
// splits.
func checkAutoscale(cmd *cobra.Command, every time.Duration, shared bool) error {
	switch {
	case !cmd.Flags().Changed(autoscaleFlag):
		return nil
	case every <= 0:
		return cli.Usagef("--autoscale %v: want a time above 0", every)
	case shared:
		return cli.Usagef("--autoscale and --local both decide how many drives run: leave one of the two out")
	}
	return nil
}

// printAutoscale prints how the number of drives followed the trainer; nil: it was fixed.
func printAutoscale(w io.Writer, r *trainmgr.AutoscaleReport) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "autoscaler\t%d to %d drives at once, %d now; %d changes in %d decisions; given up %d times, "+
		"taken %d times, %d times refused\n", r.Fewest, r.Most, r.Drives, r.Changes, r.Decisions, r.Given, r.Taken,
		r.Refused)
	fmt.Fprintf(w, "\tlast change: %s\n", r.Why)
}
