package papers

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/bench/offload"
	"github.com/millrace/millrace/internal/quantity"
	policy "github.com/millrace/millrace/trainmgr/offload"
)

// What FastFlow's policy and evaluation state.
const (
	fastflowNear = 0.01 // a distance from the sweep's best that is taken as none
	fastflowSeed = 2023
)

// modelFastFlow sets whether the paper's policy offloads just below and just above its threshold of a stall.
func modelFastFlow(r *Result) error {
	for name, stall := range map[string]float64{"none": 1, "below": 1.09, "above": 1.11} {
		// A local pipeline of 100 rows a second, a trainer that could take more, and a worker as fast as the pipeline.
		d, err := policy.Decide(policy.Paper, policy.Metrics{Gthp: 100 * stall, Lthp: 100, Pcycle: 0.01,
			Candidates: []policy.Candidate{{Cut: policy.ReadAndTransforms, Rthp: 100, Ocycle: 0.002}}})
		if err != nil {
			return err
		}
		offloads := 0.0
		if d.Offload {
			offloads = 1
		}
		r.set(Modelled, "when."+name, "decision", offloads)
	}
	return modelRatios(r)
}

// What section 7 states of two workloads.
const (
	fastflowVCPUs      = 7.0     // 7.1: of the local container
	transformerVCPUs   = 20.0    // 7.2: those that Transformer ASR wants for preprocessing
	speakerStall       = 0.8     // 7.2: of the time, of Speaker Recognition on the local container
	transformerBytes   = 410e6   // 7.2: bytes a second that Transformer ASR takes
	fastflowSlowLink   = 1e9 / 8 // 7.1: bytes a second of the slow link, at most
	fastflowFarVCPUs   = 30.0    // 7.1: behind the slow link
	fastflowMoreRemote = 21.0    // 7.3: vCPUs of the larger environment
)

// modelRatios sets the ratio that section 4.3 gives the two workloads of Figure 9. Gthp is 1. Remote vCPUs are as fast
// as local ones, and receiving costs nothing, since the text prints no cycles.
func modelRatios(r *Result) error {
	speaker, transformer := 1-speakerStall, fastflowVCPUs/transformerVCPUs // Lthp
	for name, v := range map[string]struct{ lthp, remote, link float64 }{
		"speaker.7":        {speaker, fastflowVCPUs, 1},
		"speaker.21":       {speaker, fastflowMoreRemote, 1},
		"transformer.slow": {transformer, fastflowFarVCPUs, fastflowSlowLink / transformerBytes},
	} {
		rthp := min(1, v.link, v.lthp*v.remote/fastflowVCPUs)
		d, err := policy.Decide(policy.Paper, policy.Metrics{Gthp: 1, Lthp: v.lthp,
			Candidates: []policy.Candidate{{Cut: policy.ReadAndTransforms, Rthp: rthp}}})
		if err != nil {
			return err
		}
		r.set(Modelled, "ratio."+name, "share", d.Ratio)
	}
	return nil
}

// measureFastFlow lets the policies decide for drawn systems, in virtual time.
func measureFastFlow(ctx context.Context, o *Options, r *Result) error {
	cases, err := drawCases(ctx, o, fastflowCases, 1)
	if err != nil {
		return err
	}
	r.set(Modelled, "cases", "systems", float64(len(cases)))
	for i, name := range []string{"extended", "paper", "code"} {
		outcomesOf(r, name, cases, i)
	}
	overService(r, cases)
	for _, ranks := range []int{1, 2, 4} {
		if ranks > 1 {
			if cases, err = drawCases(ctx, o, fastflowRankCases, ranks); err != nil {
				return err
			}
		}
		gainOfRanks(r, ranks, cases[:min(len(cases), int(o.size(fastflowRankCases)))])
	}
	r.set(Modelled, "ranks.drawn", "systems", float64(o.size(fastflowRankCases)))
	return nil
}

// The numbers of systems that are drawn, and the part of them that is drawn again with more ranks.
const (
	fastflowCases     = 512
	fastflowRankCases = 128
)

