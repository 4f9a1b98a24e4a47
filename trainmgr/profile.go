package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/offload"
	"github.com/millrace/millrace/trainmgr/profilepass"
)

// DefaultProfileSteps is how many mini-batches are counted in each measurement of a profile at least if
// Offload.ProfileSteps is 0: "profiling 50 ~ 100 steps (batches) leads to high accuracy with small overheads"
// (FastFlow, 5.1).
const DefaultProfileSteps = 50

// DefaultProfileTime is how long each measurement of a profile lasts at least if Offload.ProfileTime is 0. The steps of
// FastFlow's models take a tenth of a second and more, so that 50 of them last for seconds. Where steps take
// milliseconds, 50 of them are less than a pipeline holds in its buffers and less than a few periods of a CPU quota
// (0.1 s each on Linux).
const DefaultProfileTime = time.Second

// profile measures the metrics of FastFlow, or takes those that the store has. It runs no mini-batch of the job: the
// passes over the data are forgotten, and the trainer's step works on a copy of the model or between its snapshot and
// the restore. gthp is T, which was measured before; own are the trainer's own workers.
func (s *storageSource) profile(ctx context.Context, gthp float64, own []api.Drive) (m *offload.Metrics, err error) {
	share := s.splitSharing
	begun := time.Now()
	defer func() { share.profileTime = time.Since(begun) }()
	keys := s.metricKeys(own)
	stored := offload.Metrics{}
	if share.options.Store != nil && share.options.Model != "" {
		if stored, share.known, err = share.options.Store.Lookup(keys); err != nil {
			share.logger.Warn("stored metrics are not used", "error", err)
			stored, share.known = offload.Metrics{}, offload.Known{}
		}
	}
	measures := !share.known.All() && (!share.known.Model || !share.known.Pipeline || stored.Gthp > stored.Lthp)
	if measures && share.options.ProfileSteps == 0 && share.options.ProfileTime == 0 {
		if m, err = s.withoutProfile(ctx, gthp); m != nil || err != nil {
			return m, err
		}
	}
	step := s.options.Ranks[0]
	if step.Snapshot != nil && !share.known.All() {
		restore, snapshotErr := step.Snapshot()
		if snapshotErr != nil {
			return nil, fmt.Errorf("profile: snapshot: %w", snapshotErr)
		}
		defer func() {
			if restoreErr := restore(); restoreErr != nil {
				m, err = nil, errors.Join(err, fmt.Errorf("profile: restore: %w", restoreErr))
			}
		}()
	}
	p := profiler{source: s, own: own, run: step.Run, steps: share.options.ProfileSteps, time: share.options.ProfileTime}
	if p.steps == 0 {
		p.steps = DefaultProfileSteps
	}
	if p.time == 0 {
		p.time = DefaultProfileTime
	}
	have, err := p.measure(ctx, &stored, share.known, gthp)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if share.options.Store != nil && share.options.Model != "" && !share.known.All() {
		if err := share.options.Store.Put(keys, stored, have); err != nil {
			share.logger.Warn("metrics are not stored", "error", err)
		}
	}
	return &stored, nil
}

// withoutProfile returns the metrics that T and P give, if the job takes less than api.ShortJob times as long as its
// profile, by P and by T or two steps of the trainer. It returns nil if the job is long enough.
func (s *storageSource) withoutProfile(ctx context.Context, t float64) (*offload.Metrics, error) {
	share, batch := s.splitSharing, s.firstEpoch.Plan.Options().Batch
	if t == 0 {
		dummy, err := Dummy(s.schema, batch, s.data.MeanLength)
		if err != nil {
			return nil, err
		}
		t, err = Throughput(ctx, dummy, ThroughputOptions{Time: 1, Steps: 1, Warmup: 1, Now: s.options.Throughput.Now},
			s.options.Ranks[0])
		if err != nil {
			return nil, fmt.Errorf("profile: %w", err)
		}
	}
	pass := func(rowsPerSecond float64) float64 { // the seconds that a measurement takes
		return math.Max((1+profilepass.WarmupShare)*DefaultProfileTime.Seconds(),
			DefaultProfileSteps*float64(batch)/math.Max(rowsPerSecond, 1))
	}
	most, profile := 0.0, pass(t)+2*pass(math.Min(t, share.localSupply))
	for _, side := range share.sides {
		if most = math.Max(most, side.supply); side.supply > 0 {
			profile += 2 * pass(math.Min(t, side.supply))
		}
	}
	if s.jobRows()/math.Min(t, share.localSupply+most) >= api.ShortJob*profile {
		return nil, nil
	}
	share.profileLeftOut = true
	return metricsOfRates(t, share.localSupply, share.sides), nil
}

