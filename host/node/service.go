package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/inspection"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/host/node/heartbeat"
	"github.com/millrace/millrace/host/node/partitions"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

// service is Connect's Node service over the node's parts. It has every call of the service.
type service struct {
	manager  *host.Manager
	splits   *splits.Table
	drives   *drives.Set
	store    *partitions.Store
	fence    *heartbeat.Fence
	drain    *drainSwitch
	status   *statusReader
	changed  func() // tells the control plane
	jobLimit int    // jobs prepared at once
	log      *slog.Logger

	vocabularies *jobVocabularies
	modules      *jobModules
	selections   *nodeSelections

	preparing sync.Mutex // held while a job is prepared or finished
}

var _ apiv1connect.NodeHandler = (*service)(nil)

// interceptor checks every call, and gives its error a code.
func (s *service) interceptor() connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			if err := s.checkCaller(ctx, r); err != nil {
				return nil, errorcode.RPC(err)
			}
			response, err := next(ctx, r)
			return response, errorcode.RPC(err)
		}
	}
}

// checkCaller checks the caller's role, and the fence of the leader in whose name it calls.
func (s *service) checkCaller(ctx context.Context, r connect.AnyRequest) error {
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
		return fmt.Errorf("%w: %s %.40q: want a number", errorcode.ErrRequest, apiv1.FenceHeader, text)
	}
	return s.fence.See(fence)
}

// Describe returns the node's status with its partitions and schemas.
func (s *service) Describe(context.Context, *apiv1.DescribeRequest) (*apiv1.DescribeResponse, error) {
	status, err := s.status.read(true)
	if err != nil {
		return nil, err
	}
	return &apiv1.DescribeResponse{Status: status}, nil
}

// readDigest reads a job's digest.
func readDigest(b []byte) (dataset.Digest, error) {
	if len(b) != len(dataset.Digest{}) {
		return dataset.Digest{},
			fmt.Errorf("%w: job: %d bytes, want %d", errorcode.ErrRequest, len(b), len(dataset.Digest{}))
	}
	return dataset.Digest(b), nil
}

// readJob reads the job of a request.
func readJob(r *apiv1.PrepareRequest) (*api.Job, error) {
	var j api.Job
	var err error
	if j.Digest, err = readDigest(r.GetJob()); err != nil {
		return nil, err
	}
	if j.Pipeline, err = pipeline.Parse(r.GetPipeline()); err != nil {
		return nil, fmt.Errorf("%w: %w", errorcode.ErrRequest, err)
	}
	if j.Manifest, err = dataset.ReadManifest(r.GetManifest()); err != nil {
		return nil, err
	}
	o, err := apiv1.ReadPlan(r.GetPlan())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errorcode.ErrRequest, err)
	}
	plan, err := dataset.NewPlan(j.Manifest, o)
	if err != nil {
		return nil, err
	}
	j.Plan = plan.Options()
	if n := len(r.GetSources()); n > maxSources {
		return nil, fmt.Errorf("%w: %d sources: want at most %d", errorcode.ErrRequest, n, maxSources)
	}
	j.Sources = apiv1.ReadSources(r.GetSources())
	if len(r.GetColumns()) > 0 {
		if j.Columns, err = api.DecodeColumns(r.GetColumns()); err != nil {
			return nil, fmt.Errorf("%w: %w", errorcode.ErrRequest, err)
		}
	}
	return &j, nil
}

// maxSources bounds the sources of a request, as millrace.proto says.
const maxSources = 1024

