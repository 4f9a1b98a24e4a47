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
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// Autoscale lets the number of drives that run at once follow the trainer while the job runs, by the law of package
// autoscale. A job takes drives and gives them up: what it holds on a drive that it does not need is freed, so that a
// region of a drive can be another job's meanwhile. The mini-batches and their names stay the same. The zero value
// scales nothing: ceil(T/P) drives run.
type Autoscale struct {
	// Every is the time between two decisions on Options.Now; 0 scales nothing. The law's times are multiples of it: with
	// a second they are those of package autoscale.
	Every time.Duration
	// Record receives every decision; nil discards them.
	Record func(autoscale.Record)
}

// check refuses options that contradict the autoscaler.
func (a *Autoscale) check(o *Options) error {
	switch {
	case a.Every < 0:
		return fmt.Errorf("%w: decide every %v how many drives run: want more than 0", ErrOptions, a.Every)
	case a.Every == 0:
		return nil
	case o.AllDrives:
		return fmt.Errorf("%w: AllDrives runs every drive, and Autoscale decides how many run: give one of the two",
			ErrOptions)
	case o.Offload.Local != nil:
		return fmt.Errorf("%w: Autoscale and Offload both decide how many drives run: give one of the two", ErrOptions)
	}
	return nil
}

// law returns the law's constants, in seconds of the job's clock.
func (a *Autoscale) law() autoscale.Options {
	every := a.Every.Seconds()
	return autoscale.Options{Up: autoscale.DefaultUp * every, Down: autoscale.DefaultDown * every,
		Probe: autoscale.DefaultProbe * every, Settle: autoscale.DefaultSettle * every,
		Smooth: autoscale.DefaultSmooth * every}
}

// AutoscaleReport describes how the number of drives followed the trainer.
type AutoscaleReport struct {
	Decisions int    `json:"decisions"`
	Changes   int    `json:"changes"`         // decisions after which another number of drives could run
	Drives    int    `json:"drives"`          // Drives is how many can run at once now.
	Fewest    int    `json:"drives_minimum"`  // so far
	Most      int    `json:"drives_maximum"`  // so far
	Taken     int    `json:"drives_acquired"` // how often the job took a drive that it had not
	Given     int    `json:"drives_released"` // how often it gave one up
	Refused   int    `json:"drives_refused"`  // how often others had a drive that it would have taken
	Why       string `json:"reason"`          // Why is the reason for the last change.
}

// scaling is the autoscaler of a job, from epoch to epoch.
type scaling struct {
	options *Autoscale
	storage api.Elastic // nil: drives cannot be given up
	job     *storageSource
	logger  *slog.Logger
	now     func() time.Time

	mu         sync.Mutex // guards the fields below
	controller *autoscale.Controller
	begun      time.Time // begun is the time of the first decision.
	decided    time.Time
	maxDrives  int
	sum        AutoscaleReport
	held       []bool // by drive: the job has it
}

// newScaling makes the autoscaler of a job whose drives are known.
func newScaling(s *storageSource) *scaling {
	c := &scaling{options: &s.options.Autoscale, job: s, logger: s.options.Logger, now: s.options.Now,
		controller: autoscale.New(s.options.Autoscale.law()), maxDrives: s.options.MaxDrives,
		held: make([]bool, len(s.data.Drives))}
	c.storage, _ = s.storage.(api.Elastic)
	for d, drive := range s.data.Drives {
		c.held[d] = !slices.Contains(s.takenByOthers, drive.Name) // it was prepared
	}
	return c
}

// report returns what was decided so far.
func (c *scaling) report() *AutoscaleReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.sum
	return &r
}

// SetMaxDrives changes Options.MaxDrives while the job runs, 0 means no bound. The next decision of the autoscaler
// follows it. It is an error for a job without Options.Autoscale.
func (j *Job) SetMaxDrives(n int) error {
	source, ok := j.source.(*storageSource)
	switch {
	case !ok || source.scaling == nil:
		return fmt.Errorf("%w: the number of drives is fixed without Autoscale", ErrOptions)
	case n < 0:
		return fmt.Errorf("%w: at most %d drives", ErrOptions, n)
	}
	source.scaling.mu.Lock()
	defer source.scaling.mu.Unlock()
	source.scaling.maxDrives = n
	return nil
}

// bounds of the time between two looks at the job's clock, which may be slower than the machine's.
const (
	fastestLook = time.Millisecond
	slowestLook = 250 * time.Millisecond
)

// decide decides how many drives run, if a decision is due. decided reports whether one was made.
func (c *scaling) decide(in autoscale.Inputs, queue QueueStatus) (drives int, decided bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if !c.decided.IsZero() && now.Sub(c.decided) < c.options.Every {
		return 0, false
	}
	if c.begun.IsZero() {
		c.begun = now
	}
	c.decided = now
	a := &c.job.allocated
	in.Seconds, in.T, in.MaxDrives = now.Sub(c.begun).Seconds(), a.RowsPerSecond, c.maxDrives
	for _, p := range a.P {
		in.P += p / float64(len(a.P))
	}
	in.QueueBatches, in.Blocked = float64(queue.MiniBatches), queue.Full
	if queue.Bytes > 0 {
		in.QueueLimit = float64(queue.LimitBytes) / float64(queue.Bytes) * in.QueueBatches
	}
	in.StallSeconds, in.Rows = queue.Stall.Seconds(), float64(queue.TakenRows)
	r := c.controller.Decide(in)
	if c.options.Record != nil {
		c.options.Record(r)
	}
	drives = r.Decision.Drives
	if c.sum.Decisions++; c.sum.Decisions == 1 {
		c.sum.Fewest, c.sum.Most, c.sum.Drives, c.sum.Why = drives, drives, drives, r.Decision.Why
	}
	if drives != c.sum.Drives {
		c.logger.Info("scaled", "digest", c.job.digest.String()[:12], "from", c.sum.Drives, "to", drives,
			"why", r.Decision.Why)
		c.sum.Drives, c.sum.Why = drives, r.Decision.Why
		c.sum.Changes++
	}
	c.sum.Fewest, c.sum.Most = min(c.sum.Fewest, drives), max(c.sum.Most, drives)
	return drives, true
}

