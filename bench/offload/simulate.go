package offload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/control/autoscale"
	"github.com/millrace/millrace/trainmgr/offload"
)

// ErrOptions says that options are invalid.
var ErrOptions = errors.New("bench offload")

// SimulateOptions select the simulation. The zero value works.
type SimulateOptions struct {
	Cases int     // machines to draw; 0 means 1000
	Seed  uint64  // of the draw
	Noise float64 // standard deviation of a profile's measurements, as a share; 0 means 0.01, negative none
}

// Bounds of SimulateOptions.
const (
	MaxCases = 1_000_000
	maxNoise = 0.5
)

const (
	sweepSteps     = 10 // shares between 0 and 1 that a sweep tries, beside 0
	profileBatches = 100
	countedBatches = 150
	warmupBatches  = 64
)

// Policies are the policies that are compared.
func Policies() []offload.Policy {
	return []offload.Policy{offload.Extended, offload.Paper, offload.FastFlowCode}
}

// Outcome is a policy's decision for a case, and the result of the decision.
type Outcome struct {
	Policy   string           `json:"policy"`
	Decision offload.Decision `json:"decision"`
	// RowsPerSecond is the training throughput under the decision; the simulator's rows are mini-batches.
	RowsPerSecond float64 `json:"rows_per_second"`
	// Distance is from the sweep's best throughput, as a share of it; below 0 is better than the sweep.
	Distance float64 `json:"distance_share"`
}

// Case is one machine with its sweep and its outcomes.
type Case struct {
	Name      string          `json:"name"`
	Metrics   offload.Metrics `json:"metrics"`
	NoOffload float64         `json:"local_rows_per_second"`
	Best      float64         `json:"best_rows_per_second"`
	BestCut   offload.Cut     `json:"best_cut"`
	BestRatio float64         `json:"best_ratio"`
	Outcomes  []Outcome       `json:"outcomes"`
}

// Summary is how far a policy was from the sweep's best over all cases.
type Summary struct {
	Policy   string  `json:"policy"`
	Mean     float64 `json:"mean_distance_share"`
	Median   float64 `json:"median_distance_share"`
	Largest  float64 `json:"largest_distance_share"`
	Within5  float64 `json:"within_5_percent_share"` // share of the cases
	Offloads float64 `json:"offloading_share"`       // share of the cases
	// Offloaded is the mean share of the splits that the policy offloads: its cost to other users of the workers.
	Offloaded float64 `json:"mean_ratio"`
}

// Simulation holds the results of Simulate.
type Simulation struct {
	Cases    int       `json:"cases"`
	Seed     uint64    `json:"seed"`
	Noise    float64   `json:"noise_share"`
	Summary  []Summary `json:"summary"`
	Farthest Case      `json:"farthest_case"` // in which Extended is farthest from the best
	// Workers are what policies for the number of workers ask for, in the mean over cases of equal workers.
	Workers []WorkerCount `json:"workers"`
}

// WorkerCount is how many workers a policy asks for.
type WorkerCount struct {
	Policy string  `json:"policy"`
	Mean   float64 `json:"mean_workers"`
}

