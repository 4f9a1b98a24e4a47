package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/host/telemetry"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/sdk"
)

// validation is what `millrace drive validate` prints.
type validation struct {
	Drive  string         `json:"drive"`
	Checks []health.Check `json:"checks"`

	// Latencies are the durations of the commands of a drive behind the kernel, as the kernel's driver measured them.
	Latencies []telemetry.Histogram `json:"latencies,omitempty"`
	Untimed   string                `json:"untimed_reason,omitempty"` // why there are none
}

// validateDrive runs the checks on a drive. The kernel's tracepoints time the commands of a drive behind the kernel.
func validateDrive(ctx context.Context, uri string, o health.Options) validation {
	v := validation{Drive: uri}
	u, err := sdk.ParseURI(uri)
	if err != nil || u.Scheme != "nvme" {
		v.Checks = health.Validate(ctx, uri, o)
		return v
	}
	w, err := telemetry.Watch()
	v.Checks = health.Validate(ctx, uri, o)
	if err == nil {
		name := u.Name
		if resolved, err := filepath.EvalSymlinks(name); err == nil {
			name = resolved
		}
		v.Latencies, err = w.Read()
		v.Latencies = slices.DeleteFunc(v.Latencies, func(h telemetry.Histogram) bool {
			return fmt.Sprintf("nvme%d", h.Controller) != filepath.Base(name)
		})
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		v.Untimed = cli.OneLine(err.Error())
	}
	return v
}

func (c driveCommands) validate() *cobra.Command {
	var o health.Options
	cmd := &cobra.Command{
		Use: "validate URI", Short: "Try whether a drive does what it should",
		Long: `Tries a drive in steps: link, identify, contents (the volume's members, and whether any lies in
flash that was lost), flash (write, read, verify), memory, move (flash to memory), self-test (known
answers of the stock image). Each passes, fails or is skipped and says why; if one fails the exit
status is 1. The flash step writes to a range at the end of the namespace that the volume does not
use and that holds only zeros, and puts the zeros back; any other range is left alone. Of a drive
behind the kernel the latencies of its commands are shown too, where the kernel's tracepoints can be
watched.`,
		Example: "  millrace drive validate file:d0.flash\n  millrace drive validate nvme:/dev/nvme0 --output json",
		Args:    cli.ExactArgs("URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkURI(args[0]); err != nil {
				return err
			}
			if o.Step <= 0 {
				return cli.Usagef("--step-timeout %s: want more than 0", o.Step)
			}
			v := validateDrive(cmd.Context(), args[0], o)
			failed := 0
			for _, k := range v.Checks {
				if k.Result == health.Failed {
					failed++
				}
			}
			err := c.Report(v, v.table)
			if err == nil && failed > 0 {
				err = fmt.Errorf("%s: %d of %d steps failed", args[0], failed, len(v.Checks))
			}
			return err
		},
	}
	cmd.Flags().Var(quantity.BytesFlag[int64]{To: &o.Scratch}, "scratch",
		"size of the range that the flash step writes, as 1MiB")
	cmd.Flags().DurationVar(&o.Step, "step-timeout", health.DefaultStep, "the most time of one step")
	return cmd
}

// table prints the checks of a drive, and the latencies of its commands.
func (v validation) table(w io.Writer) {
	terminal.Rows(w, v.Checks)
	for _, h := range v.Latencies {
		queue := "I/O"
		if h.Admin {
			queue = "admin"
		}
		fmt.Fprintf(w, "%s %02xh\t%d\t\tmean %s, half below %s, 99 of 100 below %s\n", queue, h.Opcode,
			h.Count, h.Mean(), h.Quantile(0.5), h.Quantile(0.99))
	}
	if v.Untimed != "" {
		fmt.Fprintf(w, "latencies\tnot available\t\t%s\n", v.Untimed)
	}
}
