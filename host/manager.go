package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/inventory"
	"github.com/millrace/millrace/host/rates"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// ErrSchema says that partitions of one data set do not have the same columns of the same types.
var ErrSchema = columntypes.ErrDisagree

// Options configure a Manager. The zero value works.
type Options struct {
	Logger *slog.Logger // nil: silent
	// MeasureTime is how long Measure times a drive at least; 0 means DefaultMeasureTime. A rate that has not settled
	// by then is measured up to steadyrate.Limit of it.
	MeasureTime time.Duration
	// MeasureShort has Measure time drives for jobs, too, that take less than api.ShortJob times as long as that.
	MeasureShort bool
	// Rates is a file in which P is kept, per drive, pipeline and image; "" keeps it in memory.
	Rates string
	// Now is the clock that P is measured on: that of drives with a modelled timing. nil: time.Now.
	Now func() time.Time
}

// DefaultMeasureTime is long enough for a few mini-batches of the largest workload on a software drive.
const DefaultMeasureTime = 500 * time.Millisecond

// Manager owns the drives of a node and serves jobs from them: it is PreSto's preprocess manager. It implements
// api.Storage.
type Manager struct {
	o     Options
	rates *rates.Kept

	preparing sync.Mutex // held by Prepare and Finish: one at a time

	inventoryMu sync.Mutex // guards the inventory, and is held while the drives are listed
	inventory   *inventory.Inventory
	versions    []heldVersion // versions are those of what the inventory says.

	mu     sync.Mutex
	drives []*Drive // replaced, never changed
	jobs   map[dataset.Digest]*job
}

var (
	_ api.Storage = (*Manager)(nil)
	_ api.Elastic = (*Manager)(nil)
)