// Simulate draws machines, lets every policy decide, and compares with a sweep.
func Simulate(ctx context.Context, o SimulateOptions) (*Simulation, error) {
	switch {
	case o.Cases < 0 || o.Cases > MaxCases:
		return nil, fmt.Errorf("%w: %d cases: want 1 to %d", ErrOptions, o.Cases, MaxCases)
	case !(o.Noise <= maxNoise):
		return nil, fmt.Errorf("%w: noise %v: want at most %v", ErrOptions, o.Noise, maxNoise)
	}
	if o.Cases == 0 {
		o.Cases = 1000
	}
	if o.Noise == 0 {
		o.Noise = 0.01
	}
	o.Noise = math.Max(o.Noise, 0)
	rng := rand.New(rand.NewPCG(o.Seed, 11))
	s := &Simulation{Cases: o.Cases, Seed: o.Seed, Noise: o.Noise}
	distances := make([][]float64, len(Policies()))
	counts := make([]WorkerCount, len(workerPolicies))
	for i := range counts {
		counts[i].Policy = workerPolicies[i].name
	}
	s.Summary = make([]Summary, len(Policies()))
	for i := range o.Cases {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		m := drawMachine(rng)
		c, err := m.compare(fmt.Sprintf("case %d", i), rng, o.Noise)
		if err != nil {
			return nil, err
		}
		for p, outcome := range c.Outcomes {
			distances[p] = append(distances[p], outcome.Distance)
			s.Summary[p].Offloaded += outcome.Decision.Ratio / float64(o.Cases)
			if outcome.Decision.Offload {
				s.Summary[p].Offloads += 1 / float64(o.Cases)
			}
		}
		if i == 0 || c.Outcomes[0].Distance > s.Farthest.Outcomes[0].Distance {
			s.Farthest = c
		}
		for w := range workerPolicies {
			counts[w].Mean += float64(workerPolicies[w].count(c)) / float64(o.Cases)
		}
	}
	s.Workers = counts
	for p, policy := range Policies() {
		s.Summary[p].fill(policy, distances[p])
	}
	return s, nil
}

// fill computes a summary of distances.
func (s *Summary) fill(policy offload.Policy, distances []float64) {
	slices.Sort(distances)
	s.Policy, s.Median, s.Largest = policy.String(), distances[len(distances)/2], distances[len(distances)-1]
	for _, d := range distances {
		s.Mean += d / float64(len(distances))
		if d <= 0.05 {
			s.Within5 += 1 / float64(len(distances))
		}
	}
}

// workerPolicies say how many workers to start where each has the supply of the mean one.
var workerPolicies = []struct {
	name  string
	count func(c Case) int
}{
	{"FastFlow, section 9: ceil(Lower / Rthp of one)", func(c Case) int {
		return offload.FirstWorkers(c.Outcomes[0].Decision, c.supplyOfOne())
	}},
	{"FastFlow's program: ceil((Gthp - Lthp) / Rthp of one - 0.1)", func(c Case) int {
		return offload.FastFlowCodeWorkers(c.Metrics.Gthp, c.Metrics.Lthp, c.supplyOfOne())
	}},
	{"PreSto: ceil(T / P)", func(c Case) int { return allocation.WorkersFor(c.Metrics.Gthp, c.supplyOfOne()) }},
	{"tf.data service: ceil(wanted rate / mean rate)", func(c Case) int {
		return autoscale.TFDataWorkers([]float64{1 / c.Metrics.Gthp}, []float64{1 / c.supplyOfOne()})
	}},
}

// supplyOfOne returns the supply of one of four workers.
func (c *Case) supplyOfOne() float64 {
	most := 0.0
	for _, candidate := range c.Metrics.Candidates {
		most = math.Max(most, candidate.Supply)
	}
	return most / 4
}

// drawMachine draws a machine on which preprocessing may bind or not.
func drawMachine(rng *rand.Rand) Machine {
	between := func(low, high float64) float64 { return low * math.Exp(rng.Float64()*math.Log(high/low)) }
	m := Machine{
		Cores: between(0.3, 16), LocalCPU: between(0.002, 0.05), QueueBatches: 8 + rng.IntN(56),
		SplitBatches: 1 << (1 + rng.IntN(4)),
	}
	m.LocalThreads = max(1, int(m.Cores))
	local := math.Min(m.Cores, float64(m.LocalThreads)) / m.LocalCPU // mini-batches a second
	pace := local * between(0.5, 8)                                  // the rate that the trainer would take
	cpuShare := []float64{0, 0.3, 0.7, 1}[rng.IntN(4)]               // of the step, on a processor
	m.StepCPU = cpuShare / pace
	m.StepSeconds = (1 - cpuShare) / pace
	for range 1 + rng.IntN(4) {
		m.WorkerSeconds = append(m.WorkerSeconds, m.LocalCPU/between(0.2, 4)/math.Max(1, m.Cores/4))
	}
	workers := 0.0
	for _, seconds := range m.WorkerSeconds {
		workers += 1 / seconds
	}
	m.LinkSeconds = 1 / (workers * between(0.3, 10))
	receive := m.LocalCPU * between(0.005, 0.5)
	m.Cuts = []CutCost{
		{Cut: offload.Transforms, ReceiveCPU: receive * between(1, 4), WorkerWork: between(0.5, 1),
			LinkWork: between(1, 3)},
		{Cut: offload.ReadAndTransforms, ReceiveCPU: receive * between(0.8, 2), WorkerWork: between(0.8, 1.2),
			LinkWork: 1},
		{Cut: offload.All, ReceiveCPU: receive, WorkerWork: 1, LinkWork: 1},
	}
	return m
}

