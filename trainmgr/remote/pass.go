package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
)

// PassSource makes the mini-batches of passes over the data of a cluster: a pass is a job, and the caller its only
// rank. A call that goes on with a pass cancels the last call's job, and submits the job again.
type PassSource struct {
	Client     *Client
	Partitions []string // patterns of partitions' names; none: all
	Exclude    []string // patterns of partitions that are left out
	Placement  string   // Placement is the job's, as in apiv1.JobSpec
}

// Facts implements passes.Source.
func (s *PassSource) Facts() []passes.Fact {
	return []passes.Fact{passes.List("choice of partitions", s.Partitions),
		passes.List("choice of partitions to leave out", s.Exclude)}
}

// Describe implements passes.Source.
func (s *PassSource) Describe(ctx context.Context) (*passes.Data, error) {
	return s.Client.Dataset(ctx, s.Partitions, s.Exclude)
}

// cancelTime bounds the cancellation of a job that ended early.
const cancelTime = 5 * time.Second

// Begin implements passes.Source.
func (s *PassSource) Begin(ctx context.Context, j *passes.Job) (passes.Run, error) {
	spec := &apiv1.JobSpec{
		Name: j.Name, Pipeline: j.Pipeline.YAML(), Partitions: s.Partitions, Exclude: s.Exclude, Epochs: 1, Ranks: 1,
		RankTail: "keep", Order: j.Order.String(), Placement: s.Placement,
		Plan: apiv1.WritePlan(passes.PlanOptions()),
	}
	r := &passRun{client: s.Client, name: j.Name, modules: j.Pipeline.Modules, logger: j.Logger}
	if j.Resume != nil {
		err := r.cancel(ctx)
		if err == nil {
			spec.Resume, err = j.Resume.MarshalBinary()
		}
		if err != nil {
			return nil, err
		}
	}
	status, err := s.Client.Submit(ctx, spec)
	if err != nil {
		return nil, err
	}
	j.Logger.Info("submitted the job of a pass", "job", status.GetId())
	r.Job, err = s.Client.Attach(ctx, status.GetId(), AttachOptions{QueueBytes: j.QueueBytes, Resume: true})
	if err != nil {
		return nil, errors.Join(err, r.cancel(context.WithoutCancel(ctx)))
	}
	want, err := j.Data.Manifest.Digest()
	if err != nil {
		return nil, r.End(ctx, err)
	}
	if have, err := r.Manifest().Digest(); err != nil || have != want {
		return nil, r.End(ctx, errors.Join(err, fmt.Errorf("%w: the data of the cluster changed while the pass was "+
			"submitted: begin again", dataset.ErrOtherJob)))
	}
	return r, nil
}

// passRun is the job of a pass.
type passRun struct {
	*Job
	client  *Client
	name    string
	modules []pipeline.Module
	logger  *slog.Logger
}

// Pipeline implements passes.Run: the control plane has written the time zones of its own tables out.
func (r *passRun) Pipeline() (*pipeline.Spec, error) {
	spec, err := pipeline.Parse(r.Status().GetSpec().GetPipeline())
	for _, m := range r.modules {
		if err == nil {
			spec, err = spec.BindModule(m)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the job's pipeline: %w", err)
	}
	return spec, nil
}

// cancel cancels the job, if it has not ended.
func (r *passRun) cancel(ctx context.Context) error {
	err := r.client.Cancel(ctx, r.name)
	if errors.Is(err, ErrNoJob) || errors.Is(err, ErrEnded) {
		return nil
	}
	return err
}

// End implements passes.Run. It cancels the job after an error: the next call submits another one.
func (r *passRun) End(ctx context.Context, err error) error {
	if err = errors.Join(err, r.Close()); err == nil {
		return nil
	}
	// A job that cannot be cancelled now is abandoned, or cancelled by the next call.
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	if err := r.cancel(within); err != nil {
		r.logger.Warn("cancel the job of a pass that ended early", "job", r.ID(), "error", err)
	}
	return err
}
