package trainmgr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/combined"
	"github.com/millrace/millrace/trainmgr/offload"
	"github.com/millrace/millrace/trainmgr/pacer"
	"github.com/millrace/millrace/trainmgr/sidemeter"
)

// The groups of workers in a shared schedule.
const (
	remoteGroup = iota // the group that NewSchedule makes
	localGroup
)

// pacerMargin is the factor by which the limit of the local side exceeds the CPUs that the trainer leaves free, because
// both are measured with errors.
const pacerMargin = 1.1

// tunePeriod is the time between two decisions of the tuner about a running job.
const tunePeriod = time.Second

// splitSharing is the state, kept from epoch to epoch, of a job that divides its splits between two sides.
type splitSharing struct {
	options *Offload
	storage *combined.Storage
	logger  *slog.Logger
	now     func() time.Time

	// allocateShared sets the fields below, before the first epoch.
	decision                  offload.Decision
	metrics                   *offload.Metrics
	localSupply, remoteSupply float64
	trainerThroughput         float64 // T or Gthp; 0: not known
	// cpuOfMiniBatch is the CPU seconds of a local mini-batch, as the profile foretells; 0: not known.
	cpuOfMiniBatch float64
	remoteWorkers  []allocation.Worker // workers elsewhere whose P is known
	sides          []remoteSide        // one for each storage elsewhere
	pace           float64             // expected rows a second
	maxDrives      int
	begun          time.Time
	known          offload.Known // metrics that the store already had
	profileTime    time.Duration
	profileLeftOut bool // the job is too short for it

	pacer pacer.Pacer // limits the local side

	mu       sync.Mutex // guards the fields below
	counters *offload.Counters
	tuner    *offload.Tuner // nil if the ratio is fixed
	tuned    time.Time      // time of the tuner's last decision
	// limited is the time at which the limit of the local side was computed last, and limitedRows is the number of rows
	// that both sides had made at that time.
	limited     time.Time
	limitedRows float64
	meters      [2]sidemeter.Meter // by offload.Side
	splits      [2]uint64          // started splits, by offload.Side
	epochRows   float64            // epochRows counts the splits of the present epoch.
	redone      uint64
	retunings   int
	away        bool // a failure of the drives was logged, and no drive has made a split since
	// remoteCount is the number of drives elsewhere that have been found so far.
	remoteCount int
}

// newSplitSharing returns the state of a job before its first epoch. remote may be nil.
func newSplitSharing(o *Options, remote api.Storage) *splitSharing {
	s := &splitSharing{options: &o.Offload, logger: o.Logger, now: time.Now, maxDrives: o.MaxDrives,
		counters: offload.NewCounters(0), pacer: pacer.Pacer{Now: time.Now}}
	if s.options.RetryAfter == 0 {
		s.options.RetryAfter = DefaultRetryAfter
	}
	parts := []combined.Part{{Storage: remote, Cut: o.Offload.firstCut()}}
	for _, also := range o.Offload.Also {
		parts = append(parts, combined.Part{Storage: also.Storage, Cut: also.Cut})
	}
	s.storage = combined.New(o.Offload.Local, parts, o.Logger)
	return s
}

// cut returns the cut: the part of the pipeline that the storage elsewhere in use runs.
func (s *splitSharing) cut() offload.Cut { return s.storage.InUse().Cut }

// decide returns the fixed share, or the decision of the policy.
func (s *splitSharing) decide(m offload.Metrics) (offload.Decision, error) {
	if s.options.Ratio == nil {
		return offload.Decide(s.options.Policy, m)
	}
	ratio := *s.options.Ratio
	d := offload.Decision{Offload: ratio > 0, Ratio: ratio, Raw: ratio,
		Why: fmt.Sprintf("the job fixes the share of the drives at %g", ratio)}
	if d.Offload {
		d.Cut = s.cut()
	}
	return d, nil
}

// start makes the counters and the tuner of the decision.
func (s *splitSharing) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = s.now()
	s.counters = offload.NewCounters(s.decision.Ratio)
	s.pacer.Refresh = s.limitLocal
	if s.options.Ratio == nil && s.options.Policy == offload.Extended { // the other policies decide once
		s.tuner = offload.NewTuner(s.decision.Ratio)
	}
}

// remoteThroughput returns Rthp of the cut, if it was profiled.
func (s *splitSharing) remoteThroughput() float64 {
	for _, c := range s.metrics.Candidates {
		if c.Cut == s.cut() {
			return c.Rthp
		}
	}
	return 0
}

