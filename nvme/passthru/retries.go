package passthru

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/millrace/millrace/nvme"
)

// Statuses that the kernel's own driver makes (status code type 3, path related), beside the drive's.
const (
	hostPathError      nvme.Status = 0x370 // no path: the command was not sent
	hostAbortedCommand nvme.Status = 0x371 // the driver gave the command up when it reset the controller
)

// outcome says what to do about a command that came back from the kernel.
type outcome int

const (
	finished outcome = iota // with success, a status of the drive's, or an error that does not go away
	unsent                  // the controller is away for the moment: the drive has not seen the command
	cut                     // the controller was reset under the command: it is not known whether the drive has done it
)

// judgeOutcome reads what the kernel returned: a positive number is a status and never success.
func judgeOutcome(status nvme.Status, err error) outcome {
	switch {
	case errors.Is(err, syscall.EAGAIN): // also called EWOULDBLOCK: the shared device has no path just now
		return unsent
	case errors.Is(err, syscall.EINTR): // the driver cancelled it: its timer ran out, or a reset came
		return cut
	case errors.Is(err, syscall.EFAULT):
		// The memory is ours and pinned, so nothing is wrong with its address. Linux 6.1 says so now and then of io_uring
		// commands that a reset of the controller comes upon.
		return cut
	case err != nil:
		return finished
	case status.Code() == hostPathError:
		return unsent
	case status.Code() == hostAbortedCommand:
		return cut
	}
	return finished
}

// isRepeatable reports whether a command may be done twice. Those of the sets of computation may not: the reset that
// cut one off also took the local memory that it worked on.
func isRepeatable(r request, cmd *nvme.Command, blocks bool) bool {
	return (r == adminRequest || blocks) && cmd.Idempotent(r == adminRequest)
}

// Times between two tries.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = time.Second
)

// patience is how long a command is tried again, from its first failure on.
type patience struct {
	most  time.Duration
	since time.Time
	pause time.Duration
	sleep func(context.Context, time.Duration) error
	now   func() time.Time
}

// awaitNextTry pauses before the next try. The error says that there is none: time is up, or ctx ended.
func (p *patience) awaitNextTry(ctx context.Context) error {
	now := p.now()
	if p.since.IsZero() {
		p.since, p.pause = now, firstPause
	}
	left := p.most - now.Sub(p.since)
	if left <= 0 {
		return fmt.Errorf("the controller did not come back within %s", max(p.most, 0))
	}
	err := p.sleep(ctx, min(p.pause, left))
	p.pause = min(2*p.pause, mostPause)
	return err
}

// sleepContext waits for d or ctx's end.
func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
