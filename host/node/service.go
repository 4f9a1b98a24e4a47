package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/partitions"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

// service is Connect's Node service over an agent. A call that it does not have is unimplemented, as from an older node.
type service struct {
	apiv1connect.UnimplementedNodeHandler
	a *Agent
}

var _ apiv1connect.NodeHandler = (*service)(nil)

// interceptor checks who calls, and for which leader.
func (a *Agent) interceptor() connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			if err := a.mayCall(ctx, r); err != nil {
				return nil, rpcError(err)
			}
			return next(ctx, r)
		}
	}
}

func (a *Agent) mayCall(ctx context.Context, r connect.AnyRequest) error {
	roles := mayOperate
	if r.Spec().Procedure == apiv1connect.NodeDescribeProcedure {
		roles = mayLook
	}
	if err := identity.Require(tlsState(ctx), roles...); err != nil {
		return err
	}
	text := r.Header().Get(apiv1.FenceHeader)
	if text == "" {
		return nil
	}
	fence, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %s %.40q: want a number", ErrRequest, apiv1.FenceHeader, text)
	}
	return a.fence.See(fence)
}

func (s *service) Describe(context.Context, *apiv1.DescribeRequest) (*apiv1.DescribeResponse, error) {
	status, err := s.a.status(true)
	if err != nil {
		return nil, rpcError(err)
	}
	return &apiv1.DescribeResponse{Status: status}, nil
}

// digest reads a job's digest.
func digest(b []byte) (dataset.Digest, error) {
	if len(b) != len(dataset.Digest{}) {
		return dataset.Digest{}, fmt.Errorf("%w: job: %d bytes, want %d", ErrRequest, len(b), len(dataset.Digest{}))
	}
	return dataset.Digest(b), nil
}

// planOptions reads a plan's options; numbers are checked by the plan.
func planOptions(p *apiv1.PlanOptions) (dataset.Options, error) {
	o := dataset.Options{Batch: int(p.GetBatch()), Seed: p.GetSeed(), SplitBatches: int(p.GetSplitBatches()), Window: int(p.GetWindow())}
	if t := p.GetTail(); t != "" {
		if err := o.Tail.UnmarshalText([]byte(t)); err != nil {
			return o, fmt.Errorf("%w: plan: %w", ErrRequest, err)
		}
	}
	if t := p.GetShuffle(); t != "" {
		if err := o.Shuffle.UnmarshalText([]byte(t)); err != nil {
			return o, fmt.Errorf("%w: plan: %w", ErrRequest, err)
		}
	}
	return o, nil
}

func (s *service) Prepare(ctx context.Context, r *apiv1.PrepareRequest) (*apiv1.PrepareResponse, error) {
	if err := s.a.prepare(ctx, r); err != nil {
		return nil, rpcError(err)
	}
	return &apiv1.PrepareResponse{}, nil
}

func (a *Agent) prepare(ctx context.Context, q *apiv1.PrepareRequest) error {
	var j api.Job
	var err error
	if j.Digest, err = digest(q.GetJob()); err != nil {
		return err
	}
	if j.Pipeline, err = pipeline.Parse(q.GetPipeline()); err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if j.Manifest, err = dataset.ReadManifest(q.GetManifest()); err != nil {
		return err
	}
	o, err := planOptions(q.GetPlan())
	if err != nil {
		return err
	}
	plan, err := dataset.NewPlan(j.Manifest, o)
	if err != nil {
		return err
	}
	j.Plan = plan.Options()
	a.preparing.Lock()
	defer a.preparing.Unlock()
	jobs := a.manager.Jobs()
	for _, d := range jobs {
		if d == j.Digest {
			return nil
		}
	}
	if len(jobs) >= a.config.Limits.Jobs {
		return fmt.Errorf("%w jobs: %d are prepared", ErrTooMany, len(jobs))
	}
	if err := a.manager.Prepare(ctx, &j); err != nil {
		if name := a.notOpen(); name != "" && errors.Is(err, host.ErrNotHeld) {
			return fmt.Errorf("%w: drive %s is not open, and %w", ErrUnavailable, name, err)
		}
		return err
	}
	a.heartbeat.SendSoon()
	return nil
}

// notOpen names a drive that is not open; "" if all are.
func (a *Agent) notOpen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.drives {
		if v.drive == nil {
			return v.config.Name
		}
	}
	return ""
}

func (s *service) Measure(ctx context.Context, r *apiv1.MeasureRequest) (*apiv1.MeasureResponse, error) {
	job, err := digest(r.GetJob())
	if err != nil {
		return nil, rpcError(err)
	}
	if _, err := s.a.drive(r.GetDrive()); err != nil {
		return nil, rpcError(err)
	}
	rate, kept, err := s.a.manager.Rate(ctx, job, r.GetDrive(), r.GetAgain())
	if err != nil {
		s.a.failed(r.GetDrive(), err)
		return nil, rpcError(err)
	}
	return &apiv1.MeasureResponse{RowsPerSecond: rate.RowsPerSecond, Rows: rate.Rows, ElapsedSeconds: rate.Elapsed.Seconds(), Kept: kept}, nil
}

