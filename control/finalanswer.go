package control

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// finalAnswers keeps the final answers of a former leader from callers. A leader that was replaced and does not know it
// lacks jobs and sessions, and a launcher takes "no job is known" as the end of its run. So before a final answer
// leaves the member, the store confirms the member's term, with one check for all calls that wait for one. If the term
// is over, or the store does not answer, the caller is sent to another member.
type finalAnswers struct{ s *Server }

// WrapUnary implements connect.Interceptor.
func (f finalAnswers) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		l := f.s.leading.Load()
		resp, err := next(ctx, req)
		fencedOff := false
		if err == nil {
			lease, ok := resp.Any().(*apiv1.LeaseResponse)
			fencedOff = ok && lease.UnknownSession
		}
		if fencedOff || isFinal(err) {
			if over := l.confirm(ctx); over != nil {
				return nil, over
			}
		}
		return resp, err
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (f finalAnswers) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		l := f.s.leading.Load()
		err := next(ctx, conn)
		if isFinal(err) {
			if over := l.confirm(ctx); over != nil {
				return over
			}
		}
		return err
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (f finalAnswers) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// confirm returns the error NotLeader unless the term holds. The leader is nil if the member did not lead when the call
// came.
func (l *leader) confirm(ctx context.Context) error {
	if l == nil {
		return nil
	}
	err := l.term.Confirm(ctx)
	if err == nil {
		return nil
	}
	l.noteFenced(err)
	l.logger.Info("a call that would have ended is sent to another member", "error", err)
	return l.s.notLeader()
}

// isFinal reports whether clients take an error as the answer of every member (trainmgr/remote).
func isFinal(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return false
	case connect.CodeResourceExhausted:
		return hasDetail(err, &apiv1.LimitReached{})
	case connect.CodeFailedPrecondition:
		return !hasDetail(err, &apiv1.NotLeader{})
	}
	return true
}

// hasDetail reports whether an error carries a detail of a message's type.
func hasDetail(err error, message proto.Message) bool {
	var wired *connect.Error
	if errors.As(err, &wired) {
		for _, d := range wired.Details() {
			if d.Type() == string(proto.MessageName(message)) {
				return true
			}
		}
	}
	return false
}
