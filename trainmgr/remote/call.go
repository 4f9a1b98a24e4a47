package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/dataset"
)

// callTime is how long one member gets to answer a call that waits for nothing.
const callTime = 5 * time.Second

// Pauses between attempts: doubled each time, half of it at random, so that the ranks of a job do not come back all at once.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// severity says what to do about an error of a call.
type severity uint8

const (
	fatal     severity = iota // the answer will be the same
	elsewhere                 // ask another member
	later                     // ask the same one again
)

// kind sorts errors. What did not come over the wire is the network's.
func kind(err error) severity {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return elsewhere // the attempt's deadline; the caller's is looked at apart
	}
	switch code := connect.CodeOf(err); {
	case code == connect.CodeUnavailable || code == connect.CodeDeadlineExceeded || code == connect.CodeCanceled:
		return elsewhere
	case code == connect.CodeResourceExhausted:
		return later
	case !connect.IsWireError(err) && (code == connect.CodeUnknown || code == connect.CodeInternal):
		return elsewhere
	}
	return fatal
}

// notLeader returns the leader's URL if the error says that another member leads; it may be empty.
func notLeader(err error) (url string, ok bool) {
	var ce *connect.Error
	if !errors.As(err, &ce) || ce.Code() != connect.CodeFailedPrecondition {
		return "", false
	}
	for _, d := range ce.Details() {
		v, err := d.Value()
		if err != nil {
			continue
		}
		if n, ok := v.(*apiv1.NotLeader); ok {
			return n.LeaderUrl, true
		}
	}
	return "", false
}

// named gives an error of the control plane the name that callers look for.
func named(err error) error {
	switch connect.CodeOf(err) {
	case connect.CodeNotFound:
		return fmt.Errorf("%w: %w", ErrNoJob, err)
	case connect.CodeAborted:
		if strings.Contains(err.Error(), "session") {
			return fmt.Errorf("%w: %w", ErrFenced, err)
		}
		if strings.Contains(err.Error(), "abandoned: ") {
			return fmt.Errorf("%w: %w: %w", ErrEnded, ErrAbandoned, err)
		}
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	if p := partlyConsumed(err); p != nil {
		return p
	}
	msg := err.Error()
	switch { // what the control plane wrapped when it refused is only words by now
	case strings.Contains(msg, dataset.ErrOtherJob.Error()):
		return fmt.Errorf("%w: %w", dataset.ErrOtherJob, err)
	case strings.Contains(msg, dataset.ErrToken.Error()):
		return fmt.Errorf("%w: %w", dataset.ErrToken, err)
	}
	return err
}

// first returns the member to ask first.
func (c *Client) first() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// moveOn makes the member after one that did not answer the first to ask, unless somebody has already.
func (c *Client) moveOn(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != from {
		return
	}
	c.at = c.order[(slices.Index(c.order, from)+1)%len(c.order)] // of a leader that was only named, Index is -1
}

// follow makes a leader that was named the first to ask.
func (c *Client) follow(raw string) bool {
	base, err := identity.BaseURL(raw)
	if err != nil {
		c.o.Logger.Warn("a member names a leader that cannot be called", "url", raw, "error", err)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at != base {
		c.o.Logger.Info("follow the leader", "url", raw)
	}
	c.at = base
	return true
}

// member returns the client of a member.
func (c *Client) member(base string) apiv1connect.ControlClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.members[base]
	if !ok {
		m = apiv1connect.NewControlClient(c.http, base, connect.WithReadMaxBytes(maxMessage))
		c.members[base] = m
	}
	return m
}

// call asks the leader, wherever it is, as long as the client has patience. Each attempt gets so much time; 0 means no
// bound, for streams.
func call[R any](ctx context.Context, c *Client, each time.Duration, f func(context.Context, apiv1connect.ControlClient) (R, error)) (R, error) {
	var (
		none    R
		begin   = time.Now()
		pause   = firstPause
		follows = 0
		wrong   = map[string]error{} // by base URL, of members that were looked at
	)
	for {
		base := c.first()
		resp, err := attempt(ctx, each, c.member(base), f)
		if err == nil {
			c.meet()
			return resp, nil
		}
		if ctx.Err() != nil {
			return none, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if err := c.hopeless(ctx, base, err, wrong); err != nil {
			return none, err
		}
		if url, ok := notLeader(err); ok {
			if url != "" && c.follow(url) {
				if follows++; follows <= 3 {
					continue
				}
			} else {
				c.moveOn(base)
			}
		} else {
			switch kind(err) {
			case fatal:
				return none, named(err)
			case elsewhere:
				c.moveOn(base)
			}
		}
		follows = 0
		waited := time.Since(begin)
		if waited+pause > c.patience() {
			return none, fmt.Errorf("%w: asked %s for %v: %w", ErrUnreachable, strings.Join(c.o.Control, ", "), waited.Round(time.Millisecond), err)
		}
		c.o.Logger.Debug("ask the control plane again", "error", err, "waited", waited)
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return none, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		pause = min(2*pause, lastPause)
	}
}

// meet notes that a member of a control plane has answered: from now on a failure is the network's or the member's, not
// the address's.
func (c *Client) meet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met = true
}

// patience is how long a call goes on asking.
func (c *Client) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.met {
		return c.o.Patience
	}
	return min(c.o.Patience, c.o.Contact)
}

// hopeless returns an error if no member ever answered and the address or the identity is wrong for each of them, so
// that to ask again would not help.
func (c *Client) hopeless(ctx context.Context, base string, err error, wrong map[string]error) error {
	if connect.IsWireError(err) { // somebody answered; whether it was a control plane the code says
		switch connect.CodeOf(err) {
		case connect.CodeInternal, connect.CodeUnknown, connect.CodeUnavailable, connect.CodeUnimplemented:
		default:
			c.meet()
		}
	}
	c.mu.Lock()
	met := c.met
	c.mu.Unlock()
	if met {
		return nil
	}
	found := identity.Diagnose(ctx, base, c.o.Identity)
	if mismatch := (*identity.MismatchError)(nil); !errors.As(found, &mismatch) {
		found = nil
	}
	wrong[base] = found
	for _, b := range c.order {
		if wrong[b] == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, wrong[c.order[0]])
}

func attempt[R any](ctx context.Context, each time.Duration, m apiv1connect.ControlClient, f func(context.Context, apiv1connect.ControlClient) (R, error)) (R, error) {
	if each > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, each)
		defer cancel()
	}
	return f(ctx, m)
}
