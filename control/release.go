package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/control/ledger"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// maxReason bounds the reason of a Release call, in bytes.
const maxReason = 1 << 12

// release is a Release call: a rank gives leases back, and may report that it is through with the job, or that its
// launcher ends.
type release struct {
	session ledger.Session
	leases  []uint64
	reason  ledger.Reason
	why     string
	through bool // the rank's trainer goes back to no earlier checkpoint
	leaves  bool // the rank's launcher ends
}

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
	if err == nil && r.through {
		err = l.storeState(ctx, j) // a later leader does not wait for the rank
		j.poke()
	}
	if err != nil {
		return nil, l.wireError(err)
	}
	return &apiv1.ReleaseResponse{}, nil
}

// readRelease checks a Release call. The error wraps ledger.ErrArgument or ledger.ErrSession.
func readRelease(req *apiv1.ReleaseRequest) (r release, err error) {
	if len(req.Leases) > maxHeld || len(req.Reason) > maxReason {
		return r, fmt.Errorf("%w: %d leases for a reason of %d bytes, at most %d and %d", ledger.ErrArgument,
			len(req.Leases), len(req.Reason), maxHeld, maxReason)
	}
	r.leases = req.Leases
	if r.session, err = ledger.ParseSession(req.Session); err != nil {
		return r, err
	}
	kind, why, _ := strings.Cut(req.Reason, ":")
	r.why = strings.ToValidUTF8(strings.TrimSpace(why), "?")
	switch kind {
	case "stop", "":
	case "done":
		r.through = true
	case "detach":
		r.leaves = true
	case "node":
		r.reason = ledger.NodeFailed
	case "data":
		r.reason = ledger.DataFailed
	default:
		return r, fmt.Errorf("%w: reason %s: want stop, done, detach, or node or data with what went wrong behind a "+
			"colon", ledger.ErrArgument, quoteShort(req.Reason))
	}
	return r, nil
}

// release takes leases back. A job that has ended takes none.
func (l *leader) release(ctx context.Context, id string, r release) (*job, error) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.find(ctx, id)
	if err != nil || j.Phase().Ended() {
		return j, err
	}
	if err := l.ledger.Release(j.ID, r.session, r.leases, r.reason, r.why, now); err != nil {
		return j, err
	}
	rank := r.session.Rank
	j.Called(rank, l.s.connections.of(ctx), now)
	if r.through {
		j.Through(rank)
	}
	if r.leaves {
		j.Left(rank, now)
	}
	l.settle(now)
	return j, nil
}
