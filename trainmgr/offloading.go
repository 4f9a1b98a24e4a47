package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/combined"
	"github.com/millrace/millrace/trainmgr/offload"
)

// Offload shares the splits of a job between the storage that Submit is given and the trainer's own CPUs (FastFlow).
// It changes which side makes a split, and no byte of a mini-batch. The zero value shares nothing.
type Offload struct {
	// Local makes mini-batches on the trainer's own CPUs. It must hold every partition of the job, and makes the splits
	// that the storage that Submit is given does not make: that storage may hold some partitions only, fail, return, or
	// be nil.
	Local api.Storage
	// Policy decides which share leaves the trainer's machine.
	Policy offload.Policy
	// Cut is the part of the pipeline that the storage that Submit is given runs; 0 means offload.ReadAndTransforms,
	// which a drive under the launcher does.
	Cut offload.Cut
	// Also are further storages of the same partitions, each with a cut of its own. The job uses one storage elsewhere:
	// the policy chooses among them and the storage that Submit is given, before the first epoch, by a profile of each. If
	// the chosen one goes away, everything is local until it is back.
	Also []RemoteStorage
	// Ratio fixes the share of splits that the storage makes, 0 to 1; nil lets Policy decide, and change it while the
	// job runs.
	Ratio *float64
	// Metrics are what an earlier profile measured; nil means that the job measures: with Options.Ranks it profiles the
	// trainer and both sides, without Options.Ranks it decides from T and P.
	Metrics *offload.Metrics
	// Model names the model for Store: a model of another architecture has another name. Without a name nothing is
	// stored.
	Model string
	// Store keeps metrics from one job to the next, so that a job of the same model, pipeline and workers is not
	// profiled again; nil keeps none. metricfile.New makes one.
	Store MetricStore
	// ProfileSteps is how many mini-batches are counted in each of the five measurements at least; 0 means
	// DefaultProfileSteps. A job that takes less than api.ShortJob times as long as its profile has none, unless
	// ProfileSteps or ProfileTime is set.
	ProfileSteps int
	// ProfileTime is how long each of the five measurements lasts at least, after a warm-up of a quarter of it; 0 means
	// DefaultProfileTime.
	ProfileTime time.Duration
	// RetryAfter is how long a drive that failed is left alone; 0 means DefaultRetryAfter.
	RetryAfter time.Duration
	// Record receives every decision that is made while the job runs, one a second; offload.Replay takes them. Nil
	// discards them.
	Record func(offload.Record)
}

// MetricStore keeps the metrics of profiles from one job to the next.
type MetricStore interface {
	// Lookup returns the stored metrics of the keys.
	Lookup(keys offload.Keys) (offload.Metrics, offload.Known, error)
	// Put stores the metrics that have names.
	Put(keys offload.Keys, m offload.Metrics, have offload.Known) error
}

// RemoteStorage is a storage that makes mini-batches outside the trainer's CPUs, and the part of the pipeline that it
// runs.
type RemoteStorage struct {
	Storage api.Storage
	Cut     offload.Cut
}

// firstCut returns the cut of the storage that Submit is given.
func (o *Offload) firstCut() offload.Cut {
	if o.Cut == offload.None {
		return offload.ReadAndTransforms
	}
	return o.Cut
}

// DefaultRetryAfter is how long a drive that failed is left alone if Offload.RetryAfter is 0.
const DefaultRetryAfter = 5 * time.Second

// check refuses options that make no sense.
func (o *Offload) check(options *Options) error {
	switch {
	case o.Local == nil && (o.Ratio != nil || o.Metrics != nil || o.Record != nil || o.Cut != offload.None ||
		len(o.Also) > 0):
		return fmt.Errorf("%w: offloading needs Offload.Local, the trainer's own CPUs", ErrOptions)
	case o.Local == nil:
		return nil
	case o.Ratio != nil && !(*o.Ratio >= 0 && *o.Ratio <= 1):
		return fmt.Errorf("%w: offload ratio %v: want 0 to 1", ErrOptions, *o.Ratio)
	case o.Policy > offload.FastFlowCode:
		return fmt.Errorf("%w: offload %v", ErrOptions, o.Policy)
	case o.Cut > offload.All:
		return fmt.Errorf("%w: offload %v", ErrOptions, o.Cut)
	case o.RetryAfter < 0:
		return fmt.Errorf("%w: retry drives after %v", ErrOptions, o.RetryAfter)
	case o.ProfileSteps < 0:
		return fmt.Errorf("%w: a profile of %d mini-batches", ErrOptions, o.ProfileSteps)
	case o.ProfileTime < 0:
		return fmt.Errorf("%w: a profile of %v", ErrOptions, o.ProfileTime)
	case options.AllDrives && o.Ratio == nil:
		return fmt.Errorf("%w: AllDrives measures nothing: fix Offload.Ratio", ErrOptions)
	case o.Ratio != nil && len(o.Also) > 0:
		return fmt.Errorf("%w: a fixed share chooses no storage: leave Offload.Ratio or Offload.Also out", ErrOptions)
	}
	return o.checkCuts()
}

