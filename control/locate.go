package control

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/guard"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/dataset"
)

// The most sources that a message names.
const (
	maxLocated  = 256  // partitions of a Locate call
	maxPrepared = 1024 // sources of a PrepareRequest
)

// Locate implements the service.
func (s *Server) Locate(ctx context.Context, req *apiv1.LocateRequest) (*apiv1.LocateResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	if len(req.Job) != len(dataset.Digest{}) || len(req.Partitions) == 0 || len(req.Partitions) > maxLocated {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("locate: a job digest of %d bytes and "+
			"%d partitions: want %d and 1 to %d", len(req.Job), len(req.Partitions), len(dataset.Digest{}), maxLocated))
	}
	digest := dataset.Digest(req.Job)
	l.mu.Lock()
	defer l.mu.Unlock()
	g := editionFor(l.mu.jobs, digest, guard.Peer(ctx))
	if g == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("locate: no job that runs has digest %s",
			digest.String()[:12]))
	}
	partitions := make([]dataset.Partition, len(req.Partitions))
	for i, name := range req.Partitions {
		at := g.data.Manifest.Find(name)
		if at < 0 {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("locate: job %s has no partition %s",
				digest.String()[:12], quoteShort(name)))
		}
		partitions[i] = g.data.Manifest.Partitions[at]
	}
	return &apiv1.LocateResponse{Sources: l.mu.fleet.Locate(partitions)}, nil
}

// editionFor finds, by its digest, an edition of a job that has not ended and that the caller's workers may make, or
// returns nil: those of a launcher make jobs of its owner only.
func editionFor(jobs map[string]*job, digest dataset.Digest, caller identity.Identity) *edition {
	for _, j := range jobs {
		if j.Phase().Ended() || caller.Role == identity.Launcher && j.Owner != caller.Owner() {
			continue
		}
		for _, g := range j.preparations() {
			if g.Digest == digest {
				return g
			}
		}
	}
	return nil
}

// sourcesFor lists where the first partitions of an edition can be read, for a node that has workers of any reach. A
// worker asks Locate for the other partitions.
func sourcesFor(f *fleet.Fleet, node string, g *edition) []*apiv1.PartitionSource {
	if !f.Reaches(node) {
		return nil
	}
	partitions := g.data.Manifest.Partitions
	return f.Locate(partitions[:min(len(partitions), maxPrepared)])
}
