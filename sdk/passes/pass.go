package passes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
)

// Data is what a source reads.
type Data struct {
	Manifest  *dataset.Manifest
	Columns   []columntypes.Column
	Malformed program.Malformed
}

// Resolve resolves a pipeline against the data. The error is of type [problem.Errors].
func (d *Data) Resolve(spec *pipeline.Spec) (*resolve.Resolved, error) {
	return resolve.Data(spec, d.Manifest, d.Columns, d.Malformed)
}

// Source makes the mini-batches of passes.
type Source interface {
	// Facts say which data the source reads, for the work folder.
	Facts() []Fact
	// Describe describes the data.
	Describe(ctx context.Context) (*Data, error)
	// Begin begins to make the mini-batches of a job. The error wraps dataset.ErrOtherJob if the job's token is that of
	// another job: the data changed.
	Begin(ctx context.Context, job *Job) (Run, error)
}

// PlanOptions returns how every pass cuts its data. A source may choose Batch and SplitBatches. Mini-batches end with
// partitions whatever the boundary of the job that a pass is for, since a reducer takes a mini-batch for consecutive
// rows of one partition.
func PlanOptions() dataset.Options {
	return dataset.Options{Boundary: dataset.BoundaryPartition, Tail: dataset.KeepTail, Shuffle: dataset.ShuffleNone}
}

// checkPlan returns an error if a source has cut the data in another way than PlanOptions.
func checkPlan(plan *dataset.Plan) error {
	got, want := plan.Options(), PlanOptions()
	if got.Boundary == want.Boundary && got.Tail == want.Tail && got.Shuffle == want.Shuffle {
		return nil
	}
	return fmt.Errorf("%w: the source cut the data with boundary %v, tail %v and shuffle %v: a pass needs boundary %v, "+
		"tail %v and shuffle %v (PlanOptions)", ErrOptions, got.Boundary, got.Tail, got.Shuffle, want.Boundary, want.Tail,
		want.Shuffle)
}

// Job is what a source is to make: the mini-batches of all rows that the pipeline's filter lets pass, cut as
// PlanOptions says.
type Job struct {
	Name       string // Name is that of the jobs of a cluster.
	Data       *Data  // Data is what Source.Describe returned.
	Pipeline   *pipeline.Spec
	Order      dataset.Order
	Resume     *dataset.Token // Resume covers mini-batches that are not wanted; nil: the pass begins.
	QueueBytes int64
	Logger     *slog.Logger
}

// Run is a job that a source has begun. trainmgr.Job and trainmgr/remote.Job have most of its methods.
type Run interface {
	Digest() dataset.Digest
	Plan() *dataset.Plan // cut as PlanOptions says
	Schema() *tensor.Schema
	// Pipeline returns the pipeline as the source runs it.
	Pipeline() (*pipeline.Spec, error)
	// Selection returns which rows pass the pipeline's filter, and nil if the pipeline has none.
	Selection(ctx context.Context) (*selection.Selection, error)
	// MiniBatches iterates over the mini-batches that the job's token does not cover.
	MiniBatches(ctx context.Context) iter.Seq2[*tensor.MiniBatch, error]
	// End ends the run and returns err, the pass's error, with those of the end.
	End(ctx context.Context, err error) error
}

// Reducer folds the mini-batches of a pass into something small.
type Reducer interface {
	// Add folds a mini-batch in, each of which comes once; at says which rows the plan has in it. The memory of the
	// mini-batch is used again after Add.
	Add(at dataset.Fragment, mb *tensor.MiniBatch) error
}

// Keeper is a Reducer that can write what it has folded in to files, so that the pass survives its process.
type Keeper interface {
	Reducer
	// Restore takes over the parts that earlier calls wrote, in their order. They hold the mini-batches of ranges. It
	// is called once before Add, also when there are no parts.
	Restore(parts []string, covered []dataset.Range) error
	// Keep writes a part with what was folded in since the last part, or, where it reports true, since the begin of the
	// last part, which the new one replaces. The file is on the disk when Keep returns.
	Keep(path string) (replaces bool, err error)
	// Full reports whether Keep is due because of the reducer's memory.
	Full() bool
}