// Prepare prepares a job on the drives that hold partitions of it. A job that is prepared already stays as it is.
func (s *service) Prepare(ctx context.Context, r *apiv1.PrepareRequest) (*apiv1.PrepareResponse, error) {
	j, err := readJob(r)
	if err != nil {
		return nil, err
	}
	var release []func()
	var pass *filterPass
	if !slices.Contains(s.manager.Jobs(), j.Digest) { // other calls do not wait for a fetch
		if pass, release, err = s.bind(ctx, j, r); err != nil {
			return nil, err
		}
	}
	defer func() { callAll(release) }()
	s.preparing.Lock()
	defer s.preparing.Unlock()
	jobs := s.manager.Jobs()
	if slices.Contains(jobs, j.Digest) {
		return s.prepared(j), nil
	}
	if len(jobs) >= s.jobLimit {
		return nil, fmt.Errorf("%w jobs: %d are prepared", errorcode.ErrTooMany, len(jobs))
	}
	if err := s.manager.Prepare(ctx, j); err != nil {
		if name := s.drives.NotOpen(); name != "" && errors.Is(err, host.ErrNotHeld) {
			return nil, fmt.Errorf("%w: drive %s is not open, and %w", errorcode.ErrUnavailable, name, err)
		}
		return nil, err
	}
	s.vocabularies.keep(j.Digest, release)
	release = nil
	if pass != nil {
		s.selections.keep(j.Digest, pass)
	}
	s.changed()
	return s.prepared(j), nil
}

// prepared returns the answer to a call that has prepared a job.
func (s *service) prepared(j *api.Job) *apiv1.PrepareResponse {
	r := &apiv1.PrepareResponse{}
	for _, place := range s.manager.OwnFiles(j.Manifest) {
		r.OwnFiles = append(r.OwnFiles, uint32(place))
	}
	return r
}

// bind gives the pipeline of a job its modules, its vocabularies and its selection, or makes it the pass of its filter.
// What it acquires is kept until release is called.
func (s *service) bind(
	ctx context.Context, j *api.Job, r *apiv1.PrepareRequest,
) (pass *filterPass, release []func(), err error) {
	defer func() {
		if err != nil {
			callAll(release)
			release = nil
		}
	}()
	if j.Pipeline, release, err = s.modules.bind(ctx, j.Pipeline, r.GetModules()); err != nil {
		return nil, nil, err
	}
	if r.GetFilterPass() != nil {
		pass, err = bindPass(j, r.GetFilterPass())
		return pass, release, err
	}
	var acquired []func()
	j.Pipeline, acquired, err = s.vocabularies.bind(ctx, j.Pipeline, r.GetVocabularies())
	if release = append(release, acquired...); err != nil || r.GetSelection() == nil {
		return nil, release, err
	}
	var done func()
	if j.Pipeline, done, err = s.vocabularies.bindSelection(ctx, j.Pipeline, r.GetSelection()); err != nil {
		return nil, release, err
	}
	return nil, append(release, done), nil
}

// Measure returns P of a drive for a job.
func (s *service) Measure(ctx context.Context, r *apiv1.MeasureRequest) (*apiv1.MeasureResponse, error) {
	job, err := readDigest(r.GetJob())
	if err != nil {
		return nil, err
	}
	if _, err := s.drives.Drive(r.GetDrive()); err != nil {
		return nil, err
	}
	o := host.RateOptions{Again: r.GetAgain(), JobRows: max(r.GetJobRows(), 0)}
	if r.GetSource() != nil {
		o.On = &apiv1.ReadSources([]*apiv1.PartitionSource{r.GetSource()})[0]
	}
	rate, kept, err := s.manager.Rate(ctx, job, r.GetDrive(), o)
	if err != nil {
		s.drives.Fail(r.GetDrive(), err)
		return nil, err
	}
	return &apiv1.MeasureResponse{
		RowsPerSecond: rate.RowsPerSecond, Rows: rate.Rows, ElapsedSeconds: rate.Elapsed.Seconds(), Kept: kept,
		SpreadShare: rate.Spread, Settled: rate.Settled, Short: rate.Short,
	}, nil
}

// Report returns the drives' reports of a job so far.
func (s *service) Report(ctx context.Context, r *apiv1.ReportRequest) (*apiv1.ReportResponse, error) {
	job, err := readDigest(r.GetJob())
	if err != nil {
		return nil, err
	}
	reports, err := s.manager.Report(ctx, job)
	if err != nil {
		return nil, err
	}
	response := &apiv1.ReportResponse{}
	for _, report := range reports {
		b, err := json.Marshal(report)
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		response.Drives = append(response.Drives, b)
	}
	return response, nil
}

