package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// ErrSchema says that partitions of one data set do not have the columns of the same type.
var ErrSchema = errors.New("partitions disagree")

// Options configure a Manager. The zero value works.
type Options struct {
	Logger *slog.Logger // nil: silent
	// MeasureTime is how long Measure times a drive at least; 0 means DefaultMeasureTime.
	MeasureTime time.Duration
}

// DefaultMeasureTime is long enough for a few mini-batches of the largest workload on a software drive.
const DefaultMeasureTime = 500 * time.Millisecond

// Manager owns the drives of a node and serves jobs from them: PreSto's preprocess manager. It implements api.Storage.
type Manager struct {
	o      Options
	drives []*Drive
	data   *api.Dataset

	mu   sync.Mutex
	jobs map[dataset.Digest]*job
}

var _ api.Storage = (*Manager)(nil)

// job is a prepared job.
type job struct {
	api.Job
	manager *Manager
	lowered lowered

	mu         sync.Mutex
	processors map[string]*processor // by drive; set once. Their fields are guarded by mu
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
	rate     api.Measurement
	measured sdk.Stats     // what Measure did, which no report counts
	counted  *api.Counters // what the drive had counted by then; nil where it does not compute
	running  int           // open splits
}

// enter counts a split of the job in; false when the drive runs as many of them as it takes. Another job on the drive has its own
// share of the memory.
func (j *job) enter(p *processor, streams int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if p.running >= streams {
		return false
	}
	p.running++
	return true
}

// leave counts a split out.
func (j *job) leave(p *processor) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p.running--
}

// NewManager takes the drives over; Close closes them. The data set is what they hold together: a partition of the
// same name on several drives must be the same partition.
func NewManager(o Options, drives ...*Drive) (*Manager, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MeasureTime <= 0 {
		o.MeasureTime = DefaultMeasureTime
	}
	m := &Manager{o: o, drives: drives, jobs: map[dataset.Digest]*job{}}
	data, err := describe(drives)
	if err != nil {
		return nil, err
	}
	m.data = data
	for _, d := range data.Drives {
		o.Logger.Info("drive", "drive", d.Name, "partitions", len(d.Partitions), "compute", d.Compute, "threads", d.Threads)
	}
	return m, nil
}

