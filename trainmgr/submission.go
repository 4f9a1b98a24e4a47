package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// Submit hands a job to the storage side, measures T and P, and decides how many drives run at once. No mini-batch is
// made before MiniBatches is called.
func Submit(ctx context.Context, storage api.Storage, o Options) (*Job, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	source := &storageSource{storage: storage, options: o}
	if o.Offload.Local != nil {
		source.splitSharing = newSplitSharing(&source.options, storage)
		source.storage = source.splitSharing.storage
	}
	job, err := source.submit(ctx)
	if err != nil {
		return nil, fmt.Errorf("submit job: %w", err)
	}
	return job, nil
}

// submit plans the job, prepares the storage side and allocates drives. On an error the storage side forgets the job.
func (s *storageSource) submit(ctx context.Context) (*Job, error) {
	schema, err := s.plan(ctx)
	if err != nil {
		return nil, err
	}
	prepared := &api.Job{Digest: s.digest, Pipeline: s.options.Pipeline, Plan: s.firstEpoch.Plan.Options(),
		Elastic: s.options.Autoscale.Every > 0, Rows: s.rowsOfDrive()}
	if err := s.storage.Prepare(ctx, prepared); err != nil {
		return nil, fmt.Errorf("prepare drives: %w", err)
	}
	job, err := s.allocatedJob(ctx, schema)
	if err != nil {
		return nil, errors.Join(err, s.storage.Finish(context.WithoutCancel(ctx), s.digest))
	}
	return job, nil
}

// plan reads the data set, checks the pipeline against its columns, and plans the first epoch.
func (s *storageSource) plan(ctx context.Context) (schema *tensor.Schema, err error) {
	if s.data, err = s.storage.Dataset(ctx); err != nil {
		return nil, fmt.Errorf("read the data set: %w", err)
	}
	resolved, err := s.data.Resolve(s.options.Pipeline)
	if err != nil {
		return nil, err
	}
	lowered, err := lowering.LowerWithLookups(resolved)
	if err != nil {
		return nil, err
	}
	schema = lowered.Schema
	manifest, err := s.data.Manifest.Digest()
	if err != nil {
		return nil, err
	}
	passing, selected, err := lowered.SelectionOf(s.data.Manifest)
	if err != nil {
		return nil, err
	}
	s.canonical, s.schema, s.passing = resolved.Canonical(), schema, passing
	if s.digest, err = dataset.SelectedJobDigest(manifest, selected, s.canonical, s.options.planOptions(0)); err != nil {
		return nil, err
	}
	if s.firstEpoch, err = s.options.firstEpoch(s.planOf, s.digest); err != nil {
		return nil, err
	}
	if err := api.CheckStamps(s.options.ResumeStamps, s.data.Stamps); s.options.Resume != nil && err != nil {
		return nil, fmt.Errorf("resume: %w: begin anew, or, if its rows are the same, resume by the token alone", err)
	}
	return schema, nil
}

// allocatedJob decides how many drives run at once and makes the job.
func (s *storageSource) allocatedJob(ctx context.Context, schema *tensor.Schema) (*Job, error) {
	if err := s.allocate(ctx, schema); err != nil {
		return nil, err
	}
	o := &s.options
	return NewJob(ctx, s, JobOptions{
		Digest: s.digest, Schema: schema, Epochs: o.Epochs, Order: o.Order,
		QueueBytes: o.QueueBytes, Recording: o.Recording, Logger: o.Logger, Now: o.Now, modelledClock: o.modelledClock,
	})
}

// planOf returns the plan of an epoch.
func (s *storageSource) planOf(epoch uint64) (*dataset.Plan, error) {
	return dataset.NewSelectedPlan(s.data.Manifest, s.passing, s.options.planOptions(epoch))
}

// rows returns how many rows of a partition the mini-batches are made of: all, or those that pass the pipeline's
// filter.
func (s *storageSource) rows(partition int) int64 {
	if s.passing != nil {
		return s.passing[partition]
	}
	return s.data.Manifest.Partitions[partition].Rows
}

