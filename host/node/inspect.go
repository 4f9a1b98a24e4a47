package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/millrace/millrace/fpga/csd"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/inspection"
)

// Inspect answers a question about a drive that is open here, where nobody else can open it. One that has failed is
// asked too.
func (s *service) Inspect(ctx context.Context, r *apiv1.InspectRequest) (*apiv1.InspectResponse, error) {
	v := s.a.supervisor(r.GetDrive())
	if v == nil {
		return nil, rpcError(s.a.noDrive(r.GetDrive()))
	}
	s.a.mu.Lock()
	d, state := v.drive, v.state
	s.a.mu.Unlock()
	if d == nil || d.Device() == nil {
		return nil, rpcError(fmt.Errorf("drive %s: %w: %s", r.GetDrive(), ErrUnavailable, state))
	}
	answer, err := inspection.Read(ctx, inspection.Kind(r.GetKind()), d.Device(), d.Volume())
	if err != nil {
		return nil, rpcError(fmt.Errorf("drive %s: %w", r.GetDrive(), err))
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return nil, rpcError(err)
	}
	return &apiv1.InspectResponse{Answer: b}, nil
}

// owner is what others are told who find one of the node's drives open: unix sockets first, which take nobody's
// certificate.
func (a *Agent) owner(drive string) *csd.Owner {
	o := &csd.Owner{Name: "node " + a.config.Name, Drive: drive}
	for _, unix := range []bool{true, false} {
		for _, u := range a.reached {
			if strings.HasPrefix(u, "unix:") == unix && len(o.URLs) < 8 {
				o.URLs = append(o.URLs, u)
			}
		}
	}
	return o
}
