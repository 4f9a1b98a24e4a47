package offload

import (
	"math"
	"math/rand/v2"

	"github.com/millrace/millrace/trainmgr/offload"
)

// Machine is a trainer's machine with the workers elsewhere, as the simulator models it. Work is in seconds of one
// processor or worker for a mini-batch.
type Machine struct {
	Cores         float64 // quota of the trainer's machine
	StepSeconds   float64 // A step of the trainer takes this time on its device.
	StepCPU       float64 // The trainer uses a processor of its machine for this time, before StepSeconds.
	LocalCPU      float64 // to preprocess on the trainer's machine
	LocalThreads  int
	WorkerSeconds []float64 // Each worker takes this time for a mini-batch, with everything offloaded.
	LinkSeconds   float64   // The link to the trainer takes this time, with everything offloaded.
	Ranks         int       // Ranks take a mini-batch each, and step when all have one; 0 means 1.
	QueueBatches  int       // The input queue holds at most these mini-batches.
	SplitBatches  int
	// EpochBatches are the mini-batches of an epoch: the next epoch begins when the trainer has done the last of them,
	// so a queue that holds an epoch is filled and emptied in turn. 0: the job is one epoch.
	EpochBatches int
	Cuts         []CutCost
	// Variation is the greatest difference of a mini-batch's work from the mean, as a share. Without variation the
	// streams fall into step with each other, and the throughput at one ratio differs by a tenth from the throughput at
	// its neighbours.
	Variation float64
	Seed      uint64 // Seed draws the variation.
}

// CutCost is the cost of a cut.
type CutCost struct {
	Cut        offload.Cut
	ReceiveCPU float64 // CPU seconds of the trainer's machine for a mini-batch from elsewhere
	WorkerWork float64 // WorkerWork is a share of WorkerSeconds.
	LinkWork   float64 // LinkWork is a share of LinkSeconds.
}

// phase is the activity of a stream or of the trainer.
type phase uint8

const (
	idle      phase = iota
	preparing       // local: preprocessing, on the CPU; trainer: the part of the step on the CPU
	making          // on a worker
	sending         // on the link
	receiving       // on the CPU
	blocked         // a mini-batch waits for room in the queue
	stepping        // the trainer's device
)

// lane is a stream of mini-batches: one split after the other.
type lane struct {
	phase  phase
	left   float64 // work of the phase
	split  int     // mini-batches of the split that are not made yet
	worker int     // -1: local
	turn   int     // place in the line for engine threads: the stream that asked first gets a thread first
}

// simulation is a run in virtual time.
type simulation struct {
	m        *Machine
	cut      CutCost
	counters *offload.Counters
	trains   bool // false: mini-batches are taken and thrown away

	now     float64
	cpuUsed float64
	lanes   []lane
	trainer lane
	queued  int
	taken   int
	started int // mini-batches of splits that have started
	due     int // mini-batches of the epochs that have begun
	turns   int // turns given for engine threads so far

	rates []float64 // Each lane has a rate, and the trainer has the last.

	rng *rand.Rand // It draws the work of mini-batches.

	seen offload.Inputs // the tuner's observations, in seconds of virtual time
}

// measuredRun holds the measurements of a simulated run after its warm-up.
type measuredRun struct {
	batchesPerSecond float64
	cpuPerBatch      float64
}

// ranks returns Ranks, or 1.
func (m *Machine) ranks() int { return max(m.Ranks, 1) }

// streamsOfWorker is how many splits a worker makes at once.
const streamsOfWorker = 2

// run runs a job with a share of its splits offloaded at a cut. The first warmup mini-batches are not measured.
func (m *Machine) run(cut CutCost, ratio float64, trains bool, warmup, counted int) measuredRun {
	s := m.newSimulation(cut, ratio, trains)
	s.advanceTo(warmup)
	return s.measureTo(warmup + counted)
}

// second returns the seconds of virtual time for one second of the tuner's constants, which are made for a real job. It
// is about the time in which, by the profile, each stream makes a split.
func (m *Machine) second(profile *offload.Metrics) float64 {
	streams := m.LocalThreads + 1 + streamsOfWorker*len(m.WorkerSeconds)
	return float64(max(2*m.SplitBatches*streams/3, 32)) / math.Max(profile.Lthp, profile.Gthp/4)
}

// inputs returns the tuner's observations, without the rates of the profile.
func (s *simulation) inputs() offload.Inputs {
	in := s.seen
	in.TakenRows, in.EpochRows = float64(s.taken), float64(s.m.EpochBatches)
	return in
}

// finish runs on and returns the throughput.
func (s *simulation) finish() float64 {
	_, counted := s.m.steadyBatches()
	return s.measureTo(s.taken + 2*counted).batchesPerSecond
}