// firstEpoch returns the epoch in which the job begins: epoch 0, or the epoch of the token. planOf returns an epoch's
// plan.
func (o *Options) firstEpoch(planOf func(uint64) (*dataset.Plan, error), digest dataset.Digest) (e *Epoch, err error) {
	e = &Epoch{}
	if o.Resume != nil {
		e.Number = o.Resume.Epoch
		if e.Number >= uint64(o.Epochs) {
			return nil, fmt.Errorf("resume: %w: the token is of epoch %d, counted from 0, and the job has %d",
				ErrOptions, e.Number, o.Epochs)
		}
	}
	if e.Plan, err = planOf(e.Number); err != nil {
		return nil, err
	}
	if e.LeftOutRows, err = o.Share.LeftOut(e.Plan); err != nil {
		return nil, err
	}
	e.Owned = o.ownedNumbers(e.Plan)
	if o.Resume == nil {
		e.Progress = dataset.NewProgress(digest, e.Number, e.Plan.MiniBatches())
	} else if e.Progress, err = dataset.Resume(*o.Resume, digest, e.Plan.MiniBatches()); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	if e.Owned != nil {
		others := dataset.ComplementRanges(e.Owned, e.Plan.MiniBatches())
		if foreign := dataset.IntersectRanges(e.Progress.Token().Acknowledged(), others); len(foreign) > 0 {
			return nil, fmt.Errorf("resume: %w: the token acknowledges mini-batch %d, which is not of rank %d of %d: "+
				"resume with as many ranks as the token was made with", ErrOptions, foreign[0].From, o.Share.Rank,
				o.Share.Ranks)
		}
	}
	return e, nil
}

// ownedNumbers returns the numbers of an epoch that are of the job's share; nil means all.
func (o *Options) ownedNumbers(plan *dataset.Plan) []dataset.Range {
	if o.Share.Ranks <= 1 {
		return nil
	}
	numbers := o.Share.Numbers(plan.MiniBatches())
	if numbers.From == numbers.To {
		return []dataset.Range{}
	}
	return []dataset.Range{numbers}
}

