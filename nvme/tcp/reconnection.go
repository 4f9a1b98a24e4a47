package tcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/nvme"
)

// supervise makes a new association whenever one is lost, until the host is closed or there is no hope.
func (h *Host) supervise(l *link) {
	defer close(h.done)
	for {
		<-l.dead
		h.mu.Lock()
		h.link.Store(nil)
		closed := h.closed
		h.mu.Unlock()
		if closed {
			return
		}
		h.log.Warn("connection lost", "error", l.endCause())
		next, err := h.reconnect(l.endCause())
		h.mu.Lock()
		if err != nil || h.closed {
			if err == nil {
				next.endWithCause(nvme.ErrClosed)
			}
			h.failed = err
			h.wakeWaiters()
			h.mu.Unlock()
			if next != nil {
				<-next.dead
			} else if h.ctx.Err() == nil {
				h.log.Error("connection given up", "error", err)
			}
			return
		}
		h.reconnects.Add(1) // before a command can run there
		h.link.Store(next)
		h.wakeWaiters()
		h.mu.Unlock()
		h.log.Info("connected again", "cntlid", next.cntlid)
		l = next
	}
}

// reconnect tries until it succeeds, gives up, or the host is closed. cause is the reason for which the last connection
// was lost.
func (h *Host) reconnect(cause error) (*link, error) {
	if h.opt.GiveUp < 0 {
		return nil, fmt.Errorf("%w: %w", ErrLost, cause)
	}
	begin := time.Now()
	for delay := h.opt.FirstDelay; ; delay = min(2*delay, h.opt.LongestDelay) {
		select {
		case <-time.After(delay):
		case <-h.ctx.Done():
			return nil, nvme.ErrClosed
		}
		l, err := h.newAssociation(h.ctx)
		if err == nil {
			return l, nil
		}
		cause = err
		h.log.Debug("connect again", "error", err)
		if errors.Is(err, errOtherDrive) || errors.Is(err, ErrAuthentication) || errors.Is(err, ErrRefused) ||
			time.Since(begin) > h.opt.GiveUp {
			return nil, fmt.Errorf("the drive did not come back within %v: %w", time.Since(begin).Round(time.Second), cause)
		}
	}
}

// ErrRefused says that the drive refused the association and will do so again: it does not know the subsystem, or does
// not serve the host.
var ErrRefused = errors.New("the drive refused the host")

// errOtherDrive says that a different drive answers under the name.
var errOtherDrive = errors.New("another drive answers under this name now")

// lostError says why the connection was lost while an association was made. It is an ErrLost.
type lostError struct{ while, cause error }

func (e *lostError) Error() string   { return fmt.Sprintf("%v: %v", e.while, e.cause) }
func (e *lostError) Unwrap() []error { return []error{e.while, e.cause, ErrLost} }

// newAssociation makes an association.
func (h *Host) newAssociation(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, h.opt.ConnectTimeout)
	defer cancel()
	l := newLink(h)
	if err := l.openAssociation(ctx); err != nil {
		if cause := l.endCause(); cause != nil && errors.Is(err, errLinkLost) {
			err = &lostError{while: err, cause: cause}
		}
		l.endWithCause(err)
		l.abandon()
		<-l.dead
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return nil, err
	}
	if was := h.adoptLink(l); was != l.serial {
		l.endWithCause(errOtherDrive)
		<-l.dead
		return nil, fmt.Errorf("%w: serial number %q where %q was", errOtherDrive, l.serial, was)
	}
	return l, nil
}

// adoptLink numbers a link of the drive that the host knows. The first link's drive is the one. It returns the serial
// number of the drive that the host knows.
func (h *Host) adoptLink(l *link) (serial string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.serial != "" && h.serial != l.serial {
		return h.serial
	}
	h.serial = l.serial
	h.made++
	l.number = h.made
	return l.serial
}