// Finish forgets a job, and ends its open splits.
func (s *service) Finish(ctx context.Context, r *apiv1.FinishRequest) (*apiv1.FinishResponse, error) {
	job, err := readDigest(r.GetJob())
	if err != nil {
		return nil, err
	}
	s.preparing.Lock()
	defer s.preparing.Unlock()
	// Mini-batches that the job's processors lent are released before their memory goes.
	err = s.splits.Finish(job, func() error { return s.manager.Finish(context.WithoutCancel(ctx), job) })
	s.vocabularies.forget(job)
	s.selections.forget(job)
	if err != nil && !errors.Is(err, api.ErrUnknownJob) {
		// The job is forgotten all the same: a drive that is gone cannot take its memory back.
		s.log.Warn("job did not finish well", "digest", host.ShortDigest(job), "error", err)
	}
	s.changed()
	return &apiv1.FinishResponse{}, nil
}

// Drain makes the node, or one drive, refuse new splits, or take them again. The response has the splits that are open.
func (s *service) Drain(_ context.Context, r *apiv1.DrainRequest) (*apiv1.DrainResponse, error) {
	drive := r.GetDrive()
	if drive == "" {
		s.drain.set(r.GetDrain())
	} else if err := s.drives.SetDrained(drive, r.GetDrain()); err != nil {
		return nil, err
	}
	return &apiv1.DrainResponse{Running: int32(s.splits.Running(drive))}, nil
}

// Rescan reads the members of the drives' volumes again.
func (s *service) Rescan(ctx context.Context, _ *apiv1.RescanRequest) (*apiv1.RescanResponse, error) {
	if err := s.manager.Rescan(ctx); err != nil {
		return nil, err
	}
	inventory, err := s.manager.Inventory()
	if err != nil {
		return nil, err
	}
	s.changed()
	return &apiv1.RescanResponse{Partitions: int32(len(inventory.Partitions))}, nil
}

// Copy fetches a partition from another node.
func (s *service) Copy(ctx context.Context, r *apiv1.CopyRequest) (*apiv1.CopyResponse, error) {
	p := r.GetPartition()
	footer, err := readDigest(p.GetContentSha256())
	if err != nil {
		return nil, fmt.Errorf("%w: partition: content_sha256: want 32 bytes", errorcode.ErrRequest)
	}
	want := dataset.Partition{
		Name: p.GetName(), Bytes: p.GetBytes(), Rows: p.GetRows(), RowGroups: p.GetRowGroups(), Content: footer,
	}
	if want.Name == "" || want.Bytes < 0 {
		return nil, fmt.Errorf("%w: partition: name and bytes are wanted", errorcode.ErrRequest)
	}
	source := partitions.Source{URL: r.GetFromUrl(), Drive: r.GetFromDrive(), Want: want}
	n, sum, err := s.store.Copy(ctx, r.GetDrive(), source)
	if err != nil {
		return nil, err
	}
	return &apiv1.CopyResponse{Bytes: n, Sha256: sum}, nil
}

// Verify reads a partition whole, and returns its checksums.
func (s *service) Verify(ctx context.Context, r *apiv1.VerifyRequest) (*apiv1.VerifyResponse, error) {
	return s.store.Verify(ctx, r.GetDrive(), r.GetPartition(), r.GetKeptOnly())
}

// Inspect answers a question about a drive that only this process can open, because the node has it open. A drive that
// has failed is asked too.
func (s *service) Inspect(ctx context.Context, r *apiv1.InspectRequest) (*apiv1.InspectResponse, error) {
	d, err := s.drives.DriveWithDevice(r.GetDrive())
	if err != nil {
		return nil, err
	}
	answer, err := inspection.Read(ctx, inspection.Kind(r.GetKind()), d.Device(), d.Volume())
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", r.GetDrive(), err)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &apiv1.InspectResponse{Answer: b}, nil
}

// NextMiniBatch has its own binding: GET /v1/minibatch.
func (s *service) NextMiniBatch(context.Context, *apiv1.NextMiniBatchRequest) (*apiv1.NextMiniBatchResponse, error) {
	return nil, connect.NewError(connect.CodeUnimplemented,
		fmt.Errorf("mini-batches are fetched with GET %s: see millrace.proto", apiv1.MiniBatchPath))
}
