package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/offload"
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
		return math.Max((1+warmupShare)*DefaultProfileTime.Seconds(),
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

// measured holds the measurements of a pass.
type measured struct {
	rowsPerSecond float64
	cpuPerRow     float64 // processor seconds of this process
}

// measure fills in the unknown metrics. If the trainer does not stall, measure leaves out the workers (Algorithm 1,
// lines 3 and 4).
func (p *profiler) measure(ctx context.Context, m *offload.Metrics, known offload.Known,
	gthp float64) (have offload.Known, err error) {
	have = known
	if !known.Model {
		alone, err := p.trainer(ctx)
		if err != nil {
			return have, err
		}
		m.Gthp, m.Tcycle, m.Cores, have.Model = alone.rowsPerSecond, alone.cpuPerRow, processors.Available(), true
		if gthp > 0 {
			m.Gthp = gthp // of all ranks, measured the same way
		}
	}
	if !known.Pipeline {
		both, pipeline, err := p.side(ctx, true)
		if err != nil {
			return have, err
		}
		m.Lthp, m.Pcycle, m.Supply, have.Pipeline = both.rowsPerSecond, pipeline.cpuPerRow, pipeline.rowsPerSecond, true
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
		c := offload.Candidate{Cut: side.cut, Rthp: both.rowsPerSecond, Ocycle: pipeline.cpuPerRow,
			Supply: pipeline.rowsPerSecond}
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

// dummy makes a mini-batch of the job's size.
func (p *profiler) dummy() (*tensor.MiniBatch, error) {
	s := p.source
	return Dummy(s.schema, s.firstEpoch.Plan.Options().Batch, s.data.MeanLength)
}

// queueDepth returns how many mini-batches wait for the trainer at most in a pass of some streams: a split of each, as
// far as the job's input queue has room. A drive makes the mini-batches of a slice at once, and in the job the queue
// lets the trainer go on meanwhile.
func (p *profiler) queueDepth(streams int) (int, error) {
	dummy, err := p.dummy()
	if err != nil {
		return 0, err
	}
	room := p.source.options.QueueBytes / max(dummy.Bytes(), 1)
	wanted := int64(streams) * int64(p.source.firstEpoch.Plan.Options().SplitBatches)
	return int(max(1, min(wanted, room))), nil
}

// trainer times the trainer alone: every step gets the same mini-batch.
func (p *profiler) trainer(ctx context.Context) (measured, error) {
	dummy, err := p.dummy()
	if err != nil {
		return measured{}, err
	}
	window := newWindow(p.steps, 2, p.time)
	for !window.whole() {
		if err := errors.Join(p.run(ctx, dummy), ctx.Err()); err != nil {
			return measured{}, err
		}
		window.count(dummy.Rows, time.Now(), processors.Time())
	}
	return window.measured(), nil
}

// side times one side: everything local or everything elsewhere, with the trainer, and then without it.
func (p *profiler) side(ctx context.Context, local bool) (both, pipeline measured, err error) {
	var drives []api.Drive
	for _, d := range p.source.data.Drives {
		if d.Local == local && len(d.Partitions) > 0 {
			drives = append(drives, d)
		}
	}
	if limit := p.source.options.MaxDrives; !local && limit > 0 {
		drives = drives[:min(limit, len(drives))]
	}
	if both, err = p.pass(ctx, drives, p.run); err != nil {
		return both, pipeline, err
	}
	pipeline, err = p.pass(ctx, drives, nil)
	return both, pipeline, err
}

// errPassOver ends the streams of a pass.
var errPassOver = errors.New("the profile has what it needs")

// pass takes mini-batches of some drives, with a step of the trainer on each or without one, and times them. It
// begins at the first split that a drive holds, and starts over when the splits are used up.
func (p *profiler) pass(ctx context.Context, drives []api.Drive,
	step func(ctx context.Context, mb *tensor.MiniBatch) error) (measured, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errPassOver)
	var streams sync.WaitGroup
	held := make([][]dataset.Split, len(drives))
	concurrent := 0
	for i, d := range drives {
		held[i] = p.splitsOn(d)
		concurrent += min(max(d.Streams, 1), len(held[i]))
	}
	if concurrent == 0 {
		return measured{}, fmt.Errorf("%w: no split is there to profile with", ErrOptions)
	}
	depth, err := p.queueDepth(concurrent)
	if err != nil {
		return measured{}, err
	}
	batches := make(chan *tensor.MiniBatch, depth)
	for i, d := range drives {
		splits := held[i]
		var next atomic.Int64
		for range min(max(d.Streams, 1), len(splits)) {
			streams.Go(func() {
				for ctx.Err() == nil {
					split := splits[int(next.Add(1)-1)%len(splits)]
					if err := p.takeSplit(ctx, d, split, batches); err != nil {
						cancel(err)
					}
				}
			})
		}
	}
	defer func() {
		cancel(errPassOver)
		streams.Wait()
		for len(batches) > 0 {
			(<-batches).Release()
		}
	}()
	window := newWindow(p.steps, 2+2*concurrent, p.time)
	for !window.whole() {
		select {
		case mb := <-batches:
			rows := mb.Rows
			var err error
			if step != nil {
				err = step(ctx, mb)
			}
			mb.Release()
			if err != nil {
				return measured{}, err
			}
			window.count(rows, time.Now(), processors.Time())
		case <-ctx.Done():
			return measured{}, context.Cause(ctx)
		}
	}
	return window.measured(), nil
}

// splitsOn returns the splits of the first epoch that a drive holds and that have rows.
func (p *profiler) splitsOn(d api.Drive) (splits []dataset.Split) {
	held := map[int]bool{}
	for _, partition := range d.Partitions {
		held[partition] = true
	}
	for split := range p.source.firstEpoch.Plan.All() {
		if held[split.Partition] && split.MiniBatches > 0 {
			splits = append(splits, split)
		}
	}
	return splits
}

// takeSplit passes on the mini-batches of a split until the pass is over.
func (p *profiler) takeSplit(ctx context.Context, d api.Drive, split dataset.Split,
	batches chan<- *tensor.MiniBatch) (err error) {
	stream, err := p.source.storage.Open(ctx, api.SplitRequest{Job: p.source.digest, Drive: d.Name,
		Epoch: p.source.firstEpoch.Number, Split: split})
	if err != nil {
		return fmt.Errorf("drive %s: %w", d.Name, err)
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for {
		mb, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("drive %s: %w", d.Name, err)
		}
		select {
		case batches <- mb:
		case <-ctx.Done():
			mb.Release()
			return context.Cause(ctx)
		}
	}
}

// window is the part of a pass that counts: the mini-batches after the warm-up. It has at least steps mini-batches and
// lasts for least. The warm-up has a number of mini-batches and lasts for a share of least: a side that starts has
// empty buffers, and fills them while the trainer's first steps run.
type window struct {
	steps, warmup int
	least         time.Duration
	seen          int
	rows          int64
	started       time.Time // when the first mini-batch was counted
	begun         time.Time // end of the warm-up; zero: still in it
	begunAt       int       // mini-batches of the warm-up
	begunCPU      time.Duration
	took, tookCPU time.Duration
}

const (
	warmupShare = 0.25 // of the least time of a window
	// mostSteps bounds a window, in multiples of its steps, where the clock stands still.
	mostSteps = 1000
)

func newWindow(steps, warmup int, least time.Duration) *window {
	return &window{steps: steps, warmup: warmup, least: least}
}

// count counts a mini-batch that the trainer is done with at a time, with the processor time of this process so far.
func (w *window) count(rows int, now time.Time, cpu time.Duration) {
	w.seen++
	if w.started.IsZero() {
		w.started = now
	}
	if w.begunAt == 0 {
		warm := now.Sub(w.started) >= time.Duration(warmupShare*float64(w.least)) || w.seen >= mostSteps*w.steps
		if w.seen >= w.warmup && warm {
			w.begun, w.begunCPU, w.begunAt = now, cpu, w.seen
		}
		return
	}
	w.rows += int64(rows)
	w.took, w.tookCPU = now.Sub(w.begun), cpu-w.begunCPU
}

// whole reports whether the window has enough mini-batches and time.
func (w *window) whole() bool {
	if w.begunAt == 0 {
		return false
	}
	counted := w.seen - w.begunAt
	return counted >= w.steps && w.took >= w.least || counted >= mostSteps*w.steps
}

// measured returns the measurements of the window.
func (w *window) measured() measured {
	seconds := math.Max(w.took.Seconds(), 1e-9) // the clock may stand still
	rows := math.Max(float64(w.rows), 1)
	return measured{rowsPerSecond: rows / seconds, cpuPerRow: math.Max(w.tookCPU.Seconds(), 0) / rows}
}
