package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// job is a prepared job.
type job struct {
	api.Job
	manager  *Manager
	lowered  lowered
	pipeline dataset.Digest // of its canonical form
	named    bool           // the manifest is the job's own, and may name partitions that are elsewhere

	starting sync.Mutex // held while a processor is made or replaced

	mu         sync.Mutex
	processors map[string]*processor // by drive. Their fields are guarded by mu
	plans      map[uint64]*dataset.Plan
}

// lowered is what a pipeline becomes: what drives run, and what comes out.
type lowered struct {
	program *program.Program
	schema  *tensor.Schema
}

// processor is a job's processor on one drive, and what was measured of it.
type processor struct {
	sdk.Processor
	drive    *Drive
	rate     api.Measurement
	measured sdk.Stats     // what Measure did, which no report counts
	counted  *api.Counters // what the drive had counted by then; nil where it does not compute
	running  int           // open splits
}

// enter counts a split of the job in; false when the drive runs as many of them as it takes. Another job on the drive
// has its own share of the memory.
func (j *job) enter(p *processor, streams int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.running >= streams {
		return false
	}
	p.running++
	p.drive.count(1)
	return true
}

// leave counts a split out.
func (j *job) leave(p *processor) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p.running--
	p.drive.count(-1)
}

// ErrDigest says that a job is called by another digest than its manifest, pipeline and plan have: the two sides do not
// read them alike.
var ErrDigest = errors.New("the job's digest is not that of its manifest, pipeline and plan")

// lower makes a job of what it should do and what the drives hold.
func (m *Manager) lower(drives []*Drive, spec *api.Job) (*job, *api.Dataset, error) {
	data, err := describe(drives, spec.Manifest)
	if err != nil {
		return nil, nil, err
	}
	resolved, err := spec.Pipeline.Resolve(data.Columns)
	if err != nil {
		return nil, nil, err
	}
	resolved.Malformed = data.Malformed
	j := &job{Job: *spec, manager: m, named: spec.Manifest != nil, processors: map[string]*processor{},
		plans: map[uint64]*dataset.Plan{}}
	j.Manifest, j.pipeline = data.Manifest, resolved.Digest()
	if j.lowered.program, j.lowered.schema, err = pipeline.Lower(resolved); err != nil {
		return nil, nil, err
	}
	if j.named {
		manifest, err := spec.Manifest.Digest()
		if err != nil {
			return nil, nil, err
		}
		digest, err := dataset.JobDigest(manifest, resolved.Canonical(), spec.Plan)
		if err != nil {
			return nil, nil, err
		}
		if digest != spec.Digest {
			return nil, nil, fmt.Errorf("%w: it is called %s, and is %s here; is this node as new as its control plane?", ErrDigest, spec.Digest, digest)
		}
	}
	return j, data, nil
}

// processor returns the job's processor on a drive, and makes one where there is none: a drive may have been added, or
// opened anew, since the job was prepared.
func (j *job) processor(ctx context.Context, d *Drive) (*processor, error) {
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
	started, err := d.processor(ctx, j.lowered)
	if err != nil {
		return nil, err
	}
	p = &processor{Processor: started, drive: d, counted: counted}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.processors == nil { // finished meanwhile
		return nil, errors.Join(fmt.Errorf("job %s: %w", j.Digest, api.ErrUnknownJob), started.Close())
	}
	j.processors[d.name] = p
	return p, nil
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
	p, err := dataset.NewPlan(j.Manifest, o)
	if err != nil {
		return nil, err
	}
	clear(j.plans) // epochs follow each other; one plan is kept
	j.plans[epoch] = p
	return p, nil
}

// partition finds a partition of the job's manifest on a drive.
func (j *job) partition(d *Drive, index int) (*sdk.Partition, error) {
	if index < 0 || index >= len(j.Manifest.Partitions) {
		return nil, fmt.Errorf("partition %d of %d", index, len(j.Manifest.Partitions))
	}
	want := j.Manifest.Partitions[index]
	part := d.partition(want.Name)
	if part == nil {
		return nil, fmt.Errorf("drive %s does not hold partition %s: %w", d.name, want.Name, ErrNotHeld)
	}
	if why := differs(part.Describe(), want); why != "" {
		return nil, &ChangedError{Drive: d.name, Partition: want.Name, Why: why}
	}
	return part, nil
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