// describe makes the data set of what drives hold.
func describe(drives []*Drive) (*api.Dataset, error) {
	entries := map[string]dataset.Partition{}
	first := map[string]*Drive{}
	var schema schema
	data := &api.Dataset{}
	seen := map[string]bool{}
	for _, d := range drives {
		if seen[d.name] {
			return nil, fmt.Errorf("two drives are called %s", d.name)
		}
		seen[d.name] = true
		for _, p := range d.partitions {
			e := p.Describe()
			if other, ok := entries[e.Name]; ok {
				if other.Bytes != e.Bytes || other.Rows != e.Rows || other.Footer != e.Footer {
					return nil, fmt.Errorf("%w: %s on drive %s and on drive %s are different files", ErrSchema, e.Name, first[e.Name].name, d.name)
				}
				continue
			}
			entries[e.Name], first[e.Name] = e, d
			if err := schema.add(p, d.o.Text); err != nil {
				return nil, err
			}
			if malformed := program.Malformed(d.o.Text.Policy); len(entries) == 1 {
				data.Malformed = malformed
			} else if data.Malformed != malformed {
				return nil, fmt.Errorf("%w: drives treat malformed rows differently", ErrSchema)
			}
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%d drives hold no partition: put some there first (millrace drive put)", len(drives))
	}
	list := make([]dataset.Partition, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	var err error
	if data.Manifest, err = dataset.NewManifest(list); err != nil {
		return nil, err
	}
	data.Columns, data.MeanLength = schema.columns, schema.meanLength()
	for _, d := range drives {
		ad := api.Drive{Name: d.name, Compute: d.Computes(), Threads: d.threads(), Streams: d.streams()}
		for _, p := range d.partitions {
			ad.Partitions = append(ad.Partitions, data.Manifest.Find(p.Name))
		}
		sort.Ints(ad.Partitions)
		data.Drives = append(data.Drives, ad)
	}
	return data, nil
}

// Dataset tells what the drives hold.
func (m *Manager) Dataset(context.Context) (*api.Dataset, error) { return m.data, nil }

// Prepare lowers the job's pipeline and gives every drive its program.
func (m *Manager) Prepare(ctx context.Context, spec *api.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.jobs[spec.Digest]; ok {
		return nil
	}
	resolved, err := spec.Pipeline.Resolve(m.data.Columns)
	if err != nil {
		return fmt.Errorf("prepare job: %w", err)
	}
	resolved.Malformed = m.data.Malformed
	var l lowered
	if l.program, l.schema, err = pipeline.Lower(resolved); err != nil {
		return fmt.Errorf("prepare job: %w", err)
	}
	j := &job{Job: *spec, manager: m, lowered: l, processors: map[string]*processor{}, plans: map[uint64]*dataset.Plan{}}
	for _, d := range m.drives {
		counted, err := d.counters(ctx)
		if err != nil {
			return errors.Join(fmt.Errorf("prepare job: drive %s: %w", d.name, err), j.close())
		}
		p, err := d.processor(ctx, l)
		if err != nil {
			return errors.Join(fmt.Errorf("prepare job: drive %s: %w", d.name, err), j.close())
		}
		j.processors[d.name] = &processor{Processor: p, counted: counted}
	}
	m.jobs[spec.Digest] = j
	m.o.Logger.Info("prepared", "job", spec.Digest.String()[:12], "drives", len(m.drives))
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
	p, err := dataset.NewPlan(j.manager.data.Manifest, o)
	if err != nil {
		return nil, err
	}
	clear(j.plans) // epochs follow each other; one plan is kept
	j.plans[epoch] = p
	return p, nil
}

// close ends the job's processors.
func (j *job) close() error {
	var errs []error
	for name, p := range j.processors {
		if err := p.Close(); err != nil {
			errs = append(errs, fmt.Errorf("drive %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// find returns a prepared job and one of its drives.
func (m *Manager) find(digest dataset.Digest, drive string) (*job, *Drive, *processor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, ok := m.jobs[digest]
	if !ok {
		return nil, nil, nil, fmt.Errorf("job %s: %w", digest, api.ErrUnknownJob)
	}
	for _, d := range m.drives {
		if d.name == drive {
			return j, d, j.processors[drive], nil
		}
	}
	return nil, nil, nil, fmt.Errorf("drive %s: %w", drive, api.ErrUnknownDrive)
}

// Measure times a drive on its own partitions. It runs as many splits at once as the drive takes, so that moves,
// executions and fetches overlap as they will in the job. A drive without rows yields an error.
func (m *Manager) Measure(ctx context.Context, digest dataset.Digest, drive string) (api.Measurement, error) {
	j, d, p, err := m.find(digest, drive)
	if err != nil {
		return api.Measurement{}, err
	}
	meter := &meter{job: j, drive: d, processor: p, least: m.o.MeasureTime}
	rate, err := meter.measure(ctx)
	if err != nil {
		return api.Measurement{}, fmt.Errorf("drive %s: measure P: %w", drive, err)
	}
	counted, err := d.counters(ctx)
	if err != nil {
		return api.Measurement{}, fmt.Errorf("drive %s: measure P: %w", drive, err)
	}
	j.mu.Lock()
	p.rate, p.measured, p.counted = rate, p.Stats(), counted
	j.mu.Unlock()
	m.o.Logger.Info("measured P", "job", digest.String()[:12], "drive", drive, "p_rows_per_second", rate.RowsPerSecond)
	return rate, nil
}

// Open begins a split.
func (m *Manager) Open(ctx context.Context, order api.Order) (api.Stream, error) {
	j, d, p, err := m.find(order.Job, order.Drive)
	if err != nil {
		return nil, err
	}
	if order.Split.Partition < 0 || order.Split.Partition >= len(m.data.Manifest.Partitions) {
		return nil, fmt.Errorf("drive %s: split %d names partition %d of %d", d.name, order.Split.Place, order.Split.Partition, len(m.data.Manifest.Partitions))
	}
	part := d.partition(m.data.Manifest.Partitions[order.Split.Partition].Name)
	if part == nil {
		return nil, fmt.Errorf("drive %s does not hold partition %s", d.name, m.data.Manifest.Partitions[order.Split.Partition].Name)
	}
	if !j.enter(p, d.streams()) {
		return nil, fmt.Errorf("drive %s: %w", d.name, api.ErrBusy)
	}
	w, err := j.open(ctx, d, p, order, part)
	if err != nil {
		j.leave(p)
		return nil, err
	}
	return w, nil
}

// Report tells what the drives did for the job.
func (m *Manager) Report(ctx context.Context, digest dataset.Digest) ([]api.DriveReport, error) {
	m.mu.Lock()
	j, ok := m.jobs[digest]
	m.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("job %s: %w", digest, api.ErrUnknownJob)
	}
	var list []api.DriveReport
	for _, d := range m.drives {
		p := j.processors[d.name]
		j.mu.Lock()
		rate, measured, counted := p.rate, p.measured, p.counted
		j.mu.Unlock()
		r, err := d.report(ctx, p.Stats().Sub(measured), counted)
		if err != nil {
			return nil, fmt.Errorf("drive %s: %w", d.name, err)
		}
		r.RowsPerSecond = rate.RowsPerSecond
		list = append(list, r)
	}
	return list, nil
}

// Finish forgets a job.
func (m *Manager) Finish(_ context.Context, digest dataset.Digest) error {
	m.mu.Lock()
	j, ok := m.jobs[digest]
	delete(m.jobs, digest)
	m.mu.Unlock()
	if !ok {
		return fmt.Errorf("job %s: %w", digest, api.ErrUnknownJob)
	}
	return j.close()
}

// Close finishes every job and closes the drives.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, j := range m.jobs {
		errs = append(errs, j.close())
	}
	clear(m.jobs)
	for _, d := range m.drives {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}

// meter measures P.
type meter struct {
	job       *job
	drive     *Drive
	processor *processor
	least     time.Duration
}

// measure runs the drive's splits, over and over, until enough time has passed and every stream has made a mini-batch.
func (m *meter) measure(ctx context.Context) (api.Measurement, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		rows  int64
		first error
		begin = time.Now()
	)
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return rows > 0 && time.Since(begin) >= m.least
	}
	for i := range m.drive.streams() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := m.run(ctx, i, func(n int) bool {
				mu.Lock()
				rows += int64(n)
				mu.Unlock()
				return !enough()
			})
			if err != nil {
				mu.Lock()
				if first == nil { // the others end because of it
					first = err
				}
				mu.Unlock()
				cancel()
			}
		}()
	}
	wg.Wait()
	elapsed := time.Since(begin)
	switch {
	case first != nil:
		return api.Measurement{}, first
	case rows == 0:
		return api.Measurement{}, errors.New("it holds no rows")
	}
	return api.Measurement{RowsPerSecond: float64(rows) / elapsed.Seconds(), Rows: rows, Elapsed: elapsed}, nil
}

// run preprocesses the drive's partitions from the i-th on until more says stop.
func (m *meter) run(ctx context.Context, i int, more func(rows int) bool) error {
	batch := m.job.Plan.Batch
	for turn := 0; ; turn++ {
		part := m.drive.partitions[(i+turn)%len(m.drive.partitions)]
		if part.Rows == 0 {
			if turn >= len(m.drive.partitions) {
				return nil
			}
			continue
		}
		s, err := m.processor.Open(ctx, sdk.Run{Partition: part, Rows: part.Rows, Batch: batch})
		if err != nil {
			return err
		}
		for {
			mb, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return errors.Join(err, s.Close())
			}
			n := mb.Rows
			mb.Release()
			if !more(n) {
				return s.Close()
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
}