// remoteDrives returns how many drives elsewhere have to run at once to make a share of the rows. s.mu is held.
func (s *splitSharing) remoteDrives(ratio float64) int {
	if ratio == 0 {
		return 0
	}
	a, err := allocation.Allocate(ratio*s.pace, s.remoteWorkers, s.maxDrives)
	switch {
	case err == nil && len(s.remoteWorkers) == s.remoteCount:
		return a.Drives
	case s.maxDrives > 0:
		return min(s.maxDrives, s.remoteCount)
	}
	return s.remoteCount // P of some drives is not known
}

// report returns how the splits have been divided so far.
func (s *splitSharing) report() *OffloadReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &OffloadReport{Decision: s.decision, Metrics: s.metrics, Ratio: s.counters.Ratio(), Retunings: s.retunings,
		LocalRows: s.meters[offload.Local].Read().Rows, RemoteRows: s.meters[offload.Remote].Read().Rows,
		LocalSplits: s.splits[offload.Local], RemoteSplits: s.splits[offload.Remote], Redone: s.redone,
		RemoteAway: s.away, Known: s.known, ProfileSeconds: s.profileTime.Seconds(),
		ProfileLeftOut: s.profileLeftOut}
	if s.metrics != nil {
		r.FreeCores = offload.FreeCores(*s.metrics, s.pace)
	}
	paced := s.pacer.State()
	r.LocalLimit, r.LocalCPUSeconds, r.LocalWaitSeconds = paced.Cores, paced.Used, paced.Waited.Seconds()
	r.LimitedBy = "pacing"
	if paced.Cores == 0 {
		r.LimitedBy = "none"
	}
	return r
}

// newSchedule makes the schedule of an epoch: one group of the drives elsewhere and one of the trainer's own
// workers. drives lists the drives elsewhere first.
func (s *splitSharing) newSchedule(planOrder bool, drives []api.Drive) *allocation.Schedule {
	var remote, local []int
	for _, d := range drives {
		if d.Local {
			local = append(local, d.Streams)
		} else {
			remote = append(remote, d.Streams)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters.Restart()
	schedule := allocation.NewSchedule(planOrder, s.remoteDrives(s.counters.Ratio()), remote) // group remoteGroup
	schedule.AddGroup(len(local), local)                                                      // group localGroup
	return schedule
}

// limitLocal limits the local side, once a second, to the CPUs that the trainer leaves free at the job's present
// throughput. There is no limit if no profile has measured the trainer's CPU time.
func (s *splitSharing) limitLocal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.metrics == nil || s.metrics.Tcycle == 0 || s.metrics.Cores == 0 || now.Sub(s.limited) < tunePeriod {
		return
	}
	rows := float64(s.meters[offload.Local].Read().Rows + s.meters[offload.Remote].Read().Rows)
	rate := s.pace
	if !s.limited.IsZero() {
		rate = (rows - s.limitedRows) / now.Sub(s.limited).Seconds()
	}
	s.limited, s.limitedRows = now, rows
	cores := pacerMargin * offload.FreeCores(*s.metrics, rate)
	if s.pacer.State().Cores == 0 {
		s.logger.Info("the trainer's own workers are paced to the CPU time that the trainer leaves free", "cores", cores)
	}
	s.pacer.SetLimit(cores)
}

// tune lets the tuner decide once a second. changed reports whether the tuner changed the ratio.
func (s *splitSharing) tune(queue QueueStatus, remoteAway bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.tuner == nil || now.Sub(s.tuned) < tunePeriod {
		return false
	}
	s.tuned = now
	local, remote := s.meters[offload.Local].Read(), s.meters[offload.Remote].Read()
	r := s.tuner.Decide(offload.Inputs{
		Seconds: now.Sub(s.begun).Seconds(), StallSeconds: queue.Stall.Seconds(), TakenRows: float64(queue.TakenRows),
		EpochRows: s.epochRows,
		LocalRows: float64(local.Rows), RemoteRows: float64(remote.Rows),
		LocalBusy: local.Busy.Seconds(), RemoteBusy: remote.Busy.Seconds(),
		LocalSupply: s.localSupply, RemoteSupply: s.remoteSupply, RemoteAway: remoteAway,
		LocalThroughput: s.metrics.Lthp, RemoteThroughput: s.remoteThroughput(), TrainerThroughput: s.trainerThroughput,
	})
	if s.options.Record != nil {
		s.options.Record(r)
	}
	if !r.Decision.Changed {
		return false
	}
	s.counters.SetRatio(r.Decision.Ratio)
	s.retunings++
	s.logger.Info("share of the drives", "ratio", r.Decision.Ratio, "why", r.Decision.Why)
	return true
}

// sayAway logs that drives failed. It logs again only after a drive has made a split.
func (s *splitSharing) sayAway(err error, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return
	}
	s.away = true
	text := "a drive is away: the others and the trainer's own CPUs make its splits"
	if all {
		text = "no drive and no worker is there: everything is local"
	}
	s.logger.Warn(text, "error", err)
}

