package offload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/millrace/millrace/trainmgr/offload"
)

const (
	// tunedSeconds bounds the seconds of a search, of which most end within 80 s. A search counts as ended when the tuner
	// has changed nothing for restSeconds.
	tunedSeconds = 160
	restSeconds  = 24
)

// tune begins a job and lets a tuner decide about it until the tuner's search has ended.
func tune(m *Machine, d offload.Decision, profile *offload.Metrics) *simulation {
	job := m.newSimulation(m.cost(d.Cut), d.Ratio, true)
	second := m.second(profile)
	tuner := offload.NewTuner(d.Ratio)
	var candidate offload.Candidate
	for _, c := range profile.Candidates {
		if c.Cut == d.Cut {
			candidate = c
		}
	}
	quiet := 0
	for i := 1; i <= tunedSeconds && quiet < restSeconds; i++ {
		job.advance(math.MaxInt, float64(i)*second)
		in := job.inputs()
		in.Seconds = float64(i)
		in.StallSeconds /= second
		in.LocalBusy /= second
		in.RemoteBusy /= second
		in.LocalSupply, in.RemoteSupply = profile.Supply*second, candidate.Supply*second
		in.LocalThroughput, in.RemoteThroughput = profile.Lthp*second, candidate.Rthp*second
		in.TrainerThroughput = profile.Gthp * second
		decision := tuner.Decide(in).Decision
		job.counters.SetRatio(decision.Ratio)
		if after := &decision.After; decision.Changed || after.Trying || !after.Resting && after.Lacked > 0 {
			quiet = 0
		} else {
			quiet++
		}
	}
	return job
}

// extended runs every contender of the policy Extended under a tuner, and continues with the fastest contender.
func extended(m *Machine, metrics *offload.Metrics) (best offload.Decision, throughput float64, err error) {
	contenders, err := offload.Contenders(*metrics)
	if err != nil {
		return best, 0, err
	}
	var fastest *simulation
	trial := -1.0
	for _, d := range contenders {
		job := tune(m, d, metrics)
		if rate := job.finish(); rate > trial {
			best, fastest, trial = d, job, rate
		}
	}
	best.Ratio = fastest.counters.Ratio()
	best.Offload = best.Ratio > 0
	// the throughput is measured again, because the fastest of several trials was also lucky
	return best, fastest.finish(), nil
}

// compare sweeps a system and lets every policy decide.
func compare(m *Machine, name string, rng *rand.Rand, noise float64) (Case, error) {
	c := Case{Name: name, Metrics: m.profile(rng, noise), NoOffload: m.throughput(offload.None, 0, true)}
	highest := m.throughput(offload.None, 0, false)
	for _, cost := range m.Cuts {
		for i := range sweepSteps {
			ratio := float64(i+1) / sweepSteps
			if rate := m.throughput(cost.Cut, ratio, false); rate > highest {
				highest, c.BestCut, c.BestRatio = rate, cost.Cut, ratio
			}
		}
	}
	// The best of many runs was also a lucky run, so its share runs again, for longer.
	c.Best = math.Max(c.NoOffload, m.throughput(c.BestCut, c.BestRatio, true))
	for _, policy := range Policies() {
		d, err := offload.Decide(policy, c.Metrics)
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		var rate float64
		if policy == offload.Extended { // Extended also observes the running job; the paper's policy decides once
			d, rate, err = extended(m, &c.Metrics)
		} else {
			rate = m.throughput(d.Cut, d.Ratio, true)
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		c.Outcomes = append(c.Outcomes, Outcome{policy.String(), d, rate, 1 - rate/c.Best})
	}
	return c, nil
}
