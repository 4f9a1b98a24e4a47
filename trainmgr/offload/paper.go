package offload

import (
	"fmt"
	"math"
)

// SpeedUpThreshold is the least Gthp/Lthp at which Algorithm 1 offloads: "FastFlow does not offload preprocessing if
// the maximum increase in speed is negligible (less than 10%)" (4.1).
const SpeedUpThreshold = 1.1

// Policy is a rule for Decide.
type Policy uint8

// The policies.
const (
	Extended     Policy = iota // the default: a model of the trainer's machine
	Paper                      // Algorithm 1 of FastFlow as printed
	FastFlowCode               // the cut of Algorithm 1, and the ratio that FastFlow's published program computes
)

var policyNames = [...]string{"extended", "paper", "fastflow-code"}

// String returns the policy's name in documents and flags.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy %d", uint8(p))
}

// ParsePolicy reads a policy's name.
func ParsePolicy(name string) (Policy, error) {
	for i, n := range policyNames {
		if n == name {
			return Policy(i), nil
		}
	}
	return 0, fmt.Errorf("%w: no policy is called %.40q: want extended, paper or fastflow-code", ErrMetrics, name)
}

// Decision is a policy's decision.
type Decision struct {
	Offload bool    `json:"offload"`
	Cut     Cut     `json:"cut"`
	Ratio   float64 `json:"ratio"` // share of the splits that workers make, 0 to 1
	// Raw is the ratio before it was bounded to 1. Algorithm 1 exceeds 1 where workers outrun the trainer.
	Raw   float64 `json:"raw_ratio"`
	Upper float64 `json:"upper_rows_per_second"` // to offload more makes the workers or the network the bottleneck
	Lower float64 `json:"lower_rows_per_second"` // to offload less makes the trainer's CPUs the bottleneck
	// Expected is the training throughput that the policy foretells; 0 if the policy foretells none.
	Expected float64 `json:"expected_rows_per_second"`
	Why      string  `json:"why"`
}

// Decide makes the decision of a policy from the metrics of one trainer node.
//
// Paper computes Algorithm 1 to the letter, even where the result is poor: Algorithm 1 ignores the trainer's own CPU
// time, and so offloads too little if a trainer is busy on the CPUs that preprocess.
//
// Extended foretells the throughput of every share ρ at every cut as the least of four bounds: Gthp; the local
// pipeline's throughput over 1-ρ; the workers' throughput over ρ; and the CPUs of the trainer's machine over the CPU
// time of a row, which is Tcycle + (1-ρ) Pcycle + ρ Ocycle. The bound by CPUs is scaled so that it passes through
// the measured Lthp and Rthp. Extended takes the cut with the highest throughput, and among its shares the least one
// that leaves a headroom over Gthp. If no share does, it takes the share with the highest throughput. It keeps
// everything local if offloading gains less than 3 %.
func Decide(policy Policy, m Metrics) (Decision, error) {
	if err := m.checkMetrics(); err != nil {
		return Decision{}, err
	}
	switch policy {
	case Paper:
		return decideByPaper(&m), nil
	case FastFlowCode:
		d := decideByPaper(&m)
		if c, ok := m.candidateOf(d.Cut); ok {
			d.Raw = 1 - fastFlowLocalRatio(&m, c, 1)
			d.Ratio = shareWithin(d.Raw)
			d.Why = fmt.Sprintf("the ratio of FastFlow's program, %.3f, at the cut of Algorithm 1", d.Ratio)
		}
		return d, nil
	case Extended:
		return decideExtended(&m), nil
	}
	return Decision{}, fmt.Errorf("%w: there is no %v", ErrMetrics, policy)
}

// candidateOf returns the first candidate of a cut.
func (m *Metrics) candidateOf(cut Cut) (Candidate, bool) {
	for _, c := range m.Candidates {
		if c.Cut == cut {
			return c, true
		}
	}
	return Candidate{}, false
}