// sayUnused logs, if err is not nil, that a storage elsewhere could not be used. others says whether another one can.
func (s *splitSharing) sayUnused(err error, others bool) {
	switch {
	case err == nil:
	case others:
		s.logger.Warn("a storage elsewhere is away: the policy chooses among the others", "error", err)
	default:
		s.sayAway(err, true)
	}
}

// sayBack logs that a drive made a split again.
func (s *splitSharing) sayBack(drive string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		s.away = false
		s.logger.Info("drives and workers are there again", "drive", drive)
	}
}

// noteRedone counts a split that a drive did not make.
func (s *splitSharing) noteRedone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redone++
}

// sharedPieces starts the splits of one epoch on the two groups of its schedule, at the ratio of the counters.
type sharedPieces struct {
	*storagePieces
	splitSharing *splitSharing
	delivery     Delivery
	ctx          context.Context // It ends with the iteration.
	joining      sync.WaitGroup  // the goroutine that looks for drives

	// storagePieces.mu guards the fields below.
	drives    []api.Drive          // by the schedule's index of the worker
	running   map[int]*sharedPiece // by the schedule's index of the split
	suspended map[int]bool         // by the schedule's index of the worker: workers that are away
	retryAt   time.Time            // when to look for drives that are away
	looking   bool                 // a goroutine looks for drives that are away
}

// begin makes the sharedPieces of an epoch.
func (s *splitSharing) begin(ctx context.Context, pieces *storagePieces, delivery Delivery) *sharedPieces {
	shared := &sharedPieces{storagePieces: pieces, splitSharing: s, delivery: delivery, ctx: ctx,
		drives: slices.Clone(pieces.source.data.Drives), running: map[int]*sharedPiece{}, suspended: map[int]bool{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epochRows = 0
	for _, r := range pieces.requests {
		s.epochRows += float64(r.Split.Rows)
	}
	if s.away {
		for w, d := range shared.drives {
			if !d.Local {
				shared.suspend(w)
			}
		}
		shared.retryAt = s.now().Add(s.options.RetryAfter)
	}
	if s.tuner != nil {
		shared.joining.Go(shared.keepTuning)
	}
	return shared
}

// keepTuning lets the tuner decide until the epoch is over, also when every split has been made and the trainer still
// takes mini-batches from the input queue.
func (s *sharedPieces) keepTuning() {
	ticker := time.NewTicker(tunePeriod / 4) // a decision is due at most that much later than a period after the last
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			return
		}
		queue := s.delivery.Status().Queue
		s.mu.Lock()
		s.tune(queue)
		s.mu.Unlock()
	}
}

// tune lets the tuner decide, if a decision is due. storagePieces.mu is held.
func (s *sharedPieces) tune(queue QueueStatus) {
	share := s.splitSharing
	if share.tune(queue, !s.remoteThere()) {
		share.mu.Lock()
		s.schedule.SetLimit(remoteGroup, share.remoteDrives(share.counters.Ratio()))
		share.mu.Unlock()
	}
}

// suspend keeps a worker from starting splits. storagePieces.mu is held, or no other goroutine has the pieces yet.
func (s *sharedPieces) suspend(worker int) {
	s.schedule.Suspend(worker)
	s.suspended[worker] = true
}