func (s *service) Report(ctx context.Context, r *apiv1.ReportRequest) (*apiv1.ReportResponse, error) {
	job, err := digest(r.GetJob())
	if err != nil {
		return nil, rpcError(err)
	}
	list, err := s.a.manager.Report(ctx, job)
	if err != nil {
		return nil, rpcError(err)
	}
	resp := &apiv1.ReportResponse{}
	for _, d := range list {
		b, err := json.Marshal(d)
		if err != nil {
			return nil, rpcError(fmt.Errorf("report: %w", err))
		}
		resp.Drives = append(resp.Drives, b)
	}
	return resp, nil
}

func (s *service) Finish(ctx context.Context, r *apiv1.FinishRequest) (*apiv1.FinishResponse, error) {
	job, err := digest(r.GetJob())
	if err != nil {
		return nil, rpcError(err)
	}
	a := s.a
	a.preparing.Lock()
	defer a.preparing.Unlock()
	// What a job lent is released before its memory goes.
	err = a.runs.Finish(job, func() error { return a.manager.Finish(context.WithoutCancel(ctx), job) })
	if err != nil && !errors.Is(err, api.ErrUnknownJob) {
		// The job is forgotten all the same; a drive that is gone cannot take its memory back.
		a.log.Warn("job did not finish well", "digest", short(job), "error", err)
	}
	a.heartbeat.SendSoon()
	return &apiv1.FinishResponse{}, nil
}

func (s *service) Drain(_ context.Context, r *apiv1.DrainRequest) (*apiv1.DrainResponse, error) {
	a, name := s.a, r.GetDrive()
	if name == "" {
		a.setDraining(r.GetDrain())
		return &apiv1.DrainResponse{Running: int32(a.runs.Running(""))}, nil
	}
	v := a.supervisor(name)
	if v == nil {
		return nil, rpcError(a.noDrive(name))
	}
	a.mu.Lock()
	v.drained = r.GetDrain()
	ready := v.state == "ready"
	a.mu.Unlock()
	if ready {
		var why error
		if r.GetDrain() {
			why = fmt.Errorf("drive %s: %w", name, splits.ErrDraining)
		}
		a.runs.SendAway(name, why)
	}
	a.log.Info("drive draining", "drive", name, "to", r.GetDrain())
	a.heartbeat.SendSoon()
	return &apiv1.DrainResponse{Running: int32(a.runs.Running(name))}, nil
}

func (s *service) Rescan(ctx context.Context, _ *apiv1.RescanRequest) (*apiv1.RescanResponse, error) {
	if err := s.a.manager.Rescan(ctx); err != nil {
		return nil, rpcError(err)
	}
	inv, err := s.a.manager.Inventory()
	if err != nil {
		return nil, rpcError(err)
	}
	s.a.heartbeat.SendSoon()
	return &apiv1.RescanResponse{Partitions: int32(len(inv.Partitions))}, nil
}

func (s *service) Copy(ctx context.Context, r *apiv1.CopyRequest) (*apiv1.CopyResponse, error) {
	p := r.GetPartition()
	footer, err := digest(p.GetFooterSha256())
	if err != nil {
		return nil, rpcError(fmt.Errorf("%w: partition: footer_sha256: want 32 bytes", ErrRequest))
	}
	want := dataset.Partition{Name: p.GetName(), Bytes: p.GetBytes(), Rows: p.GetRows(), RowGroups: p.GetRowGroups(), Footer: footer}
	if want.Name == "" || want.Bytes < 0 {
		return nil, rpcError(fmt.Errorf("%w: partition: name and bytes are wanted", ErrRequest))
	}
	n, sum, err := s.a.store.Copy(ctx, r.GetDrive(), partitions.Source{URL: r.GetFromUrl(), Drive: r.GetFromDrive(), Want: want})
	if err != nil {
		return nil, rpcError(err)
	}
	return &apiv1.CopyResponse{Bytes: n, Sha256: sum}, nil
}

// Verify reads a partition whole.
func (s *service) Verify(ctx context.Context, q *apiv1.VerifyRequest) (*apiv1.VerifyResponse, error) {
	r, err := s.a.store.Verify(ctx, q.GetDrive(), q.GetPartition(), q.GetKeptOnly())
	if err != nil {
		return nil, rpcError(err)
	}
	return r, nil
}

// NextMiniBatch has its own binding: GET /v1/minibatch.
func (s *service) NextMiniBatch(context.Context, *apiv1.NextMiniBatchRequest) (*apiv1.NextMiniBatchResponse, error) {
	return nil, connect.NewError(connect.CodeUnimplemented, fmt.Errorf("mini-batches are fetched with GET %s: see millrace.proto", apiv1.MiniBatchPath))
}
