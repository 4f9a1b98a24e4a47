package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/control/ledger"
	"github.com/millrace/millrace/control/machine"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// maxReason bounds the reason of a Release call, in bytes.
const maxReason = 1 << 12

// Release implements the service.
func (s *Server) Release(ctx context.Context, req *apiv1.ReleaseRequest) (*apiv1.ReleaseResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	r, err := readRelease(req)
	if err != nil {
		return nil, l.wireError(err)
	}
	j, err := l.release(ctx, req.Id, r)
	if err == nil && r.Through {
		err = l.storeState(ctx, j) // a later leader does not wait for the rank
		j.poke()
	}
	if err != nil {
		return nil, l.wireError(err)
	}
	return &apiv1.ReleaseResponse{}, nil
}

// readRelease checks a Release call. The error wraps ledger.ErrArgument or ledger.ErrSession.
func readRelease(req *apiv1.ReleaseRequest) (r machine.Release, err error) {
	if len(req.Leases) > maxHeld || len(req.Reason) > maxReason {
		return r, fmt.Errorf("%w: %d leases for a reason of %d bytes, at most %d and %d", ledger.ErrArgument,
			len(req.Leases), len(req.Reason), maxHeld, maxReason)
	}
	r.Leases = req.Leases
	if r.Session, err = ledger.ParseSession(req.Session); err != nil {
		return r, err
	}
	kind, why, _ := strings.Cut(req.Reason, ":")
	r.Why = strings.ToValidUTF8(strings.TrimSpace(why), "?")
	switch kind {
	case "stop", "":
	case "done":
		r.Through = true
	case "detach":
		r.Leaves = true
	case "node":
		r.Reason = ledger.NodeFailed
	case "data":
		r.Reason = ledger.DataFailed
	default:
		return r, fmt.Errorf("%w: reason %s: want stop, done, detach, or node or data with what went wrong behind a "+
			"colon", ledger.ErrArgument, quoteShort(req.Reason))
	}
	return r, nil
}

// release takes leases back.
func (l *leader) release(ctx context.Context, id string, r machine.Release) (j *job, err error) {
	r.Connection = l.s.connections.of(ctx)
	l.happen(func(now time.Time) {
		if j, err = l.findLocked(ctx, id); err == nil {
			err = l.mu.machine.Release(j.Job, r, now)
		}
	})
	return j, err
}