// NewManager takes the drives over; Close closes them. The drives may hold several data sets: a job names the
// partitions that it is over (api.Job.Manifest), and only those must agree. Two drives of one name are refused.
func NewManager(o Options, drives ...*Drive) (*Manager, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MeasureTime <= 0 {
		o.MeasureTime = DefaultMeasureTime
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Manager{o: o, rates: rates.Open(o.Rates, o.Logger), jobs: map[dataset.Digest]*job{}}
	for _, d := range drives {
		if err := m.AddDrive(d); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Drives returns the drives, in the order in which they were added.
func (m *Manager) Drives() []*Drive {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.drives
}

// AddDrive takes a drive over. Prepared jobs use it from their next split on, where it holds their partitions.
func (m *Manager) AddDrive(d *Drive) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.drives {
		if other.name == d.name {
			return fmt.Errorf("two drives are called %s", d.name)
		}
	}
	m.drives = append(slices.Clip(m.drives), d)
	m.o.Logger.Info("drive", "drive", d.name, "partitions", len(d.Partitions()), "compute", d.Computes(),
		"threads", d.threads())
	return nil
}

// RemoveDrive closes a drive, and before that the processors of jobs on it. The drive's streams must be closed, and
// the mini-batches that it lent released.
func (m *Manager) RemoveDrive(name string) error {
	m.mu.Lock()
	i := slices.IndexFunc(m.drives, func(d *Drive) bool { return d.name == name })
	if i < 0 {
		m.mu.Unlock()
		return fmt.Errorf("drive %s: %w", name, api.ErrUnknownDrive)
	}
	d := m.drives[i]
	m.drives = slices.Concat(m.drives[:i], m.drives[i+1:])
	m.mu.Unlock()
	return errors.Join(m.stopJobs(d), d.Close())
}

// stopJobs ends the processors of all jobs on a drive.
func (m *Manager) stopJobs(d *Drive) error {
	m.mu.Lock()
	jobs := slices.Collect(maps.Values(m.jobs))
	m.mu.Unlock()
	var errs []error
	for _, j := range jobs {
		errs = append(errs, j.stop(d))
	}
	return errors.Join(errs...)
}

// Rescan reads the members of the drives' volumes again.
func (m *Manager) Rescan(ctx context.Context) error {
	var errs []error
	for _, d := range m.Drives() {
		errs = append(errs, d.Rescan(ctx))
	}
	return errors.Join(errs...)
}

// Dataset returns the partitions of the drives as one data set. If partitions disagree, the error wraps ErrSchema.
// For a node with several data sets there is Inventory.
func (m *Manager) Dataset(context.Context) (*api.Dataset, error) { return describe(m.Drives(), nil) }

// Prepare lowers the job's pipeline and gives the program to every drive that holds a partition of the job. The error
// of a partition that differs from the job's manifest is a *ChangedError. The error of a digest that is not that of the
// job's manifest, pipeline and plan is ErrDigest. If a drive has no memory left for another job, the error wraps
// sdk.ErrSLMFull and api.ErrTaken, unless the job is elastic and another drive has room for it.
func (m *Manager) Prepare(ctx context.Context, spec *api.Job) error {
	m.preparing.Lock()
	defer m.preparing.Unlock()
	m.mu.Lock()
	_, ok := m.jobs[spec.Digest]
	drives := m.drives
	m.mu.Unlock()
	if ok {
		return nil
	}
	j, data, err := m.lower(ctx, drives, spec)
	if err != nil {
		return fmt.Errorf("prepare job: %w", err)
	}
	n := 0
	var taken error // the first drive that others have
	for i, d := range drives {
		if j.hasManifest && len(data.Drives[i].Partitions) == 0 && !d.ReachesAny() {
			continue
		}
		_, err := j.processor(ctx, d)
		switch {
		case err == nil, errors.Is(err, ErrSuspended):
			n++
			continue
		case !spec.Elastic || !errors.Is(err, api.ErrTaken):
			return errors.Join(fmt.Errorf("prepare job: drive %s: %w", d.name, err), j.close())
		case taken == nil:
			taken = fmt.Errorf("prepare job: drive %s: %w", d.name, err)
		}
	}
	if n == 0 && taken != nil {
		return errors.Join(taken, j.close())
	}
	m.mu.Lock()
	m.jobs[spec.Digest] = j
	m.mu.Unlock()
	m.o.Logger.Info("prepared", "digest", ShortDigest(spec.Digest), "drives", n)
	return nil
}

// job returns a prepared job.
func (m *Manager) job(digest dataset.Digest) (*job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, ok := m.jobs[digest]
	if !ok {
		return nil, fmt.Errorf("job %s: %w", digest, api.ErrUnknownJob)
	}
	return j, nil
}

// drive returns a drive by name.
func (m *Manager) drive(name string) (*Drive, error) {
	for _, d := range m.Drives() {
		if d.name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("drive %s: %w", name, api.ErrUnknownDrive)
}

// find returns a prepared job, one of its drives, and the job's processor there.
func (m *Manager) find(ctx context.Context, digest dataset.Digest,
	drive string) (*job, *Drive, *driveProcessor, error) {
	j, d, err := m.jobOn(digest, drive)
	if err != nil {
		return nil, nil, nil, err
	}
	p, err := j.processor(ctx, d)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("drive %s: %w", drive, err)
	}
	return j, d, p, nil
}

// Jobs returns the digests of the prepared jobs, sorted.
func (m *Manager) Jobs() []dataset.Digest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Keys(m.jobs), func(a, b dataset.Digest) int { return bytes.Compare(a[:], b[:]) })
}

// Plan returns the plan of an epoch of a prepared job.
func (m *Manager) Plan(digest dataset.Digest, epoch uint64) (*dataset.Plan, error) {
	j, err := m.job(digest)
	if err != nil {
		return nil, err
	}
	return j.plan(epoch)
}

// jobOn returns a job and a drive.
func (m *Manager) jobOn(digest dataset.Digest, drive string) (*job, *Drive, error) {
	j, err := m.job(digest)
	if err != nil {
		return nil, nil, err
	}
	d, err := m.drive(drive)
	return j, d, err
}

// Restart ends a job's processor on a drive, so that the job's next split there gets a new one. That is needed when
// the drive has forgotten its state for this host, as it does when its connection breaks. The job's streams on the
// drive must be closed, and the mini-batches that they lent released.
func (m *Manager) Restart(digest dataset.Digest, drive string) error {
	j, d, err := m.jobOn(digest, drive)
	if err != nil {
		return err
	}
	return j.stop(d)
}