// drawCases returns each case by itself.
func drawCases(ctx context.Context, o *Options, n int64, ranks int) (cases []offload.Case, err error) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf("simulate systems with %s", quantity.Of(ranks, "rank")))
	}
	for i := range int(o.size(n)) {
		s, err := offload.Simulate(ctx, offload.SimulateOptions{Cases: 1, First: i, Seed: fastflowSeed, Ranks: ranks})
		if err != nil {
			return nil, err
		}
		cases = append(cases, s.Farthest)
	}
	return cases, nil
}

// outcomesOf sets how a policy's outcomes compare with no offloading and with the sweep's best.
func outcomesOf(r *Result, key string, cases []offload.Case, i int) {
	var gains, distances []float64
	near, offloads, needless := 0.0, 0.0, 0.0
	n := float64(len(cases))
	cuts := map[policy.Cut]float64{}
	for k := range cases {
		c := &cases[k]
		outcome := &c.Outcomes[i]
		gains = append(gains, outcome.RowsPerSecond/c.NoOffload)
		distances = append(distances, outcome.Distance)
		if outcome.Distance <= fastflowNear {
			near++
		}
		if outcome.Decision.Offload {
			offloads++
			cuts[outcome.Decision.Cut]++
			if c.Metrics.Gthp <= c.Metrics.Lthp {
				needless++
			}
		}
	}
	slices.Sort(gains)
	r.set(Modelled, key+".most", "times", gains[len(gains)-1])
	r.set(Modelled, key+".median", "times", gains[len(gains)/2])
	r.set(Modelled, key+".least", "times", gains[0])
	r.set(Modelled, key+".distance", "share", mean(distances))
	r.set(Modelled, key+".near", "share", near/n)
	r.set(Modelled, key+".offloads", "share", offloads/n)
	r.set(Modelled, key+".needless", "systems", needless)
	for cut, name := range map[policy.Cut]string{policy.Transforms: "p1", policy.ReadAndTransforms: "p2",
		policy.All: "p3"} {
		r.set(Modelled, key+"."+name, "systems", cuts[cut])
	}
}

// overService sets the gains of the paper's policy over what tf.data service does: everything offloaded at p'3
// (TF-DSR), which is what a profile's Rthp of p'3 is; and both sides at once at p'3 (TF-DSLR), by the estimate of
// section 4.2 from the same profile, which the trainer bounds.
func overService(r *Result, cases []offload.Case) {
	gains := map[string][]float64{}
	for k := range cases {
		c := &cases[k]
		rate := c.Outcomes[1].RowsPerSecond
		for _, candidate := range c.Metrics.Candidates {
			if candidate.Cut != policy.All {
				continue
			}
			left := 1.0
			if c.Metrics.Pcycle > 0 {
				left = max(0, 1-candidate.Ocycle/c.Metrics.Pcycle)
			}
			gains["remote"] = append(gains["remote"], rate/candidate.Rthp)
			gains["both"] = append(gains["both"], rate/min(c.Metrics.Gthp, c.Metrics.Lthp*left+candidate.Rthp))
		}
	}
	for over, list := range gains {
		slices.Sort(list)
		r.set(Modelled, "over_"+over+".least", "times", list[0])
		r.set(Modelled, "over_"+over+".median", "times", list[len(list)/2])
		r.set(Modelled, "over_"+over+".most", "times", list[len(list)-1])
	}
}

// mean is the mean of values, 0 of none.
func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// gainOfRanks sets the mean gain of the paper's policy for jobs of a number of ranks.
func gainOfRanks(r *Result, ranks int, cases []offload.Case) {
	var gains []float64
	for k := range cases {
		if outcome := &cases[k].Outcomes[1]; outcome.Decision.Offload {
			gains = append(gains, outcome.RowsPerSecond/cases[k].NoOffload)
		}
	}
	r.set(Modelled, fmt.Sprintf("ranks.gain.%d", ranks), "times", mean(gains))
	r.set(Modelled, fmt.Sprintf("ranks.cases.%d", ranks), "systems", float64(len(gains)))
}