// count changes the report.
func (c *scaling) count(change func(*AutoscaleReport)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.sum)
}

// setHeld notes whether the job has a drive.
func (c *scaling) setHeld(drive int, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[drive] = held
}

func (c *scaling) isHeld(drive int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[drive]
}

// scaledPieces starts the splits of one epoch on as many drives as the autoscaler decides.
type scaledPieces struct {
	*storagePieces
	scaling  *scaling
	delivery Delivery

	// storagePieces.mu guards the fields below. They are by the schedule's index of the worker, which is the drive's.
	idle    []bool // at the last decision
	refused []bool // others had the drive when it was wanted, since the last decision; it is suspended
}

// begin makes the scaledPieces of an epoch.
func (c *scaling) begin(pieces *storagePieces, delivery Delivery) *scaledPieces {
	n := len(c.job.data.Drives)
	return &scaledPieces{storagePieces: pieces, scaling: c, delivery: delivery, idle: make([]bool, n),
		refused: make([]bool, n)}
}

// none is not a drive.
const none = -1

// Next implements Pieces. It decides when a decision is due, gives drives up, takes the drive on which a split is to
// start if the job does not have it, and waits until a split can start.
func (s *scaledPieces) Next(ctx context.Context) (Piece, error) {
	ticker := time.NewTicker(min(max(s.scaling.options.Every/4, fastestLook), slowestLook))
	defer ticker.Stop()
	for {
		queue := s.delivery.Status().Queue
		s.mu.Lock()
		give := s.scale(queue)
		piece, wanted := s.start()
		changed, pending := s.changed.Changed(), s.schedule.Pending()
		s.mu.Unlock()
		s.giveUp(ctx, give)
		switch {
		case piece != nil:
			return piece, nil
		case wanted != none:
			if err := s.acquire(ctx, wanted); err != nil {
				return nil, err
			}
			continue
		case pending == 0:
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

// scale decides, if a decision is due, and returns the drives that the job gives up: those that have been idle since
// the decision before. They start no split until giveUp has ended. storagePieces.mu is held.
func (s *scaledPieces) scale(queue QueueStatus) (give []int) {
	holders := s.schedule.Holders(0)
	for d, refused := range s.refused {
		if refused && s.schedule.Holds(d) {
			holders--
		}
	}
	drives, decided := s.scaling.decide(autoscale.Inputs{Holders: holders, Running: s.schedule.Active(0)}, queue)
	if !decided {
		return nil
	}
	s.schedule.SetLimit(0, drives)
	for d := range s.idle {
		if s.refused[d] { // others may have given it up by now
			s.refused[d] = false
			s.schedule.Resume(d)
		}
		idle := s.schedule.Idle(d)
		if idle && s.idle[d] && s.scaling.storage != nil && s.scaling.isHeld(d) {
			s.schedule.Suspend(d)
			give = append(give, d)
		}
		s.idle[d] = idle
	}
	return give
}

// start starts a split if one can start now. If the job does not have the drive of that split, start leaves the split
// and returns the drive. storagePieces.mu is held.
func (s *scaledPieces) start() (piece Piece, wanted int) {
	split, drive, ok := s.schedule.Start()
	if !ok {
		return nil, none
	}
	if !s.scaling.isHeld(drive) {
		s.schedule.Return(split)
		return nil, drive
	}
	return s.newPiece(split, s.source.data.Drives[drive].Name), none
}

// acquire takes a drive. If others have it, it starts no split until the next decision.
func (s *scaledPieces) acquire(ctx context.Context, drive int) error {
	name := s.source.data.Drives[drive].Name
	err := s.scaling.storage.Acquire(ctx, s.source.digest, name)
	switch {
	case err == nil:
		s.scaling.setHeld(drive, true)
		s.scaling.count(func(r *AutoscaleReport) { r.Taken++ })
		s.scaling.logger.Info("took a drive", "digest", s.source.digest.String()[:12], "drive", name)
		return nil
	case !errors.Is(err, api.ErrTaken):
		return fmt.Errorf("take drive %s: %w", name, err)
	}
	s.scaling.count(func(r *AutoscaleReport) { r.Refused++ })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[drive] = true
	s.schedule.Suspend(drive)
	return nil
}

// giveUp frees what the job holds on drives, and lets them start splits again when it is their turn. A drive whose
// mini-batches are still in use is given up later.
func (s *scaledPieces) giveUp(ctx context.Context, drives []int) {
	for _, d := range drives {
		name := s.source.data.Drives[d].Name
		err := s.scaling.storage.Release(ctx, s.source.digest, name)
		switch {
		case err == nil:
			s.scaling.setHeld(d, false)
			s.scaling.count(func(r *AutoscaleReport) { r.Given++ })
			s.scaling.logger.Info("gave a drive up", "digest", s.source.digest.String()[:12], "drive", name)
		case !errors.Is(err, api.ErrBusy):
			s.scaling.logger.Warn("give a drive up", "digest", s.source.digest.String()[:12], "drive", name, "error", err)
		}
	}
	if len(drives) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range drives {
		s.schedule.Resume(d)
	}
}