// newSimulation makes a simulation at time 0.
func (m *Machine) newSimulation(cut CutCost, ratio float64, trains bool) *simulation {
	s := &simulation{m: m, cut: cut, counters: offload.NewCounters(ratio), trains: trains,
		rng: rand.New(rand.NewPCG(m.Seed, math.Float64bits(ratio)))}
	for range m.LocalThreads + 1 {
		s.lanes = append(s.lanes, lane{worker: -1})
	}
	for w := range m.WorkerSeconds {
		for range streamsOfWorker {
			s.lanes = append(s.lanes, lane{worker: w})
		}
	}
	s.rates = make([]float64, len(s.lanes)+1)
	return s
}

// measureTo continues the run and measures.
func (s *simulation) measureTo(taken int) measuredRun {
	begun, used, from := s.now, s.cpuUsed, s.taken
	s.advanceTo(taken)
	took, batches := s.now-begun, float64(s.taken-from)
	return measuredRun{batches / took, (s.cpuUsed - used) / batches}
}

// trainerAlone measures the trainer on one cached mini-batch.
func (m *Machine) trainerAlone() measuredRun {
	seconds := m.StepCPU/math.Min(1, m.Cores) + m.StepSeconds
	n := float64(m.ranks())
	seconds *= 1 + float64(m.Variation*(2*n/(n+1)-1)) // the mean of the greatest of n equally distributed steps
	return measuredRun{1 / seconds, m.StepCPU}
}

// advanceTo runs until the trainer has taken a number of mini-batches.
func (s *simulation) advanceTo(taken int) { s.advance(taken, math.Inf(1)) }

// advance runs until the trainer has taken a number of mini-batches, or until a moment.
func (s *simulation) advance(taken int, until float64) {
	for s.taken < taken && s.now < until {
		s.startWork()
		s.setRates()
		step := until - s.now
		for i := range s.lanes {
			if s.rates[i] > 0 {
				step = min(step, s.lanes[i].left/s.rates[i])
			}
		}
		last := len(s.lanes)
		if s.rates[last] > 0 {
			step = min(step, s.trainer.left/s.rates[last])
		}
		s.now += step
		s.watch(step)
		for i := range s.lanes {
			l := &s.lanes[i]
			l.left -= step * s.rates[i]
			s.use(l.phase, step*s.rates[i])
			if s.rates[i] > 0 && l.left <= 1e-12 {
				s.endPhase(l)
			}
		}
		s.trainer.left -= step * s.rates[last]
		s.use(s.trainer.phase, step*s.rates[last])
		if s.rates[last] > 0 && s.trainer.left <= 1e-12 {
			s.endStep()
		}
	}
}

// watch updates the observations for a tuner.
func (s *simulation) watch(step float64) {
	local, remote := false, false
	for i := range s.lanes {
		if l := &s.lanes[i]; l.phase != idle && l.phase != blocked {
			local = local || l.worker < 0
			remote = remote || l.worker >= 0
		}
	}
	if local {
		s.seen.LocalBusy += step
	}
	if remote {
		s.seen.RemoteBusy += step
	}
	if s.trainer.phase == idle {
		s.seen.StallSeconds += step
	}
}

// vary returns the work of one mini-batch whose mean is given.
func (s *simulation) vary(mean float64) float64 {
	if s.m.Variation == 0 {
		return mean
	}
	return mean * (1 + float64(s.m.Variation*(2*s.rng.Float64()-1)))
}

// slowest returns the work of a step of all ranks, which wait for the slowest of them. mean is that of a mini-batch.
func (s *simulation) slowest(mean float64) (work float64) {
	for range s.m.ranks() {
		work = math.Max(work, s.vary(mean))
	}
	return work * float64(s.m.ranks())
}

// use counts CPU time of the trainer's machine.
func (s *simulation) use(p phase, work float64) {
	if p == preparing || p == receiving {
		s.cpuUsed += work
	}
}

// startWork lets waiting streams and the trainer go on until none of them can.
func (s *simulation) startWork() {
	for changed := true; changed; {
		changed = false
		for i := range s.lanes {
			if l := &s.lanes[i]; l.phase == blocked && s.queued < s.m.QueueBatches {
				s.queued++
				s.nextBatch(l)
				changed = true
			}
		}
		if ranks := s.m.ranks(); !s.trains && s.queued > 0 {
			s.taken, s.queued, changed = s.taken+s.queued, 0, true
		} else if s.trainer.phase == idle && s.queued >= ranks {
			s.queued -= ranks
			changed = true
			s.trainer.phase, s.trainer.left = preparing, s.slowest(s.m.StepCPU)
			if s.m.StepCPU == 0 {
				s.trainer.phase, s.trainer.left = stepping, s.slowest(s.m.StepSeconds)
			}
		}
		changed = s.startSplit() || changed
	}
}

