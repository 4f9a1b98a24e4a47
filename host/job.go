package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/selection"
	"github.com/millrace/millrace/sdk/tensor"
)

// job is a prepared job.
type job struct {
	api.Job
	manager     *Manager
	lowered     *lowering.Lowered
	passing     []int64        // how many rows of each partition pass the pipeline's filter; nil: all
	pipeline    dataset.Digest // pipeline is the digest of its canonical form.
	hasManifest bool           // the job named its manifest, which may have partitions that lie elsewhere
	elsewhere   Elsewhere      // reads the partitions that no drive here holds; nil: the job has none

	starting sync.Mutex // held while a processor is made or replaced

	mu         sync.Mutex
	processors map[string]*driveProcessor // by drive
	released   map[string]*driveProcessor // by drive: what a drive that was given up did, until it is taken again
	plans      map[uint64]*dataset.Plan
}

// driveProcessor is a job's processor on one drive, and its measured P. job.mu guards its fields.
type driveProcessor struct {
	processor.Processor
	drive    *Drive
	rate     api.Measurement
	measured processor.Stats // the work of measuring P, which no report counts
	counted  *api.Counters   // the drive's counters at that time; nil where it does not compute
	earlier  processor.Stats // the work of the job's processors on the drive before this one
	running  int             // open streams
	lent     int             // mini-batches that are views of the drive's memory, and not released yet
	ended    bool            // no stream begins any more
	// inDrive and behind name the keys whose ids the drive looks up in vocabularies, and this host behind it.
	inDrive, behind []string
}

// enterProcessor counts a split of the job in. It reports false when the drive has as many splits of the job open as it
// takes. Another job on the drive has its own share of the memory.
func (j *job) enterProcessor(p *driveProcessor, streams int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.running >= streams || p.ended {
		return false
	}
	p.running++
	p.drive.addRunning(1)
	return true
}

// leaveProcessor counts a split of the job out.
func (j *job) leaveProcessor(p *driveProcessor) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p.running--
	p.drive.addRunning(-1)
}

// ErrDigest says that a job's digest is not that of its manifest, pipeline and plan: the two sides do not read them
// alike.
var ErrDigest = errors.New("the job's digest is not that of its manifest, pipeline and plan")

// lower makes a job of its specification and of the partitions that the drives hold.
func (m *Manager) lower(ctx context.Context, drives []*Drive, spec *api.Job) (*job, *api.Dataset, error) {
	data, err := describe(drives, spec.Manifest)
	if errors.Is(err, ErrNotHeld) {
		data, err = describeElsewhere(ctx, drives, spec, err)
	}
	if err != nil {
		return nil, nil, err
	}
	if spec.Columns != nil { // those of all partitions, of which some may have columns that those here lack
		data.Columns = spec.Columns
	}
	resolved, err := data.Resolve(spec.Pipeline)
	if err != nil {
		return nil, nil, err
	}
	j := &job{Job: *spec, manager: m, hasManifest: spec.Manifest != nil, processors: map[string]*driveProcessor{},
		released: map[string]*driveProcessor{}, plans: map[uint64]*dataset.Plan{}}
	for _, d := range drives {
		if d.elsewhere != nil {
			j.elsewhere = d.elsewhere.from
		}
	}
	j.Manifest, j.pipeline = data.Manifest, resolved.Digest()
	if j.lowered, err = lowering.LowerWithLookups(resolved); err != nil {
		return nil, nil, err
	}
	passing, selected, err := j.lowered.SelectionOf(j.Manifest)
	if err != nil {
		return nil, nil, err
	}
	j.passing = passing
	if j.hasManifest {
		manifest, err := spec.Manifest.Digest()
		if err != nil {
			return nil, nil, err
		}
		digest, err := dataset.SelectedJobDigest(manifest, selected, resolved.Canonical(), spec.Plan)
		if err != nil {
			return nil, nil, err
		}
		if digest != spec.Digest {
			return nil, nil, fmt.Errorf("%w: it is called %s, and is %s here; is this node as new as its control "+
				"plane?", ErrDigest, spec.Digest, digest)
		}
	}
	return j, data, nil
}

// processor returns the job's processor on a drive. It makes the processor if there is none, because a drive may have
// been added, or opened again, since the job was prepared.
func (j *job) processor(ctx context.Context, d *Drive) (*driveProcessor, error) {
	j.starting.Lock()
	defer j.starting.Unlock()
	j.mu.Lock()
	p, ok := j.processors[d.name]
	j.mu.Unlock()
	if ok && p.drive == d {
		return p, nil
	}
	if d.isSuspended() {
		return nil, ErrSuspended
	}
	counted, err := d.counters(ctx)
	if err != nil {
		return nil, err
	}
	started, lowered, err := d.newProcessor(ctx, j.lowered)
	if err != nil {
		return nil, err
	}
	p = &driveProcessor{Processor: started, drive: d, counted: counted, inDrive: lowered.InDrive,
		behind: lowered.Behind()}
	j.mu.Lock()
	defer j.mu.Unlock()
	if before, ok := j.released[d.name]; ok && before.drive == d {
		p.rate, p.counted, p.earlier = before.rate, before.counted, before.earlier
	}
	if j.processors == nil { // finished meanwhile
		return nil, errors.Join(fmt.Errorf("job %s: %w", j.Digest, api.ErrUnknownJob), started.Close())
	}
	j.processors[d.name] = p
	delete(j.released, d.name)
	return p, nil
}

