package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
)

// errNobodyReads says that standard output or standard error is a pipe that nobody reads any more, as behind head.
var errNobodyReads = errors.New("nobody reads the output any more")

// followPipes returns standard output and standard error, and a context that ends with ctx, or when one of them is a
// pipe that nobody reads any more. Without it the system would end the process in the middle of a write: files without
// their names would stay, and a job's token would be lost.
func followPipes(ctx context.Context) (_ context.Context, out, err io.Writer) {
	ctx, end := context.WithCancelCause(ctx)
	// A signal that is caught lets writes fail. The signal itself says nothing: connections raise it as well.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, followReader(os.Stdout, end), followReader(os.Stderr, end)
}

// followReader returns a writer to f that calls end when f is a pipe that nobody reads any more.
func followReader(f *os.File, end context.CancelCauseFunc) io.Writer {
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return f
	}
	return &pipeWriter{f: f, end: end}
}

// pipeWriter writes to a pipe.
type pipeWriter struct {
	f   io.Writer
	end context.CancelCauseFunc
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		w.end(errNobodyReads)
		err = errNobodyReads
	}
	return n, err
}
