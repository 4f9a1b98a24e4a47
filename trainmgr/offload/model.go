package offload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// headroom is the multiple of Gthp that the pipeline should reach if possible, because measured rates vary from run
	// to run.
	headroom = 1.15
	// leastGain is the least expected gain for which Extended offloads at all.
	leastGain = 1.03
	// boundBy is the share of a bound from which on the bound explains a measured rate.
	boundBy = 0.97
	// busyShare is the share of busy CPUs from which on the machine's CPUs bound the throughput.
	busyShare = 0.8
	// mostCorrection bounds the correction of the model's predictions.
	mostCorrection = 0.3
	// equalShare is the share of the highest throughput that a cheaper choice may give away.
	equalShare = 0.01
	// certainShare is the share by which a measured throughput may be below the foretold one and still be preferred.
	certainShare = 0.05
	// shares is the number of steps into which the search for the best share of offloaded splits divides 0 to 1.
	shares = 200
)

// model foretells the throughput of one trainer node at every share of offloaded splits, for one cut.
type model struct {
	gthp         float64
	localSupply  float64 // throughput of the local pipeline without the trainer; +Inf: not known
	remoteSupply float64 // throughput of workers and network
	trainerCPU   float64 // CPU seconds a row of the trainer
	localCPU     float64 // CPU seconds a row of preprocessing on the trainer's machine
	remoteCPU    float64 // CPU seconds a row of receiving
	localCores   float64 // CPUs that are usable with everything local; +Inf: not known
	remoteCores  float64 // CPUs that are usable with everything remote
	cores        float64 // CPUs of the trainer's machine; 0: not known
	// localCorrection and remoteCorrection are the measured throughput over the throughput that the model foretells,
	// with everything local and with everything remote.
	localCorrection, remoteCorrection float64
}

// newModel makes the model of a candidate.
func newModel(m *Metrics, c Candidate) model {
	o := model{
		gthp: m.Gthp, localSupply: math.Inf(1), remoteSupply: math.Max(c.Supply, c.Rthp),
		trainerCPU: m.Tcycle, localCPU: m.Pcycle, remoteCPU: c.Ocycle, cores: m.Cores,
		localCorrection: 1, remoteCorrection: 1,
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
		bound = math.Min(bound, c.Rthp) // nothing distinguishes workers from CPUs: the workers explain Rthp
	}
	o.remoteCores = usableCores(c.Rthp, o.cpuSeconds(1), bound, m.Cores)
	if math.IsInf(o.remoteCores, 1) {
		o.remoteCores = o.localCores
	}
	o.localCorrection = correctionFactor(m.Lthp, o.rateAt(0))
	o.remoteCorrection = correctionFactor(c.Rthp, o.rateAt(1))
	return o
}

// correctionFactor returns the measured throughput over the foretold throughput, within bounds, because the model alone
// does not explain a greater error.
func correctionFactor(measured, foretold float64) float64 {
	if !(measured > 0) || !(foretold > 0) || math.IsInf(foretold, 1) {
		return 1
	}
	return math.Min(math.Max(measured/foretold, 1-mostCorrection), 1+mostCorrection)
}

// usableCores returns how many CPUs the trainer's machine had for work of cpuSeconds a row when a rate was measured.
// If nothing else bounded the rate and the machine has hardly more CPUs than the rate used, these are the CPUs that
// the rate used. Otherwise they are the machine's cores.
func usableCores(rate, cpuSeconds, otherBound, cores float64) float64 {
	used := float64(rate * cpuSeconds)
	bound := rate < float64(boundBy*otherBound)
	switch {
	case used == 0:
		return math.Inf(1)
	case cores > 0 && bound && used > float64(busyShare*cores):
		return used
	case cores > 0:
		return math.Max(cores, used)
	case bound:
		return used
	}
	return math.Inf(1)
}

// cpuSeconds returns the CPU time of a row on the trainer's machine if a share of the rows is offloaded.
func (o *model) cpuSeconds(share float64) float64 {
	return o.trainerCPU + float64((1-share)*o.localCPU) + float64(share*o.remoteCPU)
}