// metricKeys returns the keys of the job's metrics.
func (s *storageSource) metricKeys(own []api.Drive) offload.Keys {
	parts := offload.KeyParts{
		Model: s.splitSharing.options.Model, Batch: s.firstEpoch.Plan.Options().Batch, Pipeline: s.canonical,
		Machine: fmt.Sprintf("%s/%s, %d processors, %.2f usable", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
			processors.Available()),
	}
	worker := func(d *api.Drive) string {
		return fmt.Sprintf("%s, compute %v, %d threads, %d streams", d.Name, d.Compute, d.Threads, d.Streams)
	}
	for i := range own {
		parts.Machine += "; " + worker(&own[i])
	}
	for _, side := range s.splitSharing.sides {
		for i := range side.drives {
			parts.Workers = append(parts.Workers, fmt.Sprintf("%v, %s", side.cut, worker(&side.drives[i])))
		}
	}
	return parts.Keys()
}

// profiler measures one job.
type profiler struct {
	source *storageSource
	own    []api.Drive
	run    func(ctx context.Context, mb *tensor.MiniBatch) error
	steps  int
	time   time.Duration
}

// measure fills in the unknown metrics. If the trainer does not stall, measure leaves out the workers (Algorithm 1,
// lines 3 and 4).
func (p *profiler) measure(ctx context.Context, m *offload.Metrics, known offload.Known,
	gthp float64) (have offload.Known, err error) {
	have = known
	if !known.Model {
		passes, err := p.passes()
		if err != nil {
			return have, err
		}
		alone, err := passes.Trainer(ctx)
		if err != nil {
			return have, err
		}
		m.Gthp, m.Tcycle, m.Cores, have.Model = alone.RowsPerSecond, alone.CPUPerRow, processors.Available(), true
		if gthp > 0 {
			m.Gthp = gthp // of all ranks, measured the same way
		}
	}
	if !known.Pipeline {
		both, pipeline, err := p.side(ctx, true)
		if err != nil {
			return have, err
		}
		m.Lthp, m.Pcycle, m.Supply, have.Pipeline = both.RowsPerSecond, pipeline.CPUPerRow, pipeline.RowsPerSecond, true
	}
	if known.Remote || m.Gthp <= m.Lthp {
		return have, nil
	}
	m.Candidates, have.Remote = p.candidates(ctx, m.Pcycle > 0)
	return have, nil
}

// candidates measures each storage elsewhere that has a drive with partitions. all is false if there is none, or if one
// could not be measured. Without CPU times, which some platforms do not report, the candidates have none either.
func (p *profiler) candidates(ctx context.Context, cpuTimes bool) (list []offload.Candidate, all bool) {
	share := p.source.splitSharing
	var failed []error
	for i, side := range share.sides {
		if !slices.ContainsFunc(side.drives, func(d api.Drive) bool { return len(d.Partitions) > 0 }) {
			continue
		}
		p.source.turnTo(i, p.own)
		both, pipeline, err := p.side(ctx, false)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		c := offload.Candidate{Cut: side.cut, Rthp: both.RowsPerSecond, Ocycle: pipeline.CPUPerRow,
			Supply: pipeline.RowsPerSecond}
		if !cpuTimes {
			c.Ocycle = 0
		}
		list = append(list, c)
	}
	if len(failed) > 0 && len(list) == 0 {
		share.sayAway(errors.Join(failed...), false)
	} else {
		share.sayUnused(errors.Join(failed...), true)
	}
	return list, len(failed) == 0 && len(list) > 0
}

// passes returns the passes of the profile.
func (p *profiler) passes() (*profilepass.Passes, error) {
	s := p.source
	dummy, err := Dummy(s.schema, s.firstEpoch.Plan.Options().Batch, s.data.MeanLength)
	if err != nil {
		return nil, err
	}
	return &profilepass.Passes{
		Storage: s.storage, Job: s.digest, Epoch: s.firstEpoch.Number, Plan: s.firstEpoch.Plan, Dummy: dummy,
		QueueBytes: s.options.QueueBytes, Step: p.run, Steps: p.steps, Time: p.time,
	}, nil
}

// side times one side: everything local or everything elsewhere, with the trainer, and then without it.
func (p *profiler) side(ctx context.Context, local bool) (both, pipeline profilepass.Rates, err error) {
	var drives []api.Drive
	for _, d := range p.source.data.Drives {
		if d.Local == local && len(d.Partitions) > 0 {
			drives = append(drives, d)
		}
	}
	if limit := p.source.options.MaxDrives; !local && limit > 0 {
		drives = drives[:min(limit, len(drives))]
	}
	passes, err := p.passes()
	if err == nil {
		both, pipeline, err = passes.Side(ctx, drives)
	}
	if errors.Is(err, profilepass.ErrNoSplit) {
		err = fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return both, pipeline, err
}
