package summaries

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/trainmgr/remote"
)

// cancelTime bounds the cancellation of a job that ended early.
const cancelTime = 5 * time.Second

// taking is the part of a pass that takes mini-batches and keeps them in parts.
type taking struct {
	*reduction
	job       *remote.Job
	builder   *vocabulary.Builder
	firstRows []int64         // of each mini-batch, and the rows of all
	numbers   []dataset.Range // of the mini-batches in the builder
	covered   []dataset.Range // of those in parts
	splits    *dataset.SplitCounter
	kept      time.Time // when the last part was written
}

// take takes every mini-batch that is in no part, and keeps all of them in parts.
func (r *reduction) take(ctx context.Context) (err error) {
	covered, err := r.folder.covered()
	if err != nil {
		return err
	}
	job, err := r.submit(ctx, covered)
	if err != nil {
		return err
	}
	t := &taking{reduction: r, job: job, covered: covered}
	defer func() {
		err = errors.Join(err, job.Close())
		if err == nil {
			return
		}
		// The next call submits another job. A job that cannot be cancelled now is abandoned, or cancelled by that call.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
		defer cancel()
		if err := r.cancel(within); err != nil {
			r.pass.Logger.Warn("cancel the job of a pass that ended early", "job", job.ID(), "error", err)
		}
	}()
	if err := t.begin(); err != nil {
		return err
	}
	b, closeBuilder, err := r.newBuilder()
	if err != nil {
		return err
	}
	t.builder = b
	defer func() { err = errors.Join(err, closeBuilder()) }()
	return t.run(ctx)
}

// cancel cancels the job of an earlier call, if there is one that has not ended.
func (r *reduction) cancel(ctx context.Context) error {
	err := r.client.Cancel(ctx, r.folder.description.JobName)
	if errors.Is(err, remote.ErrNoJob) || errors.Is(err, remote.ErrEnded) {
		return nil
	}
	return err
}

// submit submits the job without the mini-batches that are in parts, and attaches to it.
func (r *reduction) submit(ctx context.Context, covered []dataset.Range) (*remote.Job, error) {
	d := &r.folder.description
	spec := &apiv1.JobSpec{
		Name: d.JobName, Pipeline: r.document, Partitions: d.Partitions, Exclude: d.Exclude, Epochs: 1, Ranks: 1,
		RankTail: "keep", Placement: r.pass.Placement,
		Plan: &apiv1.PlanOptions{Shuffle: dataset.ShuffleNone.String(), Tail: dataset.KeepTail.String()},
	}
	if d.Job != "" {
		if err := r.cancel(ctx); err != nil {
			return nil, err
		}
		var err error
		if spec.Resume, err = r.folder.token(covered); err != nil {
			return nil, err
		}
	}
	status, err := r.client.Submit(ctx, spec)
	if err != nil {
		return nil, r.otherData(err)
	}
	r.pass.Logger.Info("submitted the job of a pass", "job", status.GetId(), "file", r.folder.path, "bytes",
		r.folder.bytes())
	job, err := r.client.Attach(ctx, status.GetId(), remote.AttachOptions{QueueBytes: r.pass.QueueBytes, Resume: true})
	if err != nil {
		return nil, errors.Join(r.otherData(err), r.cancel(context.WithoutCancel(ctx)))
	}
	return job, nil
}

// otherData adds to the error of a job over other data what to do.
func (r *reduction) otherData(err error) error {
	if errors.Is(err, dataset.ErrOtherJob) {
		return fmt.Errorf("%s: the data or the columns of the cluster are no longer those that the pass began with: name "+
			"its partitions (--partitions), or remove the folder to begin again: %w", r.folder.path, err)
	}
	return err
}

// begin checks the job against the folder, or describes it there, and prepares the pass.
func (t *taking) begin() error {
	d := &t.folder.description
	if d.Job != "" && t.job.Digest() != d.job {
		return t.otherData(fmt.Errorf("%w: it is of %v, and this is %v", dataset.ErrOtherJob, d.job, t.job.Digest()))
	}
	plan := t.job.Plan()
	t.firstRows = make([]int64, 1, plan.MiniBatches()+1)
	for number := range plan.MiniBatches() {
		at, err := plan.MiniBatch(number)
		if err != nil {
			return err
		}
		t.firstRows = append(t.firstRows, t.firstRows[number]+int64(at.Rows))
	}
	columns, err := t.columns()
	if err != nil {
		return err
	}
	if d.Job == "" {
		d.job, d.Job, d.columns = t.job.Digest(), t.job.Digest().String(), columns
		d.MiniBatches, d.Rows = plan.MiniBatches(), t.firstRows[plan.MiniBatches()]
		for _, column := range columns {
			d.Columns = append(d.Columns, describedColumn{Name: column.Name, Chain: column.Chain.String()})
		}
		if err := t.folder.writeDescription(); err != nil {
			return err
		}
	}
	for _, numbers := range t.covered {
		if numbers.To > plan.MiniBatches() {
			return fmt.Errorf("%s: %w: there are parts of mini-batch %d of %d", t.folder.path, ErrWork, numbers.To-1,
				plan.MiniBatches())
		}
		t.report.Resumed += t.firstRows[numbers.To] - t.firstRows[numbers.From]
	}
	t.splits = dataset.NewSplitCounter(plan)
	for _, numbers := range t.covered {
		for number := numbers.From; number < numbers.To; number++ {
			if err := t.splits.Add(number); err != nil {
				return err
			}
		}
	}
	return t.roomToBegin()
}