// Acquire implements api.Elastic.
func (m *Manager) Acquire(ctx context.Context, digest dataset.Digest, drive string) error {
	_, _, _, err := m.find(ctx, digest, drive)
	return err
}

// Release implements api.Elastic.
func (m *Manager) Release(_ context.Context, digest dataset.Digest, drive string) error {
	j, d, err := m.jobOn(digest, drive)
	if err != nil {
		return err
	}
	return j.release(d)
}

// ErrSuspended says that a drive holds nothing for jobs now, because it gets another image.
var ErrSuspended = errors.New("the drive is suspended: its jobs wait")

// Suspend takes everything that jobs hold on a drive away, and keeps jobs from using it until Resume. The streams on
// the drive must be closed, and the mini-batches that they lent released.
func (m *Manager) Suspend(drive string) error {
	m.preparing.Lock() // a job in the making may hold something
	defer m.preparing.Unlock()
	d, err := m.drive(drive)
	if err != nil {
		return err
	}
	d.setSuspended(true)
	return m.stopJobs(d)
}

// Resume lets jobs use a drive again. The drive may have another image now.
func (m *Manager) Resume(ctx context.Context, drive string) error {
	d, err := m.drive(drive)
	if err != nil {
		return err
	}
	d.readActiveImage(ctx)
	d.setSuspended(false)
	return nil
}

func (d *Drive) setSuspended(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.suspended = on
}

func (d *Drive) isSuspended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.suspended
}

// Measure measures P of a drive, on the drive's own partitions of the job. It keeps as many streams open as the job may
// have there, so that moves, executions and fetches overlap as they will in the job. A drive without rows yields an
// error.
func (m *Manager) Measure(ctx context.Context, digest dataset.Digest, drive string) (api.Measurement, error) {
	rate, _, err := m.Rate(ctx, digest, drive, RateOptions{Again: true})
	return rate, err
}

// RateOptions say how P is measured. The zero value takes an earlier measurement.
type RateOptions struct {
	Again bool // measure again even if P was measured before
	// JobRows is how many rows the drive makes of the job; 0: as api.Job says.
	JobRows int64
	// On says where the partition to measure on can be read, for a drive of reach any; nil: any partition of the job.
	On *api.Source
}

// Rate returns P of a drive for a job: as it was measured before for the same drive, engine, pipeline, image and
// mini-batch (kept), or, always with RateOptions.Again, as it is measured now. A P that was measured while the drive
// had other streams open is returned and not kept. One that did not settle is kept for an hour.
func (m *Manager) Rate(ctx context.Context, digest dataset.Digest, drive string,
	o RateOptions) (rate api.Measurement, kept bool, err error) {
	j, d, p, err := m.find(ctx, digest, drive)
	if err != nil {
		return rate, false, err
	}
	key := rates.Key{Drive: d.rateIdentity(), Engine: string(d.engine), Pipeline: j.pipeline.String(), Image: d.image(),
		Batch: j.Plan.Batch, Threads: d.threads(), Streams: d.streams()}
	if d.Computes() {
		key.Commands = d.computer().Info().Commands
	}
	if !o.Again {
		if rate, ok := m.rates.Get(key); ok {
			j.mu.Lock()
			p.rate = rate
			j.mu.Unlock()
			return rate, true, nil
		}
	}
	meter := &meter{job: j, drive: d, processor: p, least: m.o.MeasureTime, on: o.On, clock: m.o.Now}
	if !m.o.MeasureShort {
		meter.jobRows = cmp.Or(o.JobRows, j.Rows)
	}
	alone := d.Running() == 0
	before := p.Stats()
	rate, made, err := meter.measure(ctx)
	if err != nil {
		return rate, false, fmt.Errorf("drive %s: measure P: %w", drive, err)
	}
	counted, err := d.counters(ctx)
	if err != nil {
		return rate, false, fmt.Errorf("drive %s: measure P: %w", drive, err)
	}
	j.mu.Lock()
	p.rate, p.counted = rate, counted
	if d.elsewhere == nil {
		p.measured = p.Stats()
	} else { // a worker joins jobs that run, and is measured while it makes splits, which stay in its reports
		p.measured = p.measured.Add(p.Stats().Sub(before).Share(made))
	}
	j.mu.Unlock()
	if alone && d.Running() == 0 && !rate.Short {
		m.rates.Put(key, rate)
	}
	level, message := slog.LevelInfo, "measured P"
	switch {
	case rate.Short:
		message = "measured P of the first mini-batches alone: the job is short"
	case !rate.Settled:
		level, message = slog.LevelWarn, "measured P, which has not settled: other work on the machine may disturb it; "+
			"measure longer"
	}
	m.o.Logger.Log(ctx, level, message, "digest", ShortDigest(digest), "drive", drive,
		"p_rows_per_second", rate.RowsPerSecond, "spread_share", rate.Spread, "rows", rate.Rows)
	return rate, false, nil
}

