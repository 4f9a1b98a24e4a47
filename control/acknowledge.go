package control

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/record"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// Acknowledge implements the service.
func (s *Server) Acknowledge(ctx context.Context, req *apiv1.AcknowledgeRequest) (*apiv1.AcknowledgeResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if len(req.Numbers) > maxRanges {
		return nil, l.wireError(fmt.Errorf("%w: %d ranges of numbers, at most %d", ledger.ErrArgument, len(req.Numbers),
			maxRanges))
	}
	session, err := ledger.ParseSession(req.Session)
	if err != nil {
		return nil, l.wireError(err)
	}
	runs := make([]dataset.Range, len(req.Numbers))
	for i, n := range req.Numbers {
		runs[i] = dataset.Range{From: n.GetFrom(), To: n.GetTo()}
	}
	now := time.Now()
	l.mu.Lock()
	j, err := l.find(ctx, req.Id)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	if phase, words := j.Phase(), j.Words(); phase.Ended() {
		l.mu.Unlock()
		if phase == record.Done { // these numbers were acknowledged earlier, and the answer was lost
			return &apiv1.AcknowledgeResponse{Fence: l.term.Fence()}, nil
		}
		return nil, connect.NewError(connect.CodeAborted, fmt.Errorf("job %s has ended: %s", j.ID, words))
	}
	err = l.ledger.Acknowledge(j.ID, session, req.Epoch, runs, now)
	if err == nil {
		j.Called(session.Rank, l.s.connections.of(ctx), now)
		for _, r := range runs {
			j.rows += float64(r.To-r.From) * float64(j.plan.Batch)
		}
	}
	l.settle(now)
	dirty := l.ledger.Pending() > 0
	l.mu.Unlock()
	if err == nil {
		err = l.sync(ctx, dirty)
	}
	if err != nil {
		return nil, l.wireError(fmt.Errorf("acknowledge to %s: %w", j.ID, err))
	}
	return &apiv1.AcknowledgeResponse{Fence: l.term.Fence()}, nil
}

// Checkpoint implements the service.
func (s *Server) Checkpoint(ctx context.Context, req *apiv1.CheckpointRequest) (*apiv1.CheckpointResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	token, dirty, err := l.checkpoint(ctx, req)
	if err == nil {
		// The token holds only acknowledgements that are durable.
		err = l.sync(ctx, dirty)
	}
	if err != nil {
		return nil, l.wireError(err)
	}
	b, err := token.MarshalBinary()
	if err != nil {
		return nil, l.wireError(err)
	}
	return &apiv1.CheckpointResponse{Token: record.WrapToken(l.key, b)}, nil
}

func (l *leader) checkpoint(ctx context.Context, req *apiv1.CheckpointRequest) (dataset.Token, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.find(ctx, req.Id)
	if err != nil {
		return dataset.Token{}, false, err
	}
	if st := j.State(); st.Phase == record.Abandoned && len(st.Token) > 0 && len(req.Session) == 0 {
		var token dataset.Token
		err := token.UnmarshalBinary(st.Token)
		return token, false, err
	}
	if !j.Phase().Begun() {
		return dataset.Token{}, false, connect.NewError(connect.CodeAborted,
			fmt.Errorf("job %s is %s: there is nothing to resume", j.ID, j.Words()))
	}
	var token dataset.Token
	if len(req.Session) == 0 {
		token, err = l.ledger.Token(j.ID)
	} else {
		var session ledger.Session
		if session, err = ledger.ParseSession(req.Session); err == nil {
			if r := j.Rank(session.Rank); r != nil && r.FencedOff(session) {
				return token, false, ledger.ErrSession
			}
			token, err = l.ledger.RankToken(j.ID, session.Rank)
		}
	}
	return token, l.ledger.Pending() > 0, err
}