// Merger is a Keeper whose parts can be merged, so that they are few.
type Merger interface {
	Keeper
	// Merge makes one part of others, at most MaxMerged.
	Merge(path string, parts []string) error
}

// DefaultEvery is how long a pass folds mini-batches before it writes a part, if its options do not say so.
const DefaultEvery = 15 * time.Second

// Options are what all passes have. The zero value works.
type Options struct {
	// Work is the work folder, which is removed at the end. "" keeps nothing: a call that ends early begins again.
	Work  string
	Disk  int64         // bound of the bytes of the folder's parts and of what becomes of them; 0: what the disk has
	Every time.Duration // the longest time between two parts; 0: DefaultEvery

	QueueBytes int64        // bound of the mini-batches that wait; 0: the source's default
	Logger     *slog.Logger // nil discards the log

	// Started is called before the first mini-batch with the rows of the data set, and those of them that earlier calls
	// took. Progress is called behind each mini-batch.
	Started  func(rows, taken int64)
	Progress func(Progress)
}

// Progress describes a step of a pass: how far the pass is, once a mini-batch is folded in.
type Progress struct {
	Rows      int64 // Rows counts the rows of the mini-batch
	Splits    int   // Splits counts the splits of which every mini-batch is folded in
	AllSplits int   // AllSplits counts the splits of the data set
	Keys      int64 // Keys is what a reducer with a method Keys says; 0: it has none
}

// Report says what a call of Pass.Run took.
type Report struct {
	JobName       string // JobName names the job, and the earlier calls' jobs
	Resumed       int64  // Resumed counts the rows that earlier calls took
	Folded        int64  // Folded counts the rows that this call folded in
	MiniBatches   int    // MiniBatches counts what this call took
	ReceivedBytes int64  // ReceivedBytes counts the bytes of tensors in them
}

// Pass is a pass over the data of a source.
type Pass struct {
	Data     *Data          // Data is what Source.Describe returned.
	Pipeline *pipeline.Spec // Pipeline makes the values that are folded.
	Order    dataset.Order
	// Begin returns the reducer, once the job is known.
	Begin func(ctx context.Context, run Run) (Reducer, error)
	Options
}

// Fold makes a pass over a source with a reducer that keeps nothing. The mini-batches come in the order of the data
// set.
func Fold(ctx context.Context, source Source, spec *pipeline.Spec, r Reducer, o Options) (*Report, error) {
	data, err := source.Describe(ctx)
	if err != nil {
		return nil, err
	}
	o.Work = ""
	work, err := o.OpenWork("fold", source, nil, nil)
	if err != nil {
		return nil, err
	}
	pass := Pass{Data: data, Pipeline: spec, Order: dataset.Deterministic, Options: o,
		Begin: func(context.Context, Run) (Reducer, error) { return r, nil }}
	return pass.Run(ctx, source, work)
}

// fold is a call of Pass.Run.
type fold struct {
	*Pass
	run     Run
	work    *Work
	reducer Reducer
	keeper  Keeper          // nil: nothing is kept
	taken   []dataset.Range // taken says which mini-batches are in the reducer and in no part
	splits  *dataset.SplitCounter
	kept    time.Time // kept is when the last part was written
	report  Report
}

