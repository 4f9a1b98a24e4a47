package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/control/guard"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// ListJobs implements the service. Running jobs come first, then ended jobs, in the reverse order of their ends.
func (s *Server) ListJobs(ctx context.Context, _ *apiv1.ListJobsRequest) (*apiv1.ListJobsResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	jobs := make([]*job, 0, len(l.mu.jobs))
	for _, j := range l.mu.jobs {
		if guard.MayUse(ctx, j.Owner) == nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int {
		switch {
		case a.Phase().Ended() != b.Phase().Ended():
			if b.Phase().Ended() {
				return -1
			}
			return 1
		case !a.State().Ended.Equal(b.State().Ended):
			return b.State().Ended.Compare(a.State().Ended)
		}
		return strings.Compare(a.ID, b.ID)
	})
	resp := &apiv1.ListJobsResponse{}
	for _, j := range jobs {
		st := l.statusLocked(j, time.Now())
		st.Spec = proto.CloneOf(st.Spec)
		st.Spec.Pipeline, st.Spec.Resume = nil, nil // they are as long as the rest of the status
		resp.Jobs = append(resp.Jobs, st)
	}
	return resp, nil
}

// GetJob implements the service.
func (s *Server) GetJob(ctx context.Context, req *apiv1.GetJobRequest) (*apiv1.GetJobResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	j, err := l.findLocked(ctx, req.Id)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	status := l.statusLocked(j, time.Now())
	var keys []tensor.Key
	var nodes []string // that are prepared for the edition of the status
	if g := j.latest(); g != nil {
		keys = g.schema.Keys
	}
	l.mu.fleet.Live(func(s *apiv1.NodeStatus) {
		if len(status.Digest) == len(dataset.Digest{}) && l.mu.upkeep.IsPrepared(s.Name, dataset.Digest(status.Digest)) {
			nodes = append(nodes, s.Name)
		}
	})
	l.mu.Unlock()
	l.addLookups(ctx, status, keys, nodes)
	return &apiv1.GetJobResponse{Job: status}, nil
}

// watchEvery is the least time between two messages of WatchJob.
const watchEvery = time.Second

// WatchJob implements the service.
func (s *Server) WatchJob(ctx context.Context, req *apiv1.WatchJobRequest,
	stream *connect.ServerStream[apiv1.GetJobResponse]) error {
	l, err := s.leader()
	if err != nil {
		return err
	}
	var last *apiv1.JobStatus
	for {
		l.mu.Lock()
		j, err := l.findLocked(ctx, req.Id)
		if err != nil {
			l.mu.Unlock()
			return err
		}
		req.Id = j.ID // another job may have its name later
		st, ended, changed := l.statusLocked(j, time.Now()), j.Phase().Ended(), j.changed.Changed()
		l.mu.Unlock()
		if last == nil || !proto.Equal(withoutContact(last), withoutContact(st)) {
			if err := stream.Send(&apiv1.GetJobResponse{Job: st}); err != nil {
				return err
			}
			last = st
		}
		if ended {
			return nil
		}
		t := time.NewTimer(watchEvery)
		select {
		case <-t.C:
		case <-changed:
			t.Stop()
			if wait.Sleep(ctx, watchEvery/10) != nil { // phases that follow each other immediately make one message
				return ctx.Err()
			}
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-l.ctx.Done():
			t.Stop()
			return s.notLeader()
		}
	}
}

// withoutContact returns a status without the times of the launchers' last calls, which change with every call.
func withoutContact(st *apiv1.JobStatus) *apiv1.JobStatus {
	st = proto.CloneOf(st)
	for _, r := range st.Ranks {
		r.LastContactSeconds = 0
	}
	return st
}

// CancelJob implements the service. Cancelling a job that has ended changes nothing.
func (s *Server) CancelJob(ctx context.Context, req *apiv1.CancelJobRequest) (*apiv1.CancelJobResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	j, err := l.findLocked(ctx, req.Id)
	if err != nil {
		l.mu.Unlock()
		return nil, err
	}
	if err := guard.MayEnd(ctx, j.Owner); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	now := time.Now()
	j.Cancel(now)
	l.settleLocked(now)
	l.mu.Unlock()
	if err := l.storeState(ctx, j); err != nil {
		return nil, l.wireError(err)
	}
	return &apiv1.CancelJobResponse{}, nil
}

// Decisions implements the service.
func (s *Server) Decisions(ctx context.Context, req *apiv1.DecisionsRequest) (*apiv1.DecisionsResponse, error) {
	l, err := s.leader()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.findLocked(ctx, req.Id)
	if err != nil {
		return nil, err
	}
	resp := &apiv1.DecisionsResponse{}
	for _, d := range j.decisions {
		resp.Decisions = append(resp.Decisions, string(d))
	}
	return resp, nil
}