// Next implements Pieces. It waits until the side whose turn it is can start a split.
func (s *sharedPieces) Next(ctx context.Context) (Piece, error) {
	ticker := time.NewTicker(tunePeriod)
	defer ticker.Stop()
	for {
		piece, changed, over := s.startPiece(s.delivery.Status().Queue)
		switch {
		case piece != nil:
			return piece, nil
		case over:
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// startPiece starts a split if a split can start now. over is true if every split has ended.
func (s *sharedPieces) startPiece(queue QueueStatus) (piece *sharedPiece, changed <-chan struct{}, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := s.splitSharing
	s.lookForDrives()
	s.tune(queue)
	if s.schedule.Pending() == 0 {
		return nil, s.changed.Changed(), s.schedule.Running() == 0
	}
	share.mu.Lock()
	side := share.counters.Next()
	share.mu.Unlock()
	forced := false
	group := remoteGroup
	if side == offload.Local {
		group = localGroup
	}
	if !s.schedule.CanServe(group) { // this side holds none of the splits that are left, or is away
		forced = true
		group, side = localGroup, offload.Local
	}
	split, worker, ok := s.schedule.StartIn(group)
	if !ok && s.schedule.Stalled() { // the trainer waits for the split: its side no longer matters
		forced, side = true, offload.Local
		if split, worker, ok = s.schedule.StartIn(localGroup); !ok {
			s.revokeLast()
		}
	}
	if !ok {
		return nil, s.changed.Changed(), false
	}
	share.mu.Lock()
	defer share.mu.Unlock()
	if forced {
		share.counters.Restart()
	} else {
		share.counters.Count(side)
	}
	share.splits[side]++
	piece = &sharedPiece{storagePiece: s.newPiece(split, s.drives[worker].Name), shared: s, worker: worker, side: side}
	piece.ctx, piece.revoke = context.WithCancelCause(s.ctx)
	s.running[split] = piece
	return piece, nil, false
}

// errRevoked ends a piece on the trainer's own CPUs that waits for room in the input queue while the trainer waits for
// an earlier split.
var errRevoked = errors.New("an earlier split comes first")

// revokeLast takes the last split in plan order from the trainer's own CPUs, if the split waits for room in the input
// queue. Another piece brings the rest of the split later. storagePieces.mu is held.
func (s *sharedPieces) revokeLast() {
	last := -1
	for split, piece := range s.running {
		if piece.side == offload.Local {
			last = max(last, split)
		}
	}
	if last >= 0 {
		s.running[last].revoke(errRevoked)
	}
}

// remoteThere reports whether any drive elsewhere is available. storagePieces.mu is held.
func (s *sharedPieces) remoteThere() bool {
	for w, d := range s.drives {
		if !d.Local && !s.suspended[w] {
			return true
		}
	}
	return false
}

// lookForDrives starts a search for the drives that are away, if a search is due. storagePieces.mu is held.
func (s *sharedPieces) lookForDrives() {
	if s.looking || s.splitSharing.storage.InUse().Storage == nil || len(s.suspended) == 0 && s.remoteThere() ||
		s.splitSharing.now().Before(s.retryAt) {
		return
	}
	s.looking = true
	s.joining.Go(func() {
		drives, err := s.splitSharing.storage.Join(s.ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.looking = false
		s.retryAt = s.splitSharing.now().Add(s.splitSharing.options.RetryAfter)
		if err != nil {
			s.splitSharing.logger.Debug("looked for drives", "error", err)
			return
		}
		for _, d := range drives {
			s.welcome(d)
		}
		s.changed.Broadcast()
	})
}

// welcome lets a returned drive start splits. storagePieces.mu is held.
func (s *sharedPieces) welcome(drive api.Drive) {
	worker := slices.IndexFunc(s.drives, func(d api.Drive) bool { return d.Name == drive.Name })
	if worker >= 0 {
		s.schedule.Resume(worker)
		delete(s.suspended, worker)
		return
	}
	var held []int
	for split, request := range s.requests {
		if slices.Contains(drive.Partitions, request.Split.Partition) {
			held = append(held, split)
		}
	}
	s.schedule.AddWorker(remoteGroup, drive.Streams, held)
	s.drives = append(s.drives, drive)
	s.source.data.Drives = slices.Insert(s.source.data.Drives, 0, drive) // for the next epoch
	s.schedule.LimitRuns(s.source.maxRuns())
	share := s.splitSharing
	share.mu.Lock()
	defer share.mu.Unlock()
	share.remoteCount++
	s.schedule.SetLimit(remoteGroup, share.remoteDrives(share.counters.Ratio()))
}

// Close implements Pieces. The iteration's context has ended.
func (s *sharedPieces) Close() error {
	s.joining.Wait()
	return s.storagePieces.Close()
}

// sharedPiece is a split on one of the two sides.
type sharedPiece struct {
	*storagePiece
	shared *sharedPieces
	worker int
	side   offload.Side
	ctx    context.Context // It ends the waits for room.
	revoke context.CancelCauseFunc
}

// Open implements Piece.
func (p *sharedPiece) Open(ctx context.Context) (api.Stream, error) { return p.openShared(ctx, p) }

// End implements Piece. A split that a drive elsewhere did not finish begins again on the trainer's own CPUs or
// another drive: the delivery recognizes mini-batches that it already has by their numbers, and takes each of them
// once. An error of the trainer's own CPUs ends the job.
func (p *sharedPiece) End(err error) error {
	s := p.shared
	p.revoke(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p.split)
	switch {
	case err == nil && p.side == offload.Remote:
		s.splitSharing.sayBack(p.Drive())
		fallthrough
	case err == nil, s.ctx.Err() != nil:
		s.schedule.End(p.split)
	case errors.Is(err, errRevoked):
		s.schedule.Return(p.split)
		err = nil
	case p.side == offload.Local:
		s.schedule.End(p.split)
	default:
		s.schedule.Return(p.split)
		s.suspend(p.worker)
		s.retryAt = s.splitSharing.now().Add(s.splitSharing.options.RetryAfter)
		s.splitSharing.sayAway(err, !s.remoteThere())
		s.splitSharing.noteRedone()
		err = nil
	}
	s.changed.Broadcast()
	return err
}
