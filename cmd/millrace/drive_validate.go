package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/host/health"
	"github.com/millrace/millrace/sdk"
)

// validated is what `millrace drive validate` reports.
type validated struct {
	Drive  string         `json:"drive"`
	Checks []health.Check `json:"checks"`
}

func (c *command) driveValidate() *cobra.Command {
	var (
		scratch string
		step    time.Duration
	)
	cmd := &cobra.Command{
		Use: "validate URI", Short: "Try whether a drive does what it should",
		Long: `Tries a drive in steps: link, identify, flash (write, read, verify), memory, move (flash to memory), self-test (known answers of the stock image).
Each passes, fails or is skipped and says why; if one fails the exit status is 1. The flash step writes to a range at the end of the
namespace that the volume does not use and that holds only zeros, and puts the zeros back; any other range is left alone.`,
		Example: "  millrace drive validate file:d0.flash\n  millrace drive validate nvme:/dev/nvme0 --output json",
		Args:    exactArgs("URI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkURI(args[0]); err != nil {
				return err
			}
			o := health.Options{Step: step}
			if step <= 0 {
				return usagef("--step-timeout %s: want more than 0", step)
			}
			if scratch != "" {
				var err error
				if o.Scratch, err = sdk.ParseBytes(scratch); err != nil {
					return usagef("--scratch: %w", err)
				}
			}
			v := validated{args[0], health.Validate(cmd.Context(), args[0], o)}
			failed := 0
			for _, k := range v.Checks {
				if k.Result == health.Failed {
					failed++
				}
			}
			err := c.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "step\tresult\tseconds\t\n")
				for _, k := range v.Checks {
					fmt.Fprintf(w, "%s\t%s\t%.3f\t%s\n", k.Name, k.Result, k.Elapsed, k.Detail)
				}
			})
			if err == nil && failed > 0 {
				err = fmt.Errorf("%s: %d of %d steps failed", args[0], failed, len(v.Checks))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&scratch, "scratch", "", "size of the range that the flash step writes, as 1MiB")
	cmd.Flags().DurationVar(&step, "step-timeout", health.DefaultStep, "the most time of one step")
	return cmd
}