// decideByPaper is Algorithm 1.
func decideByPaper(m *Metrics) Decision {
	switch { // lines 3 and 4
	case m.Gthp <= m.Lthp:
		return Decision{Why: "there is no preprocessing stall: the trainer takes no more than the local pipeline makes"}
	case m.Gthp/m.Lthp < SpeedUpThreshold:
		return Decision{Why: fmt.Sprintf("without any stall training would be %.1f%% faster: less than 10%%",
			100*(m.Gthp/m.Lthp-1))}
	case len(m.Candidates) == 0:
		return Decision{Why: "no worker is there"}
	}
	var best Candidate
	highest := math.Inf(-1)
	for _, c := range m.Candidates { // lines 6 and 7; the first of equals
		if estimate := m.Lthp*(1-m.relativeCost(c)) + c.Rthp; estimate > highest {
			best, highest = c, estimate
		}
	}
	d := Decision{Cut: best.Cut, Upper: best.Rthp, Lower: (m.Gthp - m.Lthp) * (1 + m.relativeCost(best))} // 8 and 9
	if d.Lower < d.Upper {                                                                                // line 10
		d.Raw = d.Upper / m.Gthp // line 11
		d.Why = fmt.Sprintf("workers make up for the stall: Upper/Gthp = %.0f/%.0f", d.Upper, m.Gthp)
	} else {
		if sum := m.Lthp + best.Rthp; sum > 0 {
			d.Raw = best.Rthp / sum // line 13
		}
		d.Why = fmt.Sprintf("workers do not make up for the stall: Rthp/(Lthp+Rthp) = %.0f/%.0f", best.Rthp,
			m.Lthp+best.Rthp)
	}
	d.Ratio = shareWithin(d.Raw)
	d.Offload = true
	d.Expected = math.Min(m.Gthp, highest)
	return d
}

// fastFlowLocalRatio is the share that stays local in the program that FastFlow's authors published (function
// calculate_ratio_local_optimal of fastflow/utils.py), for workers of candidate c, each with c.Rthp. It departs from
// Algorithm 1: it uses a number of workers, takes the middle between Upper and Lower if the local pipeline is the
// faster one, and balances only if both sides together are slower than the trainer.
func fastFlowLocalRatio(m *Metrics, c Candidate, workers int) float64 {
	upper := c.Rthp * float64(workers)
	lower := (m.Gthp - m.Lthp) * (1 + m.relativeCost(c))
	offloaded := math.Max(upper, lower)
	if m.Lthp > upper {
		offloaded = (upper + lower) / 2
	}
	if m.Lthp+upper < m.Gthp {
		return shareWithin(m.Lthp / (m.Lthp + upper))
	}
	return shareWithin((m.Gthp - offloaded) / m.Gthp)
}

const (
	maxWorkers = math.MaxInt32 // bounds the results of the functions below
	// roundingShare is the share of a worker by which sums of floating-point numbers may exceed a whole number.
	roundingShare = 1e-9
)

// wholeWorkers converts a number of workers to an int within bounds.
func wholeWorkers(workers float64) int {
	if !(workers > 0) {
		return 0
	}
	return int(math.Min(workers, maxWorkers))
}

// FirstWorkers returns how many equal workers a job starts with: ceil(Lower / Rthp of one worker) (section 9). It is 0
// if the decision offloads nothing or a worker makes nothing.
func FirstWorkers(d Decision, rthpOfOne float64) int {
	if !d.Offload || !(rthpOfOne > 0) {
		return 0
	}
	return wholeWorkers(math.Ceil(d.Lower/rthpOfOne - roundingShare))
}

// FastFlowCodeWorkers returns how many workers FastFlow's published program starts with: ceil((Gthp - Lthp) / Rthp of
// one - 0.1).
func FastFlowCodeWorkers(gthp, lthp, rthpOfOne float64) int {
	if !(rthpOfOne > 0) {
		return 0
	}
	return wholeWorkers(math.Ceil((gthp-lthp)/rthpOfOne - 0.1))
}
