package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/inspection"
	"github.com/millrace/millrace/sdk"
)

// healthResult is a drive's health, and the values about which a second reader of the same log disagrees.
type healthResult struct {
	*health.SMARTLog
	Disagreements []string `json:"cross_check,omitempty"`
}

func (c driveCommands) smart() *cobra.Command {
	var (
		f     inspectFlags
		cross bool
	)
	cmd := &cobra.Command{
		Use: "smart DRIVE", Short: "A drive's health: its SMART log",
		Long: `Reads log page 02h. What a drive does not report is "not available" (null in JSON), never a zero
that looks like a value.`,
		Example: "  millrace drive smart nvme:/dev/nvme0\n  millrace drive smart file:d0.flash --output json\n" +
			"  millrace drive smart node0/d0",
		Args: cli.ExactArgs("DRIVE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := sdk.ParseURI(args[0])
			if cross && (err != nil || u.Scheme != "nvme") {
				return cli.Usagef("--cross-check: only a drive behind the kernel has a second reader, as nvme:/dev/nvme0")
			}
			v, err := c.inspectDrive(cmd.Context(), &f, args[0], inspection.Health)
			if err != nil {
				return err
			}
			k := healthResult{SMARTLog: v.(*health.SMARTLog)}
			if cross {
				if k.Disagreements, err = health.CrossCheck(u.Name, k.SMARTLog); err != nil {
					return err
				}
			}
			if err := c.printHealth(k, cross); err != nil {
				return err
			}
			if n := len(k.Disagreements); n > 0 {
				return fmt.Errorf("%s: a second reader of its log disagrees about %d values", args[0], n)
			}
			return nil
		},
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&cross, "cross-check", false,
		"have github.com/dswarbrick/smart read the log of a drive behind the kernel, too")
	return cmd
}

func (c driveCommands) printHealth(r healthResult, cross bool) error {
	return c.Print(r, func(w io.Writer) {
		fmt.Fprintf(w, "drive\t%s\nmodel\t%s, serial %s, firmware %s\n", r.Drive, r.Model, r.Serial, r.Firmware)
		warnings := "none"
		if len(r.Warnings) > 0 {
			warnings = strings.Join(r.Warnings, ", ")
		}
		fmt.Fprintf(w, "critical warnings\t%s\n", warnings)
		printLostRanges(w, r.Lost)
		fmt.Fprintf(w, "temperature\t%s\n", formatOptional(r.Temperature, "°C"))
		for i, s := range r.Sensors {
			fmt.Fprintf(w, "sensor %d\t%d °C\n", i+1, s)
		}
		fmt.Fprintf(w, "available spare\t%s (threshold %s)\n", formatOptional(r.Spare, "%"),
			formatOptional(r.Threshold, "%"))
		fmt.Fprintf(w, "life used\t%s\n", formatOptional(r.Used, "%"))
		fmt.Fprintf(w, "read\t%s in %d commands\nwritten\t%s in %d commands\n", formatOptional(r.BytesRead, "bytes"),
			r.Reads,
			formatOptional(r.BytesWrote, "bytes"), r.Writes)
		fmt.Fprintf(w, "busy\t%d minutes\npowered on\t%d hours, %d times, %d unsafe shutdowns\n", r.Busy, r.PowerOn,
			r.PowerCycles, r.Unsafe)
		fmt.Fprintf(w, "media errors\t%d\nerror log\t%d entries ever\n", r.MediaErrors, r.ErrorCount)
		fmt.Fprintf(w, "too warm\t%d minutes, critically %d\n", r.WarningTime, r.TooHotTime)
		if cross && len(r.Disagreements) == 0 {
			fmt.Fprintf(w, "cross-check\tagrees\n")
		}
		for _, d := range r.Disagreements {
			fmt.Fprintf(w, "cross-check\t%s\n", d)
		}
	})
}

// formatOptional returns a value with its unit, or "not available" where v is nil.
func formatOptional[T int | uint64](v *T, unit string) string {
	if v == nil {
		return "not available"
	}
	return fmt.Sprintf("%d %s", *v, unit)
}
