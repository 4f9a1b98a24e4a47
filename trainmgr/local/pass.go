package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/passes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/trainmgr"
)

// PassSource makes the mini-batches of passes on this machine's drives, in the order of the data set.
type PassSource struct{ Storage api.Storage }

// Facts implements passes.Source. The digest of the job names the data.
func (s *PassSource) Facts() []passes.Fact { return nil }

// Describe implements passes.Source.
func (s *PassSource) Describe(ctx context.Context) (*passes.Data, error) {
	data, err := s.Storage.Dataset(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the data set: %w", err)
	}
	return &passes.Data{Manifest: data.Manifest, Columns: data.Columns, Malformed: data.Malformed}, nil
}

// Begin implements passes.Source. If the pipeline has a filter and no selection, another pass makes it first.
func (s *PassSource) Begin(ctx context.Context, j *passes.Job) (passes.Run, error) {
	spec := j.Pipeline
	if spec.Selection == nil {
		var err error
		if spec, _, err = (&Selections{QueueBytes: j.QueueBytes}).Bind(ctx, s.Storage, spec); err != nil {
			return nil, err
		}
	}
	plan := passes.PlanOptions()
	job, err := trainmgr.Submit(ctx, s.Storage, trainmgr.Options{Pipeline: spec, Boundary: plan.Boundary, Tail: plan.Tail,
		Shuffle: plan.Shuffle, Order: dataset.Deterministic, AllDrives: true, QueueBytes: j.QueueBytes, Resume: j.Resume})
	if err != nil {
		return nil, err
	}
	return &passRun{job, spec}, nil
}

// passRun is a job of a pass.
type passRun struct {
	*trainmgr.Job
	spec *pipeline.Spec
}

// Pipeline implements passes.Run.
func (r *passRun) Pipeline() (*pipeline.Spec, error) { return r.spec, nil }

// Selection implements passes.Run.
func (r *passRun) Selection(context.Context) (*selection.Selection, error) {
	return r.spec.Selection, nil
}

// End implements passes.Run.
func (r *passRun) End(_ context.Context, err error) error { return errors.Join(err, r.Close()) }
