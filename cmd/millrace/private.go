package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/trainmgr/private"
)

// privateCommand is the command that millrace.open of the Python package starts.
func privateCommand(c *console) *cobra.Command {
	var (
		verbose bool
		sources sourceFlags // without flags: the environment says where a store is
	)
	cmd := &cobra.Command{
		Use:   "private",
		Short: "The preprocessing of one trainer on this machine; millrace.open in Python starts it",
		Long: `Preprocesses files of this machine for a trainer in Python, which starts this command by itself and
is connected to it by standard input, one end of a unix socket. Mini-batches are handed over in
shared memory. The process ends when its trainer does, however that happens, and leaves nothing
behind; interrupts and hang-ups of the terminal are the trainer's and do not end it.`,
		Example: "  millrace private --help",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			conn, parent, err := private.Inherited(os.Stdin)
			if err != nil {
				return err
			}
			var log *slog.Logger
			if verbose {
				log = logger(c.Err, "info", "auto")
			}
			options := private.Options{Logger: log, Parent: parent, Sources: sources.open}
			if err := private.Serve(cmd.Context(), conn, options); err != nil {
				return cli.ErrReported // the trainer has the error
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "log files, ranks and their ends to standard error")
	return cmd
}
