package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
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
	j, err := l.findLocked(ctx, req.Id)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	over, err := l.mu.machine.Acknowledge(j.Job, session, req.Epoch, runs, l.s.connections.of(ctx), now)
	if err == nil && !over {
		for _, r := range runs {
			j.steering.Delivered(r.To - r.From)
		}
	}
	l.settleLocked(now)
	dirty := l.mu.machine.Ledger.Pending() > 0
	l.mu.Unlock()
	if err == nil && !over {
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
	j, err := l.findLocked(ctx, req.Id)
	if err != nil {
		return dataset.Token{}, false, err
	}
	var session *ledger.Session
	if len(req.Session) > 0 {
		parsed, err := ledger.ParseSession(req.Session)
		if err != nil {
			return dataset.Token{}, false, err
		}
		session = &parsed
	}
	token, err := l.mu.machine.Checkpoint(j.Job, session)
	var early *machine.NotBegunError
	if errors.As(err, &early) {
		err = connect.NewError(connect.CodeAborted, fmt.Errorf("%w: there is nothing to resume", err))
	}
	return token, l.mu.machine.Ledger.Pending() > 0, err
}
