package trainmgr

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// Submit hands a job to the storage side, measures T and P, and allocates drives. No mini-batch is made before
// MiniBatches is called.
func Submit(ctx context.Context, storage api.Storage, o Options) (*Job, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	data, err := storage.Dataset(ctx)
	if err != nil {
		return nil, fmt.Errorf("submit job: read the data set: %w", err)
	}
	resolved, err := o.Pipeline.Resolve(data.Columns)
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	resolved.Malformed = data.Malformed
	_, schema, err := pipeline.Lower(resolved)
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	manifest, err := data.Manifest.Digest()
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	digest, err := dataset.JobDigest(manifest, resolved.Canonical(), o.plan(0))
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	s := &drives{storage: storage, o: o, data: data, digest: digest}
	if s.first, err = o.firstEpoch(data.Manifest, digest); err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	spec := &api.Job{Digest: digest, Pipeline: o.Pipeline, Plan: s.first.Plan.Options()}
	if err := storage.Prepare(ctx, spec); err != nil {
		return nil, fmt.Errorf("submit job: prepare drives: %w", err)
	}
	err = s.allocate(ctx, schema)
	var j *Job
	if err == nil {
		j, err = NewJob(ctx, s, JobOptions{Digest: digest, Schema: schema, Epochs: o.Epochs, Order: o.Order, QueueBytes: o.QueueBytes, Recording: o.Recording, Logger: o.Logger})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("submit job: %w", err), storage.Finish(context.WithoutCancel(ctx), digest))
	}
	return j, nil
}

// firstEpoch is where the job begins: epoch 0, or where the token left off.
func (o *Options) firstEpoch(m *dataset.Manifest, digest dataset.Digest) (e *Epoch, err error) {
	e = &Epoch{}
	if o.Resume != nil {
		e.Number = o.Resume.Epoch
		if e.Number >= uint64(o.Epochs) {
			return nil, fmt.Errorf("resume: %w: the token is of epoch %d, counted from 0, and the job has %d", ErrOptions, e.Number, o.Epochs)
		}
	}
	if e.Plan, err = dataset.NewPlan(m, o.plan(e.Number)); err != nil {
		return nil, err
	}
	if o.Resume == nil {
		e.Progress = dataset.NewProgress(digest, e.Number, e.Plan.MiniBatches())
	} else if e.Progress, err = dataset.Resume(*o.Resume, digest, e.Plan.MiniBatches()); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	return e, nil
}

// allocate measures T and P and decides how many drives run.
func (s *drives) allocate(ctx context.Context, schema *tensor.Schema) error {
	holders, err := s.holders()
	if err != nil {
		return err
	}
	if s.o.AllDrives {
		n := 0
		for _, d := range s.data.Drives {
			n += min(1, len(d.Partitions))
		}
		if s.o.MaxDrives > 0 {
			n = min(n, s.o.MaxDrives)
		}
		s.alloc = allocation.Allocation{Drives: n, Wanted: n, Note: "every drive runs, as asked; T and P were not measured"}
		return nil
	}
	t := s.o.RowsPerSecond
	if t == 0 && len(s.o.Ranks) > 0 {
		dummy, err := Dummy(schema, s.first.Plan.Options().Batch, s.data.MeanLength)
		if err != nil {
			return err
		}
		if t, err = Throughput(ctx, dummy, s.o.Throughput, s.o.Ranks...); err != nil {
			return err
		}
		s.o.Logger.Info("measured T", "digest", s.digest.String()[:12], "t_rows_per_second", t)
	}
	var loads []allocation.Worker
	for _, d := range s.data.Drives {
		load := allocation.Worker{Name: d.Name}
		held := int64(0)
		for _, p := range d.Partitions {
			held += s.data.Manifest.Partitions[p].Rows
			load.Rows += s.data.Manifest.Partitions[p].Rows / int64(holders[p])
		}
		if held == 0 {
			continue // it has nothing to preprocess, and nothing to measure P with
		}
		m, err := s.storage.Measure(ctx, s.digest, d.Name)
		if err != nil {
			return fmt.Errorf("measure P of drive %s: %w", d.Name, err)
		}
		load.RowsPerSecond = m.RowsPerSecond
		loads = append(loads, load)
		s.o.Logger.Info("measured P", "digest", s.digest.String()[:12], "drive", d.Name, "p_rows_per_second", m.RowsPerSecond)
	}
	a, err := allocation.Allocate(t, loads, s.o.MaxDrives)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	s.alloc = a
	s.o.Logger.Info("allocated drives", "digest", s.digest.String()[:12], "drives", a.Drives, "wanted", a.Wanted, "expected_stall_seconds", a.ExpectedStall.Seconds(), "note", a.Note)
	return nil
}

// holders counts, for each partition, the drives that hold it.
func (s *drives) holders() ([]int, error) {
	holders := make([]int, len(s.data.Manifest.Partitions))
	for _, d := range s.data.Drives {
		for _, p := range d.Partitions {
			holders[p]++
		}
	}
	for i, n := range holders {
		if n == 0 {
			return nil, fmt.Errorf("%w: no drive holds partition %s", ErrOptions, s.data.Manifest.Partitions[i].Name)
		}
	}
	return holders, nil
}
