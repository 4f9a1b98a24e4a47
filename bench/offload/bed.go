package offload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/millrace/millrace/trainmgr/offload"
)

// testBed is a system on which the policies are tried: a trainer's machine with workers elsewhere.
type testBed interface {
	offloadCuts() []offload.Cut
	// profile returns the measurements for the policies. noise is the standard deviation of each measurement, as a
	// share.
	profile(rng *rand.Rand, noise float64) offload.Metrics
	// throughput returns the training throughput at a cut and a share. With again it measures on other mini-batches and
	// for longer.
	throughput(cut offload.Cut, ratio float64, again bool) float64
	// begin begins a job at a cut and a share.
	begin(cut offload.Cut, ratio float64) tunedJob
	// second returns the seconds of virtual time for one second of the tuner's constants, which are made for a real
	// job. It is about the time in which, by the profile, each stream makes a split.
	second(profile *offload.Metrics) float64
}

// tunedJob is a job whose share a tuner changes while it runs.
type tunedJob interface {
	runUntil(seconds float64)
	inputs() offload.Inputs // without the rates of the profile
	shares() *offload.Counters
	finish() float64 // runs on and returns the throughput
}

const (
	// tunedSeconds bounds the seconds of a search, of which most end within 80 s. A
	// search counts as ended when the tuner has changed nothing for restSeconds.
	tunedSeconds = 160
	restSeconds  = 24
)

// tune begins a job and lets a tuner decide about it until the tuner's search has ended.
func tune(bed testBed, d offload.Decision, profile *offload.Metrics) tunedJob {
	job := bed.begin(d.Cut, d.Ratio)
	second := bed.second(profile)
	tuner := offload.NewTuner(offload.TunerOptions{}, d.Ratio)
	var candidate offload.Candidate
	for _, c := range profile.Candidates {
		if c.Cut == d.Cut {
			candidate = c
		}
	}
	quiet := 0
	for i := 1; i <= tunedSeconds && quiet < restSeconds; i++ {
		job.runUntil(float64(i) * second)
		in := job.inputs()
		in.Seconds = float64(i)
		in.StallSeconds /= second
		in.LocalBusy /= second
		in.RemoteBusy /= second
		in.LocalSupply, in.RemoteSupply = profile.Supply*second, candidate.Supply*second
		in.LocalThroughput, in.RemoteThroughput = profile.Lthp*second, candidate.Rthp*second
		in.TrainerThroughput = profile.Gthp * second
		decision := tuner.Decide(in).Decision
		job.shares().SetRatio(decision.Ratio)
		if quiet++; decision.Changed || decision.After.Trying ||
			!decision.After.Search.Resting && decision.After.Starving > 0 {
			quiet = 0
		}
	}
	return job
}

// extended runs every contender of the policy Extended under a tuner, and continues with the fastest contender.
func extended(bed testBed, metrics *offload.Metrics) (best offload.Decision, throughput float64, err error) {
	contenders, err := offload.Contenders(*metrics)
	if err != nil {
		return best, 0, err
	}
	var fastest tunedJob
	trial := -1.0
	for _, d := range contenders {
		job := tune(bed, d, metrics)
		if rate := job.finish(); rate > trial {
			best, fastest, trial = d, job, rate
		}
	}
	best.Ratio = fastest.shares().Ratio()
	best.Offload = best.Ratio > 0
	// the throughput is measured again, because the fastest of several trials was also lucky
	return best, fastest.finish(), nil
}

// compare sweeps a system and lets every policy decide.
func compare(bed testBed, name string, rng *rand.Rand, noise float64) (Case, error) {
	c := Case{Name: name, Metrics: bed.profile(rng, noise), NoOffload: bed.throughput(offload.None, 0, true)}
	highest := bed.throughput(offload.None, 0, false)
	for _, cut := range bed.offloadCuts() {
		for i := range sweepSteps {
			ratio := float64(i+1) / sweepSteps
			if rate := bed.throughput(cut, ratio, false); rate > highest {
				highest, c.BestCut, c.BestRatio = rate, cut, ratio
			}
		}
	}
	// The best of many runs was also a lucky run, so its share runs again, for longer.
	c.Best = math.Max(c.NoOffload, bed.throughput(c.BestCut, c.BestRatio, true))
	for _, policy := range Policies() {
		d, err := offload.Decide(policy, c.Metrics)
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		var rate float64
		if policy == offload.Extended { // Extended also observes the running job; the paper's policy decides once
			d, rate, err = extended(bed, &c.Metrics)
		} else {
			rate = bed.throughput(d.Cut, d.Ratio, true)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		c.Outcomes = append(c.Outcomes, Outcome{policy.String(), d, rate, 1 - rate/c.Best})
	}
	return c, nil
}