// checkCuts refuses further storages of which the policy could not choose one by its cut.
func (o *Offload) checkCuts() error {
	cuts := []offload.Cut{o.firstCut()}
	for _, also := range o.Also {
		switch {
		case also.Storage == nil:
			return fmt.Errorf("%w: a storage of Offload.Also is nil", ErrOptions)
		case also.Cut == offload.None || also.Cut > offload.All:
			return fmt.Errorf("%w: a storage of Offload.Also offloads %v: want %v to %v", ErrOptions, also.Cut,
				offload.Transforms, offload.All)
		case slices.Contains(cuts, also.Cut):
			return fmt.Errorf("%w: two storages have the cut %v: give the drives of one cut as one storage", ErrOptions,
				also.Cut)
		}
		cuts = append(cuts, also.Cut)
	}
	return nil
}

// OffloadReport describes how the splits were shared.
type OffloadReport struct {
	Decision offload.Decision `json:"decision"` // before the job
	Metrics  *offload.Metrics `json:"metrics,omitempty"`
	Ratio    float64          `json:"ratio"` // in force
	// Retunings counts how often the ratio changed while the job ran.
	Retunings    int    `json:"retunings"`
	LocalRows    int64  `json:"local_rows"`
	RemoteRows   int64  `json:"remote_rows"`
	LocalSplits  uint64 `json:"local_splits"`
	RemoteSplits uint64 `json:"remote_splits"`
	Redone       uint64 `json:"redone_splits"` // A drive began these splits, and they had to begin again.
	RemoteAway   bool   `json:"remote_away"`
	// Known reports which metrics the store had. They were not measured again.
	Known offload.Known `json:"known"`
	// ProfileLeftOut says that nothing was measured because the job takes less than api.ShortJob times as long as its
	// profile: the decision is from T and P of the first mini-batches.
	ProfileLeftOut bool `json:"profile_omitted"`
	// ProfileSeconds is how long the profile took, and ProfileShare its share of the whole so far.
	ProfileSeconds float64 `json:"profile_seconds"`
	ProfileShare   float64 `json:"profile_share"`
	// FreeCores is how much of a CPU the trainer leaves free for the local side, as measured; 0: not measured.
	FreeCores float64 `json:"free_cores"`
	// LocalLimit is how many CPU seconds a second the local side may use now, and LimitedBy what keeps it to that: pacing,
	// or none without a limit.
	LocalLimit float64 `json:"local_limit_cores"`
	LimitedBy  string  `json:"local_limit_method"`
	// LocalCPUSeconds is the CPU time of the local side's mini-batches, and LocalWaitSeconds how long its streams waited
	// for the limit, added up.
	LocalCPUSeconds  float64 `json:"local_cpu_seconds"`
	LocalWaitSeconds float64 `json:"local_wait_seconds"`
}

// allocateShared finds the drives elsewhere, chooses a storage of them, and decides their share and how many of them
// run at once.
func (s *storageSource) allocateShared(ctx context.Context) error {
	share := s.splitSharing
	own := s.data.Drives
	if err := s.findSides(ctx, own); err != nil {
		return err
	}
	s.turnTo(0, own)
	p, err := s.measureOwn(ctx, own)
	if err != nil {
		return err
	}
	profiles := share.options.Metrics == nil && share.options.Ratio == nil && len(s.options.Ranks) > 0
	rowsPerSecond := s.options.RowsPerSecond
	if !profiles || len(s.options.Ranks) > 1 { // of several ranks the slowest counts
		if rowsPerSecond, err = s.trainerThroughput(ctx, s.schema); err != nil {
			return err
		}
	}
	share.metrics = share.options.Metrics
	switch {
	case profiles:
		if share.metrics, err = s.profile(ctx, rowsPerSecond, own); err != nil {
			return err
		}
		rowsPerSecond = share.metrics.Gthp
	case share.metrics == nil:
		share.metrics = metricsOfRates(rowsPerSecond, share.localSupply, share.sides)
	}
	if share.decision, err = share.decide(*share.metrics); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	s.turnTo(share.chosen(), own)
	for _, worker := range share.remoteWorkers {
		p[worker.Name] = worker.RowsPerSecond
	}
	share.trainerThroughput = rowsPerSecond
	share.cpuOfMiniBatch = share.metrics.Pcycle * float64(s.firstEpoch.Plan.Options().Batch)
	share.start()
	if share.pace = share.decision.Expected; share.pace == 0 {
		share.pace = rowsPerSecond
	}
	share.mu.Lock()
	share.remoteCount = len(s.data.Drives) - len(own)
	running := share.remoteDrives(share.decision.Ratio) + len(own)
	share.mu.Unlock()
	s.allocated = allocation.Allocation{RowsPerSecond: rowsPerSecond, Drives: running, Wanted: running, P: p,
		Note: s.withShort(share.decision.Why)}
	rows := 0.0
	for i := range s.data.Manifest.Partitions {
		rows += float64(s.rows(i))
	}
	if rowsPerSecond > 0 && share.pace > 0 {
		s.allocated.TrainerTime = secondsOf(rows / rowsPerSecond)
		s.allocated.Time = secondsOf(rows / math.Min(share.pace, rowsPerSecond))
		s.allocated.ExpectedStall = s.allocated.Time - s.allocated.TrainerTime
	}
	s.options.Logger.Info("shared the splits", "digest", s.digest.String()[:12], "offload", share.decision.Offload,
		"cut", share.decision.Cut.String(), "ratio", share.decision.Ratio, "drives", running, "why",
		share.decision.Why)
	return nil
}