// supplyAt returns the throughput that a share allows, without the trainer's own bound.
func (o *model) supplyAt(share float64) float64 {
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

// rateAt returns the training throughput that the model foretells for a share.
func (o *model) rateAt(share float64) float64 {
	rate := math.Min(o.rateBesideThreads(share), o.supplyAt(share))
	rate *= float64((1-share)*o.localCorrection) + float64(share*o.remoteCorrection)
	return math.Min(rate, o.gthp)
}

// rateBesideThreads returns the throughput of a trainer that always has a mini-batch, and shares the CPUs of its
// machine with preprocessing and receiving. If more threads want to run than there are CPUs, each thread is slower, and
// the CPU part of the trainer's step takes longer; its part on a device does not.
func (o *model) rateBesideThreads(share float64) float64 {
	if o.trainerCPU == 0 || o.cores == 0 {
		return o.gthp
	}
	device := math.Max(0, 1/o.gthp-float64(o.trainerCPU*o.slowdown(0)))
	others := float64((1-share)*o.localCPU) + float64(share*o.remoteCPU)
	low, high := 0.0, o.gthp
	for range 24 {
		rate := (low + high) / 2
		// running is the mean number of other threads that run. The more threads run, the slower is each of them.
		running := float64(rate * others)
		for range 3 {
			running = float64(rate*others) * o.slowdown(running+math.Min(1, float64(rate*o.trainerCPU))-1)
			running = math.Min(running, 64)
		}
		if rate*(device+float64(o.trainerCPU*o.slowdown(running))) <= 1 {
			low = rate
		} else {
			high = rate
		}
	}
	return high
}

// leavesTrainerAlone reports whether preprocessing at a share hardly slows the trainer: the trainer uses no CPU, or the
// machine has twice the CPUs that trainer, preprocessing and receiving use.
func (o *model) leavesTrainerAlone(share float64) bool {
	return o.trainerCPU == 0 || o.cores == 0 || float64(o.gthp*o.cpuSeconds(share)) <= o.cores/2
}

// slowdown returns the factor by which a thread takes longer beside a mean number of other threads. It interpolates
// between whole numbers of threads.
func (o *model) slowdown(others float64) float64 {
	at := func(n float64) float64 { return math.Max(1, (1+n)/o.cores) }
	others = math.Max(others, 0)
	whole := math.Floor(others)
	return at(whole) + float64((others-whole)*(at(whole+1)-at(whole)))
}

// fastestShare returns the share with the highest throughput; among equal shares, the share with the highest supply.
func (o *model) fastestShare() (share float64) {
	most, supply := -1.0, -1.0
	for i := range shares + 1 {
		at := float64(i) / shares
		rate, there := o.rateAt(at), o.supplyAt(at)
		if rate > most*(1+1e-9) || rate >= most*(1-1e-9) && there > supply {
			share, most, supply = at, math.Max(rate, most), there
		}
	}
	return share
}

// leastShareFor returns the least share whose supply reaches a rate. ok is false if none does.
func (o *model) leastShareFor(rate float64) (share float64, ok bool) {
	for i := range shares + 1 {
		if share = float64(i) / shares; o.supplyAt(share) >= rate {
			return share, true
		}
	}
	return 1, false
}

// chosenShare returns the share to choose: the least share that gives nearly the highest throughput and leaves
// headroom, or else the share with the highest throughput.
func (o *model) chosenShare() float64 {
	highest := o.fastestShare()
	enough := o.rateAt(highest) * (1 - equalShare)
	for i := range shares + 1 {
		share := float64(i) / shares
		if o.supplyAt(share) >= headroom*o.gthp && o.rateAt(share) >= enough && o.leavesTrainerAlone(share) {
			return share
		}
	}
	return highest
}

// decideExtended is the policy Extended.
func decideExtended(measured *Metrics) Decision {
	consistent := *measured
	consistent.Gthp = measured.trainerRate()
	m := &consistent
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
		at := o.chosenShare()
		if rate := o.rateAt(at); rate > highest*(1+equalShare) {
			chosen, best, share, highest = c, o, at, rate
		}
	}
	rate := best.rateAt(share)
	if c, ok := m.highestMeasured(); ok && !best.leavesTrainerAlone(share) && c.Rthp >= rate*(1-certainShare) {
		// The throughput with everything offloaded was measured, so the measured throughput is used instead of the
		// model's.
		chosen, best, share = c, newModel(m, c), 1
		rate = best.rateAt(share)
	}
	if rate < leastGain*m.Lthp || share == 0 {
		return Decision{Expected: m.Lthp,
			Why: fmt.Sprintf("offloading would raise %.0f rows/s to %.0f: less than 3%%", m.Lthp, rate)}
	}
	leastShare, _ := best.leastShareFor(rate * (1 - 1e-9))
	d := Decision{
		Offload: true, Cut: chosen.Cut, Ratio: share, Raw: share, Expected: rate,
		Upper: best.remoteSupply, Lower: float64(math.Min(leastShare, share) * rate),
	}
	d.Why = fmt.Sprintf("%.0f%% at cut %v: %.0f rows/s are expected, %.0f with everything local; %s", 100*share,
		chosen.Cut, rate, m.Lthp, best.bindingBound(share))
	return d
}

