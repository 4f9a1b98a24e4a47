package site

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Attend starts the daemons that do not run, calls ready, and returns when ctx ends or when a daemon that it started
// ends; before it returns, it stops the daemons that it started. It writes each line that they log to log, behind the
// daemon's name. If all daemons run already it only calls ready.
func (s *Site) Attend(ctx context.Context, log io.Writer, ready func()) error {
	started, err := s.start(ctx, &lineWriter{w: log})
	if err != nil {
		return err
	}
	ready()
	if len(started) == 0 {
		return nil
	}
	if err := s.Close(); err != nil { // the folder is free while they run
		return err
	}
	ended := make(chan *child, len(started))
	for _, c := range started {
		go func() {
			<-c.ended
			ended <- c
		}()
	}
	select {
	case <-ctx.Done():
	case c := <-ended:
		err = fmt.Errorf("%w: %s ended (%s)%s", ErrDaemon, c.what, fmt.Sprint(c.err), s.logTail(c.daemon))
		if c.err == nil { // millrace down ended it, in another terminal
			err = nil
		}
	}
	for i := len(started) - 1; i >= 0; i-- {
		_, serr := s.endDaemon(started[i].daemon)
		err = errors.Join(err, serr)
		<-started[i].ended
	}
	return err
}

// lineWriter writes whole lines of several daemons.
type lineWriter struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// copyLines copies a daemon's log into its file, and line by line to a watcher. It goes on when the watcher is gone.
func copyLines(from io.Reader, file, watcher io.Writer, name string) {
	r := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			_, _ = file.Write(line)
			_, _ = watcher.Write(append([]byte(name+"  "), line...))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
