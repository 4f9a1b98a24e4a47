package offload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/trainmgr/allocation"
	"github.com/millrace/millrace/trainmgr/autoscale"
	"github.com/millrace/millrace/trainmgr/offload"
)

// ErrOptions says that options are invalid.
var ErrOptions = errors.New("bench offload")

// SimulateOptions select the simulation. The zero value works.
type SimulateOptions struct {
	Cases int    // systems to draw; 0 means 1000
	First int    // number of the first system: Cases 1 and First n draw case n of a seed again
	Seed  uint64 // seed of the draw
	// Noise is the standard deviation of a profile's measurements, as a share; 0 means 0.01, and a negative value means
	// no noise.
	Noise float64
	// Ranks take a mini-batch each, and step when all have one; 0 means 1. The cases are otherwise the same.
	Ranks int
}

// Bounds of SimulateOptions.
const (
	MaxCases = 1_000_000
	maxNoise = 0.5
	maxRanks = 8 // The input queue holds at least this number of mini-batches.
)

const (
	sweepSteps     = 10 // shares above 0, up to 1, that a sweep tries beside 0
	profileBatches = 100
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
	// Distance is the distance from the sweep's best throughput, as a share of it; a value below 0 is better than the
	// sweep.
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
	System    string          `json:"system"` // all parameters of the Machine, in words
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
	// Beyond names the cases in which Extended is farther than NearShare from the best.
	Beyond []string `json:"beyond_5_percent,omitempty"`
	// Workers are the numbers of workers that the policies for that number ask for, as means over the cases with equal
	// workers.
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
	case o.First < 0 || o.First > MaxCases:
		return nil, fmt.Errorf("%w: first case %d: want 0 to %d", ErrOptions, o.First, MaxCases)
	case o.Ranks < 0 || o.Ranks > maxRanks:
		return nil, fmt.Errorf("%w: %d ranks: want 1 to %d", ErrOptions, o.Ranks, maxRanks)
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
	s := &Simulation{Cases: o.Cases, Seed: o.Seed, Noise: o.Noise}
	distances := make([][]float64, len(Policies()))
	counts := make([]WorkerCount, len(workerPolicies))
	for i := range counts {
		counts[i].Policy = workerPolicies[i].name
	}
	s.Summary = make([]Summary, len(Policies()))
	cases, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	for i, c := range cases {
		for p, outcome := range c.Outcomes {
			distances[p] = append(distances[p], outcome.Distance)
			s.Summary[p].Offloaded += outcome.Decision.Ratio / float64(o.Cases)
			if outcome.Decision.Offload {
				s.Summary[p].Offloads += 1 / float64(o.Cases)
			}
		}
		if c.Outcomes[0].Distance > NearShare {
			s.Beyond = append(s.Beyond, c.Name)
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

// NearShare is the greatest distance from a sweep's best that Extended may have in any case.
const NearShare = 0.05

// run draws the cases and compares the policies in each case. It runs as many cases at once as there are processors.
// A case depends only on the seed and its number.
func (o *SimulateOptions) run(ctx context.Context) ([]Case, error) {
	cases, errs := make([]Case, o.Cases), make([]error, o.Cases)
	var (
		next    atomic.Int64
		running sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < o.Cases && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				number := o.First + i
				rng := rand.New(rand.NewPCG(o.Seed, uint64(number)))
				m := drawMachine(rng)
				m.Ranks = o.Ranks
				m.EpochBatches *= m.ranks()
				cases[i], errs[i] = compare(m, fmt.Sprintf("case %d", number), rng, o.Noise)
				cases[i].System = fmt.Sprintf("%+v", m)
			}
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return cases, errors.Join(errs...)
}

// fill computes a summary of distances.
func (s *Summary) fill(policy offload.Policy, distances []float64) {
	slices.Sort(distances)
	s.Policy, s.Median, s.Largest = policy.String(), distances[len(distances)/2], distances[len(distances)-1]
	for _, d := range distances {
		s.Mean += d / float64(len(distances))
		if d <= NearShare {
			s.Within5 += 1 / float64(len(distances))
		}
	}
}

// workerPolicy computes how many workers to start.
type workerPolicy struct {
	name  string
	count func(c Case) int
}

// workerPolicies are the policies for the number of workers. Each worker has the mean supply.
var workerPolicies = []workerPolicy{
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