// Run makes the pass, or goes on with one that ended early in the same work folder.
func (p *Pass) Run(ctx context.Context, source Source, work *Work) (_ *Report, err error) {
	f := &fold{Pass: p, work: work, report: Report{JobName: work.description.JobName}}
	job := &Job{Name: f.report.JobName, Data: p.Data, Pipeline: p.Pipeline, Order: p.Order, QueueBytes: p.QueueBytes,
		Resume: work.description.Token, Logger: work.logger}
	if f.run, err = source.Begin(ctx, job); err != nil {
		return nil, work.otherData(err)
	}
	defer func() { err = f.run.End(ctx, err) }()
	if err := checkPlan(f.run.Plan()); err != nil {
		return nil, err
	}
	if err := work.beginJob(f.run.Digest()); err != nil {
		return nil, err
	}
	if f.reducer, err = p.Begin(ctx, f.run); err != nil {
		return nil, err
	}
	if err := f.restore(); err != nil {
		return nil, err
	}
	if p.Started != nil {
		p.Started(f.run.Plan().Rows(), f.report.Resumed)
	}
	f.kept = time.Now()
	for mb, err := range f.run.MiniBatches(ctx) {
		if err != nil {
			return nil, errors.Join(err, f.keep())
		}
		if err := f.add(mb); err != nil {
			return nil, err
		}
		if f.keeper != nil && (f.keeper.Full() || time.Since(f.kept) >= cmp.Or(p.Every, DefaultEvery)) {
			if err := f.keep(); err != nil {
				return nil, err
			}
		}
	}
	if n := f.folded(); n != f.run.Plan().MiniBatches() {
		return nil, errors.Join(fmt.Errorf("%s has ended, and %d of %d mini-batches came: the same call goes on from what "+
			"is kept", f.report.JobName, n, f.run.Plan().MiniBatches()), f.keep())
	}
	return &f.report, nil
}

// restore gives the reducer the parts of the work folder, and counts what is in them.
func (f *fold) restore() error {
	plan, covered := f.run.Plan(), f.work.covered()
	f.splits = dataset.NewSplitCounter(plan)
	for _, numbers := range covered {
		for number := numbers.From; number < numbers.To; number++ {
			at, err := plan.Fragment(number)
			if err == nil {
				err = f.splits.Add(number)
			}
			if err != nil {
				return f.work.damaged(err)
			}
			f.report.Resumed += int64(at.Rows)
		}
	}
	keeper, ok := f.reducer.(Keeper)
	if !ok || f.work.path == "" {
		return nil
	}
	f.keeper = keeper
	if err := keeper.Restore(f.work.Parts(), covered); err != nil {
		return f.work.damaged(err)
	}
	return nil
}

// add folds a mini-batch in, unless it came before.
func (f *fold) add(mb *tensor.MiniBatch) error {
	number := mb.Name.Number
	one := []dataset.Range{{From: number, To: number + 1}}
	if len(dataset.IntersectRanges(f.work.covered(), one)) > 0 || len(dataset.IntersectRanges(f.taken, one)) > 0 {
		return nil
	}
	at, err := f.run.Plan().Fragment(number)
	if err == nil {
		err = f.splits.Add(number)
	}
	if err == nil {
		err = f.reducer.Add(at, mb)
	}
	if err != nil {
		return err
	}
	f.taken = dataset.InsertNumber(f.taken, number)
	f.report.MiniBatches++
	f.report.Folded += int64(mb.Rows)
	f.report.ReceivedBytes += mb.Bytes()
	if f.Progress == nil {
		return nil
	}
	step := Progress{Rows: int64(mb.Rows), Splits: f.splits.Done(), AllSplits: f.run.Plan().Splits()}
	if counts, ok := f.reducer.(interface{ Keys() int64 }); ok {
		step.Keys = counts.Keys()
	}
	f.Progress(step)
	return nil
}

// folded returns how many mini-batches are in the reducer and in parts.
func (f *fold) folded() (n uint64) {
	for _, numbers := range dataset.UnionRanges(f.work.covered(), f.taken) {
		n += numbers.To - numbers.From
	}
	return n
}

// keep writes what was folded in as a part, unless that is all there is.
func (f *fold) keep() error {
	if f.keeper == nil || len(f.taken) == 0 || f.folded() == f.run.Plan().MiniBatches() {
		return nil
	}
	if err := f.work.keep(f.keeper, f.taken); err != nil {
		return err
	}
	f.taken, f.kept = nil, time.Now()
	return nil
}