// profile makes the measurements that the policies see.
func (m *Machine) profile(rng *rand.Rand, noise float64) offload.Metrics {
	noisy := func(v float64) float64 { return v * math.Max(1+noise*rng.NormFloat64(), 0.1) }
	alone := m.trainerAlone()
	local := m.run(CutCost{}, 0, true, profileBatches, profileBatches)
	pipeline := m.run(CutCost{}, 0, false, profileBatches, profileBatches)
	metrics := offload.Metrics{
		Gthp: noisy(alone.batchesPerSecond), Tcycle: noisy(alone.cpuPerBatch), Cores: m.Cores,
		Lthp: noisy(local.batchesPerSecond), Pcycle: noisy(pipeline.cpuPerBatch),
		Supply: noisy(pipeline.batchesPerSecond),
	}
	for _, cut := range m.Cuts {
		both := m.run(cut, 1, true, profileBatches, profileBatches)
		remote := m.run(cut, 1, false, profileBatches, profileBatches)
		metrics.Candidates = append(metrics.Candidates, offload.Candidate{Cut: cut.Cut,
			Rthp: noisy(both.batchesPerSecond), Ocycle: noisy(remote.cpuPerBatch), Supply: noisy(remote.batchesPerSecond)})
	}
	return metrics
}

// throughput returns the training throughput at a cut and a share, which a tuner changes while the job runs if a
// profile is given.
func (m *Machine) throughput(cut offload.Cut, ratio float64, profile *offload.Metrics) float64 {
	cost := CutCost{}
	for _, c := range m.Cuts {
		if c.Cut == cut {
			cost = c
		}
	}
	if cut == offload.None {
		ratio = 0
	}
	// Whole splits of both sides, several times over.
	counted := max(countedBatches, 16*m.SplitBatches)
	warmup := max(warmupBatches, 8*m.SplitBatches)
	if profile != nil {
		return m.runTuned(cost, ratio, profile, warmup, counted).batchesPerSecond
	}
	return m.run(cost, ratio, true, warmup, counted).batchesPerSecond
}

// compare sweeps a machine and lets every policy decide.
func (m *Machine) compare(name string, rng *rand.Rand, noise float64) (Case, error) {
	c := Case{Name: name, Metrics: m.profile(rng, noise), NoOffload: m.throughput(offload.None, 0, nil)}
	c.Best = c.NoOffload
	for _, cut := range m.Cuts {
		for i := range sweepSteps {
			ratio := float64(i+1) / sweepSteps
			if rate := m.throughput(cut.Cut, ratio, nil); rate > c.Best {
				c.Best, c.BestCut, c.BestRatio = rate, cut.Cut, ratio
			}
		}
	}
	for _, policy := range Policies() {
		d, err := offload.Decide(policy, c.Metrics)
		if err != nil {
			return c, err
		}
		// Extended goes on to look at the job while it runs; the paper decides once.
		var profile *offload.Metrics
		if policy == offload.Extended && d.Offload {
			profile = &c.Metrics
		}
		rate := m.throughput(d.Cut, d.Ratio, profile)
		c.Outcomes = append(c.Outcomes, Outcome{policy.String(), d, rate, 1 - rate/c.Best})
	}
	return c, nil
}
