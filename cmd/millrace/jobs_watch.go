package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/trainmgr/remote"
)

// watchView is a job's status with the rate and the remaining time, which follow from several statuses.
type watchView struct {
	jobView
	Rate      float64 `json:"rows_per_second"`   // recently acknowledged; 0: not known yet
	Remaining float64 `json:"remaining_seconds"` // time left at that pace; 0: unknown
}

func (c jobCommands) watch() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "watch JOB",
		Short: "Follow a job until it has ended",
		Long: `Shows a job whenever it changes, at most once a second, until it has ended: state, rows a second
that its ranks acknowledged lately, T, P, drives, each rank's queue and stall, and how long the job
takes at this pace. On a terminal it is drawn in place, elsewhere a line each time. It fails if the
job does, or is abandoned.`,
		Example: "  millrace jobs watch ads",
		Args:    cli.ExactArgs("JOB"),
	}
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		var (
			pace   remote.Pace
			state  string
			width  = terminal.Width(c.Out)
			screen = terminal.NewScreen(c.Out, width)
		)
		for st, err := range client.Watch(ctx, args[0]) {
			if ctx.Err() != nil {
				return nil // interrupted: the job goes on
			}
			if err != nil {
				return err
			}
			pace.Observe(time.Now(), st)
			v := viewWatch(st, &pace)
			state = v.State
			switch {
			case c.Output == "json":
				err = c.Print(v, nil)
			case width > 0:
				err = screen.Draw(c.Table(func(w io.Writer) { drawWatch(w, v) }))
			default:
				err = c.Print(v, func(w io.Writer) { lineWatch(w, v) })
			}
			if err != nil {
				return err
			}
		}
		if strings.HasPrefix(state, "failed") || strings.HasPrefix(state, "abandoned") {
			return fmt.Errorf("job %s %s", args[0], state)
		}
		return nil
	})
}

func viewWatch(st *apiv1.JobStatus, pace *remote.Pace) watchView {
	v := watchView{jobView: viewJob(st)}
	v.Rate, _ = pace.RowsPerSecond()
	if left, ok := pace.Remaining(st); ok {
		v.Remaining = left.Seconds()
	}
	return v
}

// formatRate returns the rate, for a table.
func (v *watchView) formatRate() string {
	if v.Rate == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f rows/s", v.Rate)
}

// formatRemaining returns the time left, for a table.
func (v *watchView) formatRemaining() string {
	if v.Remaining == 0 {
		return "-"
	}
	return time.Duration(v.Remaining * float64(time.Second)).String()
}

// lineWatch writes a status as one line, for logs and pipes.
func lineWatch(w io.Writer, v watchView) {
	fmt.Fprintf(w, "%s  %s  epoch %s, %s delivered, %s, %d drives (%d wanted), %s left\n",
		time.Now().Format(time.TimeOnly), v.State, v.epoch, v.share, v.formatRate(), v.Drives, v.Wanted,
		v.formatRemaining())
}

// drawWatch writes a status for a terminal, which shows it in place of the one before.
func drawWatch(w io.Writer, v watchView) {
	fmt.Fprintf(w, "job\t%s (%s)\nstate\t%s\nepoch\t%s\n", v.Name, v.ID, v.State, v.epoch)
	fmt.Fprintf(w, "delivered\t%s %s, %d of %s\n", progressBar(v.Delivered, v.MiniBatches, 30), v.share,
		v.Delivered, quantity.Of(v.MiniBatches, "mini-batch"))
	fmt.Fprintf(w, "rows/s\t%s\nT\t%s\nP\t%.0f rows/s a drive\n", v.formatRate(), v.formatT(), v.P)
	fmt.Fprintf(w, "drives\t%d at once, T/P wants %d\n", v.Drives, v.Wanted)
	fmt.Fprintf(w, "time left\t%s\n", v.formatRemaining())
	if v.WaitsFor != "" {
		fmt.Fprintf(w, "waits for\t%s\n", v.WaitsFor)
	}
	fmt.Fprintf(w, "\nrank\tattached\tdelivered\tqueue\tstall\n")
	for _, r := range v.Ranks {
		fmt.Fprintf(w, "%d\t%v\t%d of %d\t%.1f\t%.1f s\n", r.Rank, r.Attached, r.Delivered, r.MiniBatches, r.Queue,
			r.Stall)
	}
}

// progressBar draws the share part of whole in width characters.
func progressBar(part, whole uint64, width int) string {
	full := 0
	if whole > 0 {
		full = int(min(part, whole) * uint64(width) / whole)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}