// release ends the job's processor on a drive, if it has one and nothing uses it. The job's next split there gets a new
// one.
func (j *job) release(d *Drive) error {
	j.starting.Lock()
	defer j.starting.Unlock()
	j.mu.Lock()
	p, ok := j.processors[d.name]
	if !ok {
		j.mu.Unlock()
		return nil
	}
	if p.running > 0 || p.lent > 0 {
		defer j.mu.Unlock()
		return fmt.Errorf("drive %s has %d streams of the job open, and has lent it %d mini-batches: %w", d.name,
			p.running, p.lent, api.ErrBusy)
	}
	p.earlier = p.work()
	p.ended = true
	delete(j.processors, d.name)
	j.released[d.name] = p
	j.mu.Unlock()
	if err := p.Close(); err != nil {
		return fmt.Errorf("drive %s: %w", d.name, err)
	}
	return nil
}

// work returns what the job's processors did on the drive, without the work of measuring P.
func (p *driveProcessor) work() processor.Stats {
	if p.ended {
		return p.earlier
	}
	return p.Stats().Sub(p.measured).Add(p.earlier)
}

// noteLent counts a mini-batch that is a view of the drive's memory, until it is released.
func (j *job) noteLent(p *driveProcessor, mb *tensor.MiniBatch) {
	if !mb.Lent() {
		return
	}
	count := func(n int) {
		j.mu.Lock()
		defer j.mu.Unlock()
		p.lent += n
	}
	count(1)
	mb.OnRelease(func() { count(-1) })
}

// stop ends the job's processor on a drive, if it has one.
func (j *job) stop(d *Drive) error {
	j.starting.Lock()
	defer j.starting.Unlock()
	j.mu.Lock()
	p, ok := j.processors[d.name]
	if ok && p.drive == d {
		delete(j.processors, d.name)
	}
	j.mu.Unlock()
	if !ok || p.drive != d {
		return nil
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("drive %s: %w", d.name, err)
	}
	return nil
}

// plan returns the plan of an epoch.
func (j *job) plan(epoch uint64) (*dataset.Plan, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p, ok := j.plans[epoch]; ok {
		return p, nil
	}
	o := j.Plan
	o.Epoch = epoch
	p, err := dataset.NewSelectedPlan(j.Manifest, j.passing, o)
	if err != nil {
		return nil, err
	}
	clear(j.plans) // epochs follow each other, so that one plan is enough
	j.plans[epoch] = p
	return p, nil
}

// rows returns the rows of a partition, by its index, that the job's mini-batches are made of: how many there are, and
// which they are; nil means all.
func (j *job) rows(index int) (int64, *selection.Rows) {
	if j.lowered.Selection == nil {
		return j.Manifest.Partitions[index].Rows, nil
	}
	rows := j.lowered.Selection.Rows(index)
	return rows.Passing(), rows
}

// entry returns a partition's entry of the job's manifest, by its index.
func (j *job) entry(index int) (dataset.Partition, error) {
	if index < 0 || index >= len(j.Manifest.Partitions) {
		return dataset.Partition{}, fmt.Errorf("partition %d of %d", index, len(j.Manifest.Partitions))
	}
	return j.Manifest.Partitions[index], nil
}

// partition returns a partition of the job's manifest, by its index, as the drive holds it.
func (j *job) partition(d *Drive, index int) (*partition.Partition, error) {
	want, err := j.entry(index)
	if err != nil {
		return nil, err
	}
	part := d.partition(want.Name)
	if part == nil {
		return nil, fmt.Errorf("drive %s does not hold partition %s: %w", d.name, want.Name, ErrNotHeld)
	}
	if why := differs(part.Describe(), want); why != "" {
		return nil, &ChangedError{Drive: d.name, Partition: want.Name, Why: why}
	}
	return part, nil
}

// openPartition returns a partition of the job's manifest, by its index, as the drive holds it or reads it elsewhere.
// The caller calls done when it does not use the partition any more.
func (j *job) openPartition(ctx context.Context, d *Drive, index int) (*splitPartition, error) {
	if d.elsewhere == nil {
		held, err := j.partition(d, index)
		if err != nil {
			return nil, err
		}
		return &splitPartition{Partition: held, done: func() {},
			checkUnchanged: func(context.Context) error { return d.CheckUnchanged(held) },
			failed:         func(ctx context.Context, err error) error { return d.explainFailure(ctx, held, err) }}, nil
	}
	want, err := j.entry(index)
	if err != nil {
		return nil, err
	}
	open, err := d.elsewhere.acquire(ctx, j.Digest, want)
	if err != nil {
		return nil, err
	}
	return &splitPartition{Partition: open.part, checkUnchanged: open.remote.CheckUnchanged,
		done: func() { d.elsewhere.release(open) },
		failed: func(ctx context.Context, err error) error {
			d.elsewhere.fail(ctx, open, err)
			return err
		}}, nil
}

// splitPartition is a partition while a split of it is made.
type splitPartition struct {
	*partition.Partition
	checkUnchanged func(ctx context.Context) error // returns an error when its bytes are not those of the manifest
	// failed notes an error of a read. It returns that error, or why the read failed.
	failed func(ctx context.Context, err error) error
	done   func()
}

// close ends the job's processors.
func (j *job) close() error {
	j.starting.Lock()
	defer j.starting.Unlock()
	j.mu.Lock()
	processors := j.processors
	j.processors = nil
	j.mu.Unlock()
	var errs []error
	for name, p := range processors {
		if err := p.Close(); err != nil {
			errs = append(errs, fmt.Errorf("drive %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
