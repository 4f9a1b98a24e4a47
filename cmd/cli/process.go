package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Main runs the command line of this process until it is done, or interrupted, and returns its exit status.
func Main(run func(ctx context.Context, args []string, s Streams) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	// The end of a terminal or of a connection is an interrupt, unless nohup has it ignored. Shells send the signal again.
	if !signal.Ignored(syscall.SIGHUP) {
		var stopHangups context.CancelFunc
		ctx, stopHangups = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stopHangups()
	}
	ctx, out, err := followPipes(ctx)
	return run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: out, Err: err})
}