// Open opens a stream of a split. Its error wraps api.ErrBusy when the job has as many streams on the drive as it may,
// ErrNotHeld when the drive does not hold the partition, and ErrChanged when it holds another one of the name.
func (m *Manager) Open(ctx context.Context, request api.SplitRequest) (api.Stream, error) {
	j, d, p, err := m.find(ctx, request.Job, request.Drive)
	if err != nil {
		return nil, err
	}
	if d.elsewhere == nil { // a partition that the drive does not hold is not waited for
		if _, err := j.partition(d, request.Split.Partition); err != nil {
			return nil, fmt.Errorf("drive %s: split %d: %w", d.name, request.Split.Position, err)
		}
	}
	if !j.enterProcessor(p, d.streams()) {
		return nil, fmt.Errorf("drive %s: %w", d.name, api.ErrBusy)
	}
	part, err := j.openPartition(ctx, d, request.Split.Partition)
	if err != nil {
		j.leaveProcessor(p)
		return nil, fmt.Errorf("drive %s: split %d: %w", d.name, request.Split.Position, err)
	}
	s, err := j.openStream(ctx, p, request, part)
	if err != nil {
		part.done()
		j.leaveProcessor(p)
		return nil, err
	}
	return s, nil
}

// Report returns the drives' reports of the job.
func (m *Manager) Report(ctx context.Context, digest dataset.Digest) ([]api.DriveReport, error) {
	j, err := m.job(digest)
	if err != nil {
		return nil, err
	}
	var list []api.DriveReport
	for _, d := range m.Drives() {
		j.mu.Lock()
		p, ok := j.processors[d.name]
		if !ok {
			p, ok = j.released[d.name]
		}
		if !ok || p.drive != d {
			j.mu.Unlock()
			continue
		}
		rate, work, counted := p.rate, p.work(), p.counted
		j.mu.Unlock()
		r, err := d.report(ctx, work, counted)
		if err != nil {
			return nil, fmt.Errorf("drive %s: %w", d.name, err)
		}
		r.RowsPerSecond, r.Spread = rate.RowsPerSecond, rate.Spread
		r.LookedUpInDrive, r.LookedUpByHost = p.inDrive, p.behind
		list = append(list, r)
	}
	return list, nil
}

// Finish forgets a job.
func (m *Manager) Finish(_ context.Context, digest dataset.Digest) error {
	m.preparing.Lock()
	defer m.preparing.Unlock()
	m.mu.Lock()
	j, ok := m.jobs[digest]
	delete(m.jobs, digest)
	drives := m.drives
	m.mu.Unlock()
	if !ok {
		return fmt.Errorf("job %s: %w", digest, api.ErrUnknownJob)
	}
	err := j.close()
	if j.elsewhere != nil {
		j.elsewhere.Forget(digest) // its drive may be gone for now
	}
	for _, d := range drives {
		if d.elsewhere != nil {
			d.elsewhere.forget(digest)
		}
	}
	return err
}

// Close finishes every job and closes the drives.
func (m *Manager) Close() error {
	m.mu.Lock()
	jobs, drives := m.jobs, m.drives
	m.jobs, m.drives = map[dataset.Digest]*job{}, nil
	m.mu.Unlock()
	var errs []error
	for _, j := range jobs {
		errs = append(errs, j.close())
	}
	for _, d := range drives {
		errs = append(errs, d.Close())
	}
	return errors.Join(errs...)
}