// columns checks the whole pipeline against the data's columns, so that an error in the rest of it is not found after
// a pass over all data, and returns the columns of the vocabulary.
func (t *taking) columns() ([]vocabulary.Column, error) {
	schema, malformed, err := t.job.Columns()
	if err != nil {
		return nil, err
	}
	if rest, ok := t.pass.Pipeline.WithoutVocabularies(); ok {
		resolved, err := rest.Resolve(schema)
		if err != nil {
			return nil, err
		}
		resolved.Malformed = malformed
		if _, err := resolved.LowerBeforeSelection(); err != nil {
			return nil, err
		}
	}
	// The control plane has written the time zones of its own tables out.
	submitted, err := pipeline.Parse(t.job.Status().GetSpec().GetPipeline())
	if err != nil {
		return nil, fmt.Errorf("the job's pipeline: %w", err)
	}
	resolved, err := submitted.Resolve(schema)
	if err != nil {
		return nil, err
	}
	columns, made := resolved.VocabularyColumns(), t.job.Schema()
	if len(made.Keys) != len(columns) || made.IDs != tensor.Int64 {
		return nil, fmt.Errorf("the control plane describes mini-batches of %d keys of %v, want %d of int64",
			len(made.Keys), made.IDs, len(columns))
	}
	for i := range columns {
		if made.Keys[i].Name != columns[i].Name {
			return nil, fmt.Errorf("the control plane describes mini-batches with the key %q, want %q", made.Keys[i].Name,
				columns[i].Name)
		}
	}
	return columns, nil
}

// roomToBegin returns a *RoomError if the disk or the folder's bound has no room for a part and a merge of it: twice
// the memory for keys, or less if the data set cannot have so many keys.
func (t *taking) roomToBegin() error {
	memory := t.pass.Memory
	if memory == 0 {
		memory = vocabulary.DefaultMemory
	}
	wanted, lists := 2*max(memory, 1<<20), false
	for _, key := range t.job.Schema().Keys {
		lists = lists || key.List
	}
	if most := 2 * bytesInCounts * t.folder.description.Rows * int64(len(t.folder.description.columns)); !lists {
		wanted = min(wanted, most)
	}
	if t.pass.Disk > 0 && t.pass.Disk < wanted {
		return &RoomError{Folder: t.folder.path, Doing: "parts of the pass", Want: wanted, Have: t.pass.Disk, Bound: true}
	}
	return wantRoom(t.folder.path, "parts of the pass", wanted)
}

// run takes the mini-batches. What was folded in is kept when the job or the caller ends the pass early, too.
func (t *taking) run(ctx context.Context) error {
	if t.pass.Started != nil {
		t.pass.Started(t.folder.description.Rows, t.report.Resumed)
	}
	t.kept = time.Now()
	for mb, err := range t.job.MiniBatches(ctx) {
		if err != nil {
			return errors.Join(err, t.keep())
		}
		if err := t.fold(mb); err != nil {
			return err
		}
		if t.due() {
			if err := t.keep(); err != nil {
				return err
			}
		}
	}
	if err := t.keep(); err != nil {
		return err
	}
	if whole, err := t.whole(); err != nil || !whole {
		return errors.Join(err, fmt.Errorf("job %s has ended, and not every mini-batch came: what came is kept in %s, and "+
			"the same call goes on from it", t.job.ID(), t.folder.path))
	}
	return nil
}

// fold folds a mini-batch in.
func (t *taking) fold(mb *tensor.MiniBatch) error {
	number := mb.Name.Number
	if number >= t.folder.description.MiniBatches {
		return fmt.Errorf("mini-batch %d came, of %d", number, t.folder.description.MiniBatches)
	}
	one := []dataset.Range{{From: number, To: number + 1}}
	if len(dataset.IntersectRanges(t.covered, one)) > 0 || len(dataset.IntersectRanges(t.numbers, one)) > 0 {
		return nil // it came before
	}
	if rows := t.firstRows[number+1] - t.firstRows[number]; int64(mb.Rows) != rows {
		return fmt.Errorf("mini-batch %d came with %d rows, want %d", number, mb.Rows, rows)
	}
	if err := t.builder.AddMiniBatch(uint64(t.firstRows[number]), mb); err != nil {
		return err
	}
	t.numbers = dataset.InsertNumber(t.numbers, number)
	t.report.MiniBatches++
	t.report.ReceivedBytes += mb.Bytes()
	if err := t.splits.Add(number); err != nil {
		return err
	}
	if t.pass.Progress != nil {
		t.pass.Progress(vocabulary.Progress{Rows: int64(mb.Rows), Splits: t.splits.Done(),
			AllSplits: t.job.Plan().Splits(), Keys: t.folder.entries() + t.builder.Keys()})
	}
	return nil
}

// due reports whether a part is to be written: the builder has no more memory for keys, or some time has passed.
func (t *taking) due() bool {
	every := t.pass.Every
	if every == 0 {
		every = DefaultEvery
	}
	return time.Since(t.kept) >= every || t.builder.Spilled()
}

// keep writes what was folded in as a part.
func (t *taking) keep() error {
	if len(t.numbers) == 0 {
		return nil
	}
	if err := t.folder.add(t.builder, t.numbers); err != nil {
		return err
	}
	t.covered, t.numbers = dataset.UnionRanges(t.covered, t.numbers), nil
	t.pass.Logger.Info("kept a part of a pass", "file", t.folder.path, "bytes", t.folder.bytes())
	if err := t.folder.merge(); err != nil {
		return err
	}
	t.kept = time.Now()
	return t.folder.bound(t.pass.Disk)
}
