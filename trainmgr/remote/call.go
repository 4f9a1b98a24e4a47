package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/remote/protocol"
)

// callTime is how long one member gets to answer a call that does not wait for an event.
const callTime = 5 * time.Second

// jittered returns a pause of which half is random.
func jittered(pause time.Duration) time.Duration { return pause/2 + rand.N(pause/2) }

// faultOf returns the reaction to an error, and the base URL of the leader that it names. An error that did not come
// over the wire is the network's.
func (c *Client) faultOf(err error) (fault protocol.CallFault, leader string) {
	if url, ok := namedLeader(err); ok {
		return protocol.NotLeader, c.callable(url)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return protocol.AskOther, "" // the attempt took too long; call checks the caller's context before
	}
	switch code := connect.CodeOf(err); {
	case code == connect.CodeUnavailable || code == connect.CodeDeadlineExceeded || code == connect.CodeCanceled:
		return protocol.AskOther, ""
	case code == connect.CodeResourceExhausted:
		if _, lasts := detailOf[*apiv1.LimitReached](err); lasts {
			return protocol.FinalAnswer, ""
		}
		return protocol.AskLater, ""
	case !connect.IsWireError(err) && (code == connect.CodeUnknown || code == connect.CodeInternal):
		return protocol.AskOther, ""
	}
	return protocol.FinalAnswer, ""
}

// detailOf returns the detail of a type that the control plane's error carries.
func detailOf[D proto.Message](err error) (d D, ok bool) {
	var refused *connect.Error
	if !errors.As(err, &refused) {
		return d, false
	}
	for _, detail := range refused.Details() {
		if value, err := detail.Value(); err == nil {
			if d, ok = value.(D); ok {
				return d, true
			}
		}
	}
	return d, false
}

// namedLeader returns the leader's URL if the error says that another member leads. The URL may be empty.
func namedLeader(err error) (url string, ok bool) {
	if connect.CodeOf(err) != connect.CodeFailedPrecondition {
		return "", false
	}
	notLeader, ok := detailOf[*apiv1.NotLeader](err)
	return notLeader.GetLeaderUrl(), ok
}

// withSentinel adds to an error of the control plane the error that callers look for with errors.Is.
func withSentinel(err error) error {
	switch connect.CodeOf(err) {
	case connect.CodeNotFound:
		return fmt.Errorf("%w: %w", ErrNoJob, err)
	case connect.CodeAborted:
		if strings.Contains(err.Error(), apiv1.FencedOff) {
			return fmt.Errorf("%w: %w", ErrFenced, err)
		}
		if strings.Contains(err.Error(), "abandoned: ") {
			return fmt.Errorf("%w: %w: %w", ErrEnded, ErrAbandoned, err)
		}
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	if consumed := partlyConsumed(err); consumed != nil {
		return consumed
	}
	text := err.Error()
	switch { // the wire carries the text of an error that the control plane wrapped
	case strings.Contains(text, dataset.ErrOtherJob.Error()):
		return fmt.Errorf("%w: %w", dataset.ErrOtherJob, err)
	case strings.Contains(text, dataset.ErrToken.Error()):
		return fmt.Errorf("%w: %w", dataset.ErrToken, err)
	}
	return err
}

// preferredMember returns the base URL of the member to ask first.
func (c *Client) preferredMember() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members.Preferred()
}

// callable returns the base URL of a leader that a member has named; empty if it named none, or one that cannot be
// called.
func (c *Client) callable(leader string) string {
	if leader == "" {
		return ""
	}
	base, err := identity.BaseURL(leader)
	if err != nil {
		c.options.Logger.Warn("a member names a leader that cannot be called", "url", leader, "error", err)
		return ""
	}
	return base
}

// noteFailure notes that an attempt at a member failed, and returns what follows.
func (c *Client) noteFailure(attempts *protocol.Attempts, member string, fault protocol.CallFault,
	leader string) protocol.Retry {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.members.Preferred()
	retry := attempts.Failed(&c.members, member, fault, leader, time.Now())
	if leader != "" && leader != before {
		c.options.Logger.Info("follow the leader", "url", leader)
	}
	return retry
}