// secondsOf converts seconds to a Duration. It returns the longest Duration if the seconds do not fit into a
// Duration.
func secondsOf(seconds float64) time.Duration {
	if !(seconds < math.MaxInt64/float64(time.Second)) {
		return math.MaxInt64
	}
	return time.Duration(seconds * float64(time.Second))
}

// remoteSide is what a job knows of a storage elsewhere before it begins.
type remoteSide struct {
	cut     offload.Cut
	drives  []api.Drive
	workers []allocation.Worker // drives whose P is known
	supply  float64             // sum of their P
}

// turnTo makes the storage of a side the one elsewhere that the job uses. own are the trainer's own workers.
func (s *storageSource) turnTo(side int, own []api.Drive) {
	share := s.splitSharing
	share.storage.Use(side)
	s.data.Drives = slices.Concat(share.sides[side].drives, own)
	share.remoteWorkers, share.remoteSupply = share.sides[side].workers, share.sides[side].supply
}

// findSides finds the drives of every storage elsewhere, and measures P of each.
func (s *storageSource) findSides(ctx context.Context, own []api.Drive) error {
	share := s.splitSharing
	var away []error
	there := false
	for part := range share.storage.Parts() {
		share.storage.Use(part)
		drives, err := share.storage.Join(ctx)
		if mismatch := (*combined.MismatchError)(nil); errors.As(err, &mismatch) {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
		if err != nil {
			away = append(away, err)
		}
		there = there || len(drives) > 0
		side := remoteSide{cut: share.cut(), drives: drives}
		if err := s.measureSide(ctx, &side, own); err != nil {
			return err
		}
		share.sides = append(share.sides, side)
	}
	share.sayUnused(errors.Join(away...), there)
	return nil
}

// measureSide measures P of the drives of a side.
func (s *storageSource) measureSide(ctx context.Context, side *remoteSide, own []api.Drive) error {
	s.data.Drives = slices.Concat(side.drives, own)
	holders, err := s.countHolders()
	if err != nil || s.options.AllDrives {
		return err
	}
	for _, drive := range side.drives {
		worker, ok, err := s.measureDrive(ctx, drive, holders)
		if err != nil {
			s.splitSharing.sayAway(err, false)
			continue
		}
		if ok {
			side.workers = append(side.workers, worker)
			side.supply += worker.RowsPerSecond
		}
	}
	return nil
}

// measureOwn measures P of the trainer's own workers.
func (s *storageSource) measureOwn(ctx context.Context, own []api.Drive) (p map[string]float64, err error) {
	p = map[string]float64{}
	holders, err := s.countHolders()
	if err != nil || s.options.AllDrives {
		return p, err
	}
	for _, drive := range own {
		worker, ok, err := s.measureDrive(ctx, drive, holders)
		if err != nil {
			return nil, err
		}
		if ok {
			p[worker.Name] = worker.RowsPerSecond
			s.splitSharing.localSupply += worker.RowsPerSecond
		}
	}
	return p, nil
}

// chosen returns the side of the decision's cut. If nothing is offloaded, it is the side that makes most: the share may
// grow while the job runs.
func (s *splitSharing) chosen() (side int) {
	cut := s.decision.Cut
	if !s.decision.Offload {
		most := 0.0
		for _, c := range s.metrics.Candidates {
			if c.Rthp > most {
				cut, most = c.Cut, c.Rthp
			}
		}
	}
	return max(slices.IndexFunc(s.sides, func(side remoteSide) bool { return side.cut == cut }), 0)
}

// metricsOfRates makes metrics of T and of the sums of P, where no step was given to profile. The metrics contain no
// CPU times. A trainer of unknown speed counts as faster than all workers.
func metricsOfRates(t, local float64, sides []remoteSide) *offload.Metrics {
	if t <= 0 {
		most := 0.0
		for _, side := range sides {
			most = math.Max(most, side.supply)
		}
		t = 2 * (local + most)
	}
	m := &offload.Metrics{Gthp: t, Lthp: math.Min(t, local), Supply: local}
	for _, side := range sides {
		if side.supply > 0 {
			m.Candidates = append(m.Candidates, offload.Candidate{Cut: side.cut, Rthp: math.Min(t, side.supply),
				Supply: side.supply})
		}
	}
	return m
}
