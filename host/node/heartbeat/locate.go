package heartbeat

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/sdk/dataset"
)

// maxLocated bounds the partitions of one question, as millrace.proto says.
const maxLocated = 256

// Locate asks the control plane where partitions of a job can be read now. It begins with the member that accepted the
// last heartbeat, and goes on to the others while a member does not lead.
func (s *Sender) Locate(ctx context.Context, job dataset.Digest, partitions []string) ([]api.Source, error) {
	if len(partitions) == 0 || len(partitions) > maxLocated {
		return nil, fmt.Errorf("locate %d partitions: want 1 to %d", len(partitions), maxLocated)
	}
	members := s.Members()
	var errs []error
	for _, url := range members {
		sources, err := s.locateAt(ctx, url, job, partitions)
		if err == nil {
			return sources, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", url, err))
		if code := connect.CodeOf(err); ctx.Err() != nil || code == connect.CodeNotFound || leaderDecides(err, code) {
			break
		}
	}
	if len(errs) == 0 {
		return nil, errors.New("no control plane is known")
	}
	return nil, errors.Join(errs...)
}

// Members returns the base URLs of the control plane's members, the one that accepted the last heartbeat first. It may
// be called from any goroutine.
func (s *Sender) Members() []string {
	members, _ := s.known.Load().([]string)
	return members
}

// leaderDecides reports whether an error is the answer of the leader itself.
func leaderDecides(err error, code connect.Code) bool {
	var other *notLeaderError
	return !errors.As(notLeader(err), &other) && (leaderRefuses(code) || code == connect.CodeInvalidArgument)
}

// locateAt asks one member.
func (s *Sender) locateAt(ctx context.Context, url string, job dataset.Digest,
	partitions []string) ([]api.Source, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	client := apiv1connect.NewControlClient(s.o.Client, url, connect.WithReadMaxBytes(maxAnswer))
	answer, err := client.Locate(ctx, &apiv1.LocateRequest{Job: job[:], Partitions: partitions})
	if err != nil {
		return nil, err
	}
	if n := len(answer.GetSources()); n != len(partitions) {
		return nil, fmt.Errorf("the answer has %d sources, %d were asked for", n, len(partitions))
	}
	return apiv1.ReadSources(answer.GetSources()), nil
}