// preferNextMember prefers the member after the preferred one.
func (c *Client) preferNextMember() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members.PreferNext(c.members.Preferred())
}

// memberClient returns the client of a member.
func (c *Client) memberClient(base string) controlClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.clients[base]
	if !ok {
		m = apiv1connect.NewControlClient(c.http, base, connect.WithReadMaxBytes(maxMessage))
		c.clients[base] = m
	}
	return m
}

// controlClient makes the calls of one member.
type controlClient = apiv1connect.ControlClient

// method is a call of one request and one response, as in controlClient.GetJob.
type method[Q, R any] = func(controlClient, context.Context, *Q) (*R, error)

// invoke calls a method of the leader. See call.
func invoke[Q, R any](ctx context.Context, c *Client, attemptTime time.Duration, m method[Q, R],
	request *Q) (*R, error) {
	return call(ctx, c, attemptTime, func(ctx context.Context, member controlClient) (*R, error) {
		return m(member, ctx, request)
	})
}

// call asks the leader, and goes on asking for as long as the client's patience. attemptTime bounds each attempt; 0
// means no bound, for streams.
func call[R any](ctx context.Context, c *Client, attemptTime time.Duration,
	f func(context.Context, controlClient) (R, error),
) (R, error) {
	var (
		none      R
		attempts  = protocol.BeginAttempts(time.Now())
		diagnoses = map[string]error{}
	)
	for {
		base := c.preferredMember()
		resp, err := attempt(ctx, attemptTime, c.memberClient(base), f)
		if err == nil {
			c.noteAnswer()
			return resp, nil
		}
		if ctx.Err() != nil {
			return none, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		if err := c.misconfigured(ctx, base, err, diagnoses); err != nil {
			return none, err
		}
		fault, leader := c.faultOf(err)
		retry := c.noteFailure(&attempts, base, fault, leader)
		if retry.Never {
			asked := fmt.Errorf("asked %s for %v: %w", strings.Join(c.options.Control, ", "),
				retry.Waited.Round(time.Millisecond), err)
			switch fault {
			case protocol.FinalAnswer:
				return none, withSentinel(err)
			case protocol.AskLater: // the leader answered each time
				return none, asked
			}
			return none, fmt.Errorf("%w: %w", ErrUnreachable, asked)
		}
		if retry.Pause == 0 { // a member named the leader
			continue
		}
		c.options.Logger.Debug("ask the control plane again", "error", err, "waited", retry.Waited)
		if ended := wait.Sleep(ctx, jittered(retry.Pause)); ended != nil {
			return none, fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// noteAnswer notes that a member of a control plane has answered.
func (c *Client) noteAnswer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members.NoteAnswer()
}

// misconfigured returns an error if no member has ever answered and the address or the identity of each configured
// member is wrong, so that further attempts would not help. diagnoses holds, by base URL, the faults found so far.
func (c *Client) misconfigured(ctx context.Context, base string, err error, diagnoses map[string]error) error {
	if connect.IsWireError(err) { // a server answered; with these codes it may be no control plane
		switch connect.CodeOf(err) {
		case connect.CodeInternal, connect.CodeUnknown, connect.CodeUnavailable, connect.CodeUnimplemented:
		default:
			c.noteAnswer()
		}
	}
	c.mu.Lock()
	answered := c.members.Answered()
	c.mu.Unlock()
	if answered {
		return nil
	}
	diagnosis := identity.Diagnose(ctx, base, c.options.Identity)
	if mismatch := (*identity.MismatchError)(nil); !errors.As(diagnosis, &mismatch) {
		diagnosis = nil
	}
	diagnoses[base] = diagnosis
	for _, member := range c.members.Configured() {
		if diagnoses[member] == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, diagnoses[c.members.Configured()[0]])
}

// attempt makes one call of one member.
func attempt[R any](ctx context.Context, limit time.Duration, member controlClient,
	f func(context.Context, controlClient) (R, error),
) (R, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return f(ctx, member)
}