// allocate measures T and P and decides how many drives run at once.
func (s *storageSource) allocate(ctx context.Context, schema *tensor.Schema) error {
	holders, err := s.countHolders()
	if err != nil {
		return err
	}
	if s.options.AllDrives && s.splitSharing == nil {
		s.allocated = s.allDrives()
		return nil
	}
	if s.splitSharing != nil {
		return s.allocateShared(ctx)
	}
	rowsPerSecond, err := s.trainerThroughput(ctx, schema)
	if err != nil {
		return err
	}
	workers, err := s.measureDrives(ctx, holders)
	if err != nil {
		return err
	}
	a, err := allocation.Allocate(rowsPerSecond, workers, s.options.MaxDrives)
	switch {
	case errors.Is(err, allocation.ErrNoWorker) && s.passing != nil:
		return fmt.Errorf("%w: none of %d rows passes the filter, to which a validation split belongs: let more rows pass",
			ErrOptions, s.data.Manifest.Rows())
	case err != nil:
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	a.Note = s.withShort(a.Note)
	s.allocated = a
	if s.options.Autoscale.Every > 0 {
		s.scaling = newScaling(s)
	}
	s.options.Logger.Info("allocated drives", "digest", s.digest.String()[:12], "drives", a.Drives, "wanted", a.Wanted,
		"expected_stall_seconds", a.ExpectedStall.Seconds(), "note", a.Note)
	return nil
}

// jobRows returns how many rows the job makes in the epochs that are left.
func (s *storageSource) jobRows() (rows float64) {
	for i := range s.data.Manifest.Partitions {
		rows += float64(s.rows(i))
	}
	return rows * (float64(s.options.Epochs) - float64(s.firstEpoch.Number)) / float64(max(s.options.Share.Ranks, 1))
}

// rowsOfDrive returns how many rows one of the drives makes of the job, while P of one drive is measured: drives are
// measured one after the other, and make the job together.
func (s *storageSource) rowsOfDrive() int64 {
	n := float64(max(len(s.data.Drives), 1))
	return int64(min(max(s.jobRows()/(n*n), 1), math.MaxInt64/2))
}

// withShort adds to an allocation's note that P was not measured to the end.
func (s *storageSource) withShort(note string) string {
	if !s.short {
		return note
	}
	return note + "; P is that of the first mini-batches: the job is too short to measure it"
}

// allDrives is the allocation of Options.AllDrives: every drive that holds data runs, at most MaxDrives.
func (s *storageSource) allDrives() allocation.Allocation {
	drives := 0
	for _, drive := range s.data.Drives {
		drives += min(1, len(drive.Partitions))
	}
	if s.options.MaxDrives > 0 {
		drives = min(drives, s.options.MaxDrives)
	}
	return allocation.Allocation{Drives: drives, Wanted: drives,
		Note: "every drive runs, as asked; T and P were not measured"}
}

// trainerThroughput returns T: as the options give it, or measured on the ranks' steps, or 0 if neither is there.
func (s *storageSource) trainerThroughput(ctx context.Context,
	schema *tensor.Schema) (rowsPerSecond float64, err error) {
	if s.options.RowsPerSecond != 0 || len(s.options.Ranks) == 0 {
		return s.options.RowsPerSecond, nil
	}
	dummy, err := Dummy(schema, s.firstEpoch.Plan.Options().Batch, s.data.MeanLength)
	if err != nil {
		return 0, err
	}
	if rowsPerSecond, err = Throughput(ctx, dummy, s.options.Throughput, s.options.Ranks...); err != nil {
		return 0, err
	}
	s.options.Logger.Info("measured T", "digest", s.digest.String()[:12], "t_rows_per_second", rowsPerSecond)
	return rowsPerSecond, nil
}

// measureDrives measures P of every drive that holds rows. A drive without rows has nothing to preprocess and nothing
// to measure P with. holders is, for each partition, how many drives hold it. If others have a drive of an elastic job,
// it is taken to have the mean P of the job's other drives.
func (s *storageSource) measureDrives(ctx context.Context, holders []int) ([]allocation.Worker, error) {
	var workers []allocation.Worker
	var sum float64
	var taken error
	measured := 0
	for _, drive := range s.data.Drives {
		worker, ok, err := s.measureDrive(ctx, drive, holders)
		switch {
		case s.options.Autoscale.Every > 0 && errors.Is(err, api.ErrTaken):
			taken = err
			s.takenByOthers = append(s.takenByOthers, drive.Name)
			workers = append(workers, worker)
		case err != nil:
			return nil, err
		case ok:
			workers = append(workers, worker)
			sum += worker.RowsPerSecond
			measured++
		}
	}
	if measured == 0 && taken != nil {
		return nil, taken
	}
	for i := range workers {
		if workers[i].RowsPerSecond == 0 {
			workers[i].RowsPerSecond = sum / float64(measured)
		}
	}
	return workers, nil
}

// measureDrive measures P of a drive. ok is false if the drive holds no row.
func (s *storageSource) measureDrive(ctx context.Context, drive api.Drive,
	holders []int) (worker allocation.Worker, ok bool, err error) {
	worker.Name = drive.Name
	heldRows := int64(0)
	for _, p := range drive.Partitions {
		rows := s.rows(p)
		heldRows += rows
		worker.Rows += rows / int64(holders[p])
	}
	if heldRows == 0 {
		return worker, false, nil
	}
	measured, err := s.storage.Measure(ctx, s.digest, drive.Name)
	if err != nil {
		return worker, false, fmt.Errorf("measure P of drive %s: %w", drive.Name, err)
	}
	worker.RowsPerSecond = measured.RowsPerSecond
	s.short = s.short || measured.Short
	s.options.Logger.Info("measured P", "digest", s.digest.String()[:12], "drive", drive.Name,
		"p_rows_per_second", measured.RowsPerSecond, "spread_share", measured.Spread)
	return worker, true, nil
}

// countHolders returns, for each partition, how many drives hold it. It refuses a partition that no drive holds.
func (s *storageSource) countHolders() ([]int, error) {
	holders := make([]int, len(s.data.Manifest.Partitions))
	for _, drive := range s.data.Drives {
		for _, p := range drive.Partitions {
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
