package offload

import (
	"fmt"
	"math"
)

const (
	// headroom is how much more than Gthp the pipeline is to make where it can, since measured rates vary from run to
	// run.
	headroom = 1.15
	// leastGain is the least expected gain for which Extended offloads at all.
	leastGain = 1.03
	// boundBy is the share of a bound that a measured rate has reached when the bound explains the rate.
	boundBy = 0.97
	// shares is into how many steps the share of offloaded splits is cut where the best one is searched.
	shares = 1000
)

// model foretells the throughput of one trainer node at every share of offloaded splits, for one cut.
type model struct {
	gthp         float64
	localSupply  float64 // of the local pipeline, without regard to the trainer; +Inf: not known
	remoteSupply float64 // of workers and network
	trainerCPU   float64 // CPU seconds a row: of the trainer
	localCPU     float64 // of preprocessing here
	remoteCPU    float64 // of receiving
	localCores   float64 // CPUs that are usable with everything local; +Inf: not known
	remoteCores  float64 // CPUs that are usable with everything remote
}

// newModel makes the model of a candidate.
func newModel(m *Metrics, c Candidate) model {
	o := model{
		gthp: m.Gthp, localSupply: math.Inf(1), remoteSupply: math.Max(c.Supply, c.Rthp),
		trainerCPU: m.Tcycle, localCPU: m.Pcycle, remoteCPU: c.Ocycle,
	}
	if m.Supply > 0 {
		o.localSupply = math.Max(m.Supply, m.Lthp)
	} else if m.Pcycle == 0 && m.Lthp < boundBy*m.Gthp {
		o.localSupply = m.Lthp
	}
	o.localCores = usableCores(m.Lthp, o.cpuSeconds(0), math.Min(m.Gthp, o.localSupply), m.Cores)
	bound := m.Gthp
	if c.Supply > 0 {
		bound = math.Min(bound, c.Supply)
	} else {
		bound = math.Min(bound, c.Rthp) // nothing tells workers and CPUs apart: the workers explain Rthp
	}
	o.remoteCores = usableCores(c.Rthp, o.cpuSeconds(1), bound, m.Cores)
	if math.IsInf(o.remoteCores, 1) {
		o.remoteCores = o.localCores
	}
	return o
}

// usableCores returns how many CPUs the trainer's machine had for work of cpuSeconds a row when it was measured at a
// rate: those that the rate used, if nothing else bounded the rate, and at least the machine's cores otherwise.
func usableCores(rate, cpuSeconds, otherBound, cores float64) float64 {
	used := float64(rate * cpuSeconds)
	switch {
	case used == 0:
		return math.Inf(1)
	case rate < float64(boundBy*otherBound):
		return used
	case cores > 0:
		return math.Max(cores, used)
	}
	return math.Inf(1)
}

// cpuSeconds returns the CPU time of a row on the trainer's machine if a share of the rows is offloaded.
func (o *model) cpuSeconds(share float64) float64 {
	return o.trainerCPU + float64((1-share)*o.localCPU) + float64(share*o.remoteCPU)
}

// supply returns the throughput that a share allows, the trainer's own bound apart.
func (o *model) supply(share float64) float64 {
	rate := math.Inf(1)
	if share < 1 {
		rate = o.localSupply / (1 - share)
	}
	if share > 0 {
		rate = math.Min(rate, o.remoteSupply/share)
	}
	if seconds := o.cpuSeconds(share); seconds > 0 {
		cores := o.localCores
		if !math.IsInf(cores, 1) {
			cores = float64((1-share)*o.localCores) + float64(share*o.remoteCores)
		}
		rate = math.Min(rate, cores/seconds)
	}
	return rate
}

// rate returns the training throughput that the model foretells for a share.
func (o *model) rate(share float64) float64 { return math.Min(o.gthp, o.supply(share)) }

// highest returns the share with the highest supply.
func (o *model) highest() (share float64) {
	most := -1.0
	for i := range shares + 1 {
		if rate := o.supply(float64(i) / shares); rate > most {
			share, most = float64(i)/shares, rate
		}
	}
	return share
}

// least returns the least share whose supply reaches a rate. ok is false if none does.
func (o *model) least(rate float64) (share float64, ok bool) {
	for i := range shares + 1 {
		if share = float64(i) / shares; o.supply(share) >= rate {
			return share, true
		}
	}
	return 1, false
}

// wanted returns the share to choose: the least that leaves headroom, or the one with the highest supply.
func (o *model) wanted() float64 {
	if share, ok := o.least(headroom * o.gthp); ok {
		return share
	}
	return o.highest()
}

// extended is the policy Extended.
func extended(m *Metrics) Decision {
	switch {
	case m.Gthp <= m.Lthp:
		return Decision{Expected: m.Gthp,
			Why: "there is no preprocessing stall: the trainer takes no more than the local pipeline makes"}
	case len(m.Candidates) == 0:
		return Decision{Expected: m.Lthp, Why: "no worker is there"}
	}
	var (
		chosen Candidate
		best   model
		share  float64
	)
	highest := -1.0
	for _, c := range m.Candidates {
		o := newModel(m, c)
		at := o.wanted()
		// Of cuts that reach Gthp the first one with the most supply is the safest.
		if supply := math.Min(o.supply(at), headroom*m.Gthp); supply > highest {
			chosen, best, share, highest = c, o, at, supply
		}
	}
	rate := best.rate(share)
	if rate < leastGain*m.Lthp || share == 0 {
		return Decision{Expected: m.Lthp,
			Why: fmt.Sprintf("offloading would raise %.0f rows/s to %.0f: less than 3%%", m.Lthp, rate)}
	}
	leastShare, _ := best.least(rate * (1 - 1e-9))
	d := Decision{
		Offload: true, Cut: chosen.Cut, Ratio: share, Raw: share, Expected: rate,
		Upper: best.remoteSupply, Lower: float64(leastShare * rate),
	}
	d.Why = fmt.Sprintf("%.0f%% at cut %v: %.0f rows/s are expected, %.0f with everything local; %s", 100*share,
		chosen.Cut, rate, m.Lthp, best.binding(share))
	return d
}

// binding says in words what bounds the throughput at a share.
func (o *model) binding(share float64) string {
	rate := o.rate(share) * (1 + 1e-6)
	switch {
	case rate >= o.gthp:
		return "the trainer binds"
	case share > 0 && rate >= o.remoteSupply/share && share < 1 && rate >= o.localSupply/(1-share):
		return "workers and local pipeline are balanced"
	case share > 0 && rate >= o.remoteSupply/share:
		return "the workers or the network bind"
	case share < 1 && rate >= o.localSupply/(1-share):
		return "the local pipeline binds"
	}
	return "the CPUs of the trainer's machine bind"
}

// FreeCores returns how much of a CPU the trainer leaves free at a throughput: what the local pipeline may use beside
// it. It is 0 if the metrics do not say, which is no limit.
func FreeCores(m Metrics, rowsPerSecond float64) float64 {
	if m.Cores <= 0 || m.check() != nil {
		return 0
	}
	free := m.Cores - float64(m.Tcycle*math.Min(rowsPerSecond, m.Gthp))
	return math.Max(free, m.Cores/100)
}