// trainerRate returns Gthp, or the throughput of a pipeline with the trainer if that is higher: the trainer alone is
// not slower, so the measurement of Gthp was disturbed.
func (m *Metrics) trainerRate() float64 {
	rate := math.Max(m.Gthp, m.Lthp)
	for _, c := range m.Candidates {
		rate = math.Max(rate, c.Rthp)
	}
	return rate
}

// contenderShare is the share by which a cut's foretold throughput may be below that of the best cut for the cut to be
// worth a trial: the model's predictions have errors of that size.
const contenderShare = 0.15

// Contenders returns the decisions of the policy Extended for each cut that may be the best one, the best first. The
// model cannot distinguish cuts whose throughputs differ by less than its errors: a caller that can choose among
// cuts lets the job run with each contender for some time, and keeps the fastest. There is always at least one
// contender; if offloading does not pay, its ratio is 0.
func Contenders(m Metrics) ([]Decision, error) {
	best, err := Decide(Extended, m)
	if err != nil || len(m.Candidates) == 0 {
		return []Decision{best}, err
	}
	var contenders []Decision
	for _, c := range m.Candidates {
		one := m
		one.Candidates = []Candidate{c}
		d := decideExtended(&one)
		d.Cut = c.Cut
		if math.Max(d.Expected, c.Rthp) >= best.Expected*(1-contenderShare) {
			contenders = append(contenders, d)
		}
	}
	slices.SortStableFunc(contenders, func(a, b Decision) int { return cmp.Compare(b.Expected, a.Expected) })
	if len(contenders) == 0 {
		contenders = []Decision{best}
	}
	return contenders, nil
}

// highestMeasured returns the candidate with the highest Rthp, if that is above Lthp.
func (m *Metrics) highestMeasured() (highest Candidate, ok bool) {
	for _, c := range m.Candidates {
		if c.Rthp > m.Lthp && c.Rthp > highest.Rthp {
			highest, ok = c, true
		}
	}
	return highest, ok
}

// bindingBound names the bound of the throughput at a share.
func (o *model) bindingBound(share float64) string {
	rate := o.rateAt(share) * (1 + 1e-6)
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

// FreeCores returns how many CPUs the trainer leaves free for the local pipeline at a throughput. It returns 0,
// which means no limit, if the metrics do not contain the CPU times.
func FreeCores(m Metrics, rowsPerSecond float64) float64 {
	if m.Cores <= 0 || m.checkMetrics() != nil {
		return 0
	}
	free := m.Cores - float64(m.Tcycle*math.Min(rowsPerSecond, m.Gthp))
	return math.Max(free, m.Cores/100)
}
