package summaries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/trainmgr/remote"
)

// taking is the part of a pass that takes mini-batches and keeps them in parts.
type taking struct {
	*reduction
	job       *remote.Job
	builder   *vocabulary.Builder
	firstRows []int64         // firstRows has the first row of each mini-batch, and the rows of all
	numbers   []dataset.Range // numbers says which mini-batches are in the builder
	covered   []dataset.Range // covered says which mini-batches are in parts
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
	defer func() { err = r.end(ctx, job, err) }()
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

// begin checks the job against the folder, or describes it there, and prepares the pass.
func (t *taking) begin() error {
	d := &t.folder.description
	if err := t.sameData(t.job); err != nil {
		return err
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
		for _, p := range t.job.Manifest().Partitions {
			d.Read = append(d.Read, readPartition{p.Name, p.Content})
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
	for _, m := range t.keys.Modules {
		if submitted, err = submitted.BindModule(m); err != nil {
			return nil, fmt.Errorf("the job's pipeline: %w", err)
		}
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
	t.logger.Info("kept a part of a pass", "file", t.folder.path, "bytes", t.folder.bytes())
	if err := t.folder.merge(); err != nil {
		return err
	}
	t.kept = time.Now()
	return t.folder.bound(t.pass.Disk)
}
