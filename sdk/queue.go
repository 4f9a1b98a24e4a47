package sdk

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/sdk/processor"
)

// ErrClosed is returned for a command submitted to a closed queue or device.
var ErrClosed = errors.New("device is closed")

// DefaultDepth is the number of commands that a queue keeps outstanding when Options do not say.
const DefaultDepth = 16

// Queue submits I/O commands without waiting for them, at most Depth at a time. It is safe for concurrent use.
// Its goroutines, one a command, end with their command; Close waits for them.
type Queue struct {
	conn        nvme.Conn
	trace       *Trace
	outstanding chan struct{} // a token for each outstanding command
	done        chan struct{} // closed by Close

	mu      sync.Mutex // guards closed, and Add against Wait of running
	closed  bool
	running sync.WaitGroup
}

func newQueue(conn nvme.Conn, depth int, trace *Trace) *Queue {
	if depth <= 0 {
		depth = DefaultDepth
	}
	return &Queue{conn: conn, trace: trace, outstanding: make(chan struct{}, depth), done: make(chan struct{})}
}

// Depth returns the most commands outstanding at once.
func (q *Queue) Depth() int { return cap(q.outstanding) }

// Future is a submitted command.
type Future struct {
	done       chan struct{}
	completion nvme.Completion
	err        error
}

// Wait waits for the completion of the command and returns it. Until then the command's data belongs to the drive, so
// Wait takes no context: the context given to Submit aborts the command.
func (f *Future) Wait() (nvme.Completion, error) {
	<-f.done
	return f.completion, f.err
}

// Done is closed when the command has completed.
func (f *Future) Done() <-chan struct{} { return f.done }

// Submit sends a command, waiting while Depth commands are outstanding. When ctx ends first, or the queue is closed,
// the command is not sent and the future says so.
func (q *Queue) Submit(ctx context.Context, cmd *nvme.Command, data []byte) *Future {
	return q.submit(ctx, q.conn, cmd, data)
}

// submit is Submit over another Conn of the same drive.
func (q *Queue) submit(ctx context.Context, conn nvme.Conn, cmd *nvme.Command, data []byte) *Future {
	f := &Future{done: make(chan struct{})}
	if f.err = q.acquire(ctx); f.err != nil {
		close(f.done)
		return f
	}
	sent := *cmd
	go func() {
		defer q.running.Done()
		defer func() { <-q.outstanding }()
		defer close(f.done)
		defer processor.Contain("a command to the drive", &f.err) // a drive in this process is a part of it
		f.completion, f.err = q.trace.io(ctx, conn, &sent, data)
	}()
	return f
}

// acquire waits until fewer than Depth commands are outstanding, and counts the command as running.
func (q *Queue) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-q.done:
		return ErrClosed
	default:
	}
	select {
	case q.outstanding <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-q.done:
		return ErrClosed
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		<-q.outstanding
		return ErrClosed
	}
	q.running.Add(1)
	return nil
}

// Close refuses further commands and waits for those outstanding. It may be called more than once.
func (q *Queue) Close() error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.done)
	}
	q.mu.Unlock()
	q.running.Wait()
	return nil
}