// startSplit starts the next split on a free lane of the side whose turn it is.
func (s *simulation) startSplit() bool {
	if s.m.EpochBatches > 0 && s.started == s.due {
		if s.taken < s.due {
			return false
		}
		s.due += s.m.EpochBatches
	}
	side := s.counters.Next()
	best := -1
	for i := range s.lanes {
		l := &s.lanes[i]
		if l.phase != idle || (l.worker >= 0) != (side == offload.Remote) {
			continue
		}
		if best < 0 || s.busy(l.worker) < s.busy(s.lanes[best].worker) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	s.counters.Count(side)
	s.started += s.m.SplitBatches
	s.lanes[best].split = s.m.SplitBatches
	s.nextBatch(&s.lanes[best])
	return true
}

// busy counts the lanes of a worker that have work.
func (s *simulation) busy(worker int) (n int) {
	for _, l := range s.lanesOf(worker) {
		if l.phase != idle {
			n++
		}
	}
	return n
}

// lanesOf returns the lanes of a worker, or the local ones for -1. Local lanes are the first.
func (s *simulation) lanesOf(worker int) []lane {
	local := s.m.LocalThreads + 1
	if worker < 0 {
		return s.lanes[:local]
	}
	return s.lanes[local+worker*streamsOfWorker:][:streamsOfWorker]
}

// nextBatch begins the next mini-batch of a lane's split, if there is one.
func (s *simulation) nextBatch(l *lane) {
	if l.split == 0 {
		l.phase = idle
		return
	}
	l.split--
	s.turns++
	l.turn = s.turns
	if l.worker < 0 {
		l.phase, l.left = preparing, s.vary(s.m.LocalCPU)
	} else {
		l.phase, l.left = making, s.vary(s.m.WorkerSeconds[l.worker]*s.cut.WorkerWork)
	}
}

// endPhase goes on to the next phase of a mini-batch.
func (s *simulation) endPhase(l *lane) {
	switch l.phase {
	case making:
		l.phase, l.left = sending, s.vary(s.m.LinkSeconds*s.cut.LinkWork)
	case sending:
		l.phase, l.left = receiving, s.vary(s.cut.ReceiveCPU)
	default:
		l.phase = blocked
		if l.worker < 0 {
			s.seen.LocalRows++
		} else {
			s.seen.RemoteRows++
		}
	}
	if l.phase != blocked && l.left == 0 {
		s.endPhase(l)
	}
}

// endStep ends a part of the trainer's step.
func (s *simulation) endStep() {
	if s.trainer.phase == preparing && s.m.StepSeconds > 0 {
		s.trainer.phase, s.trainer.left = stepping, s.slowest(s.m.StepSeconds)
		return
	}
	s.trainer.phase = idle
	s.taken += s.m.ranks()
}

// setRates divides the processors and the link equally among their users. An engine thread, and a worker, makes one
// mini-batch at a time.
func (s *simulation) setRates() {
	local, received, sent := 0, 0, 0
	for i := range s.lanes {
		s.rates[i] = 0
		switch l := &s.lanes[i]; l.phase {
		case preparing, making:
			if s.hasThread(l) {
				s.rates[i] = 1
				if l.phase == preparing {
					local++
				}
			}
		case receiving:
			received++
		case sending:
			sent++
		}
	}
	trainer := 0
	if s.trainer.phase == preparing {
		trainer = 1
	}
	fair := 1.0
	if users := float64(local + received + trainer); users > s.m.Cores {
		fair = s.m.Cores / users
	}
	for i := range s.lanes {
		switch s.lanes[i].phase {
		case preparing:
			s.rates[i] *= fair
		case receiving:
			s.rates[i] = fair
		case sending:
			s.rates[i] = 1 / float64(sent)
		}
	}
	last := len(s.lanes)
	switch s.trainer.phase {
	case preparing:
		s.rates[last] = fair
	case stepping:
		s.rates[last] = 1
	default:
		s.rates[last] = 0
	}
}

// hasThread reports whether a lane that makes a mini-batch has an engine thread. A worker has one thread.
func (s *simulation) hasThread(l *lane) bool {
	threads, before := 1, 0
	if l.worker < 0 {
		threads = s.m.LocalThreads
	}
	for i, lanes := 0, s.lanesOf(l.worker); i < len(lanes); i++ {
		if other := &lanes[i]; other.phase == l.phase && other.turn < l.turn {
			before++
		}
	}
	return before < threads
}
