package regions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// betweenSwitches is how long a job runs from one switch to the next at most: the moment is random, so that it falls
	// into a slice or between two.
	betweenSwitches = 20 * time.Millisecond
	// warmSwitches are those before any that counts.
	warmSwitches = 4
)

// switched is a job whose region is switched between two images.
type switched struct {
	*job
	slot int // whose image is active
}

// switchImage switches the region to the other image.
func (s *switched) switchImage(ctx context.Context) error {
	next := imageSlot - s.slot
	if err := s.device.ActivateImage(ctx, next); err != nil {
		return err
	}
	s.slot = next
	return nil
}

// newSwitched begins jobs in the regions beside, and one in the last region, which is switched.
func (s *stage) newSwitched(ctx context.Context) (beside jobs, j *switched, err error) {
	works := make([]*work, s.o.regionsBeside())
	for i := range works {
		works[i] = s.works[0]
	}
	if beside, err = s.newJobs(ctx, works...); err != nil {
		return nil, nil, err
	}
	last, err := s.newJob(ctx, s.o.Regions-1, s.works[0], true)
	if err != nil {
		return nil, nil, errors.Join(err, beside.closeAll())
	}
	return beside, &switched{job: last}, nil
}

// measureSwitches times switches one by one.
func (r *Result) measureSwitches(ctx context.Context, s *stage) (err error) {
	s.o.Progress(fmt.Sprintf("switch a region %d times", s.o.Switches))
	beside, j, err := s.newSwitched(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.closeStream(), beside.closeAll()) }()
	stop := beside.startMiniBatches(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	t := &timer{stage: s, job: j, random: rand.New(rand.NewPCG(s.o.Seed, 1)), ask: make(chan struct{}),
		resume: make(chan struct{}, 1), failed: make(chan struct{})}
	end := runInBackground(func() error { return t.makeOrWait(ctx) })
	for n := range warmSwitches + s.o.Switches {
		if err = t.timeOneSwitch(ctx, n >= warmSwitches); err != nil {
			break
		}
	}
	err = errors.Join(err, end())
	r.Switch = SwitchResult{Switches: len(t.switches), OtherJobs: len(beside), Drain: quantilesOf(t.drains),
		Switch: quantilesOf(t.switches), Activation: quantilesOf(t.activations)}
	return err
}

// timer times the switches of a job's region.
type timer struct {
	*stage
	job    *switched
	random *rand.Rand

	ask, resume chan struct{} // interrupt the job between two mini-batches, and let it go on
	failed      chan struct{} // closed when the job fails

	drains, switches, activations []time.Duration
}

// makeOrWait makes a mini-batch of the job, or waits while the job is interrupted.
func (t *timer) makeOrWait(ctx context.Context) error {
	select {
	case <-t.ask:
		select {
		case <-t.resume:
		case <-ctx.Done():
		}
	default:
	}
	_, err := t.job.makeMiniBatch(ctx)
	if err != nil {
		close(t.failed)
	}
	return err
}

// errJob says that the job whose region is switched has failed; its own error says why.
var errJob = errors.New("the job whose region is switched has failed")

// timeOneSwitch lets the job run for a random time, switches its region, and waits for the first slice that is
// accepted.
func (t *timer) timeOneSwitch(ctx context.Context, counts bool) error {
	// The moment that was drawn counts, and not the one at which this goroutine runs: on busy processors that is often
	// when a slice ends.
	asked := time.Now().Add(time.Duration(t.random.Int64N(int64(betweenSwitches))))
	select {
	case <-time.After(time.Until(asked)):
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case t.ask <- struct{}{}:
	case <-t.failed:
		return errJob
	}
	idle := laterTime(asked, t.recorder.lastSliceEnd())
	began := time.Now()
	err := t.job.switchImage(ctx)
	activation := time.Since(began)
	t.recorder.awaitNextSlice()
	t.resume <- struct{}{}
	if err != nil {
		return err
	}
	var accepted time.Time
	select {
	case accepted = <-t.recorder.accepted:
	case <-t.failed:
		return errJob
	}
	if counts {
		t.drains = append(t.drains, idle.Sub(asked))
		t.switches = append(t.switches, accepted.Sub(idle))
		t.activations = append(t.activations, activation)
	}
	return nil
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// measureBeside compares the rates of other regions' jobs while a region is switched after each mini-batch, and while
// it is not.
func (r *Result) measureBeside(ctx context.Context, s *stage) (err error) {
	beside, j, err := s.newSwitched(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.closeStream(), beside.closeAll()) }()
	var (
		turns    []turn
		switches int
		took     time.Duration
	)
	for n := range s.o.Turns {
		s.o.Progress(fmt.Sprintf("jobs beside switches: turn %d of %d", n+1, s.o.Turns))
		var t turn
		for k := range 2 {
			// Every other turn begins with switches, so that what comes first has no advantage.
			if switching := (n+k)%2 == 1; switching {
				begin := time.Now()
				count := 0
				t.with, err = beside.ratesBeside(ctx, s.o.Time, func() error {
					if _, err := j.makeMiniBatch(ctx); err != nil {
						return err
					}
					count++
					return j.switchImage(ctx)
				})
				took, switches = took+time.Since(begin), switches+count
			} else {
				t.without, err = beside.ratesBeside(ctx, s.o.Time, func() error {
					_, err := j.makeMiniBatch(ctx)
					return err
				})
			}
			if err != nil {
				return err
			}
		}
		turns = append(turns, t)
	}
	r.Beside = BesideResult{Jobs: len(beside), SwitchesPerSecond: float64(switches) / took.Seconds()}
	r.Beside.setRateLoss(turns)
	return nil
}

// ratesBeside returns the rates of all jobs together while step runs again and again in another region.
func (list jobs) ratesBeside(ctx context.Context, d time.Duration, step func() error) (float64, error) {
	stop := runInBackground(step)
	rates, err := list.measureRates(ctx, d)
	return totalOf(rates), errors.Join(err, stop())
}

func totalOf(numbers []float64) (total float64) {
	for _, n := range numbers {
		total += n
	}
	return total
}
