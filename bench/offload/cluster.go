package offload

import (
	"container/heap"
	"math"
	"math/rand/v2"

	"github.com/millrace/millrace/trainmgr/offload"
)

// Cluster is the second simulator: a queueing network that is run event by event. It checks the policies on a
// mechanism that was not used to develop them. It shares no code with Machine, in which all users of the processors
// share them equally. In a Cluster
//
//   - a control group has a budget of CPU time in each period of 100 ms, and stops when the budget is spent;
//   - every disk, link and engine thread is a server with a queue, and serves one mini-batch at a time;
//   - each service takes a random time with a long tail, and other tenants slow workers down from time to time;
//   - several ranks step together, and each waits for the slowest.
//
// Times are means, in seconds for a mini-batch.
type Cluster struct {
	Quota       float64 // The quota is that of the trainer's control group, in processors.
	Cores       int     // processors that the group may use at once
	Ranks       int
	StepCPU     float64 // StepCPU is how long a rank's step uses a processor.
	StepDevice  float64
	Threads     int     // Threads are those of the local engine.
	LocalCPU    float64 // to preprocess on the trainer's machine
	LocalRead   float64 // LocalRead is how long the local disk takes.
	Latency     float64 // Latency is that of the network, one way.
	Down, Up    float64 // The link carries whole tensors to the trainer, and column chunks from it.
	Spread      float64 // standard deviation of the logarithm of every service time
	Queue       int
	Split       int
	Workers     []ClusterWorker
	ReceiveCPU  [3]float64 // The trainer's machine receives at this cost, by cut.
	SendCPU     float64    // of the trainer's machine, to read and send column chunks for offload.Transforms
	DownWork    [3]float64 // DownWork is a share of Down, by cut.
	WorkerShare [3]float64 // WorkerShare is a share of a worker's service time, by cut.
	Seed        uint64
}

// ClusterWorker is a worker elsewhere.
type ClusterWorker struct {
	Service float64 // Service is how long an engine thread takes.
	Threads int
	Read    float64 // Read is how long its disk takes.
	Streams int     // splits at once
	Slow    float64 // factor of Service while another tenant is busy; 1: never
	Tenant  float64 // mean time for which a tenant is busy or idle
}

// drawCluster draws a cluster in which preprocessing may bind or not.
func drawCluster(rng *rand.Rand) *Cluster {
	between := func(low, high float64) float64 { return low + (high-low)*rng.Float64() }
	scale := func(low, high float64) float64 { return math.Exp(between(math.Log(low), math.Log(high))) }
	c := &Cluster{Quota: scale(0.4, 10), Ranks: 1 << rng.IntN(3), LocalCPU: scale(0.003, 0.04), Spread: between(0.05, 0.5),
		Latency: scale(0.00005, 0.002), Queue: 8 + rng.IntN(40), Split: 2 << rng.IntN(3), Seed: rng.Uint64()}
	c.Cores = int(math.Ceil(c.Quota)) + rng.IntN(2)
	c.Threads = max(1, int(c.Quota))
	local := math.Min(c.Quota, float64(c.Threads)) / c.LocalCPU
	c.LocalRead = scale(0.05, 1.2) / local
	pace := local * scale(0.6, 8) // of all ranks together
	onCPU := []float64{0, 0.3, 0.7, 1}[rng.IntN(4)]
	step := float64(c.Ranks) / pace
	c.StepCPU, c.StepDevice = onCPU*step, (1-onCPU)*step
	supply := local * scale(0.3, 6) // of all workers
	n := 1 + rng.IntN(4)
	for range n {
		w := ClusterWorker{Threads: 1 + rng.IntN(3), Streams: 2 + rng.IntN(3), Slow: 1, Tenant: 1}
		w.Service = float64(n*w.Threads) / supply * scale(0.5, 2)
		w.Read = w.Service / float64(w.Threads) * scale(0.1, 1.1)
		if rng.IntN(2) == 0 {
			w.Slow, w.Tenant = between(1, 1.6), w.Service*between(5, 40)
		}
		c.Workers = append(c.Workers, w)
	}
	c.Down, c.Up = 1/(supply*scale(0.4, 10)), 1/(supply*scale(0.4, 10))
	receive := c.LocalCPU * scale(0.01, 0.4)
	c.SendCPU = receive * between(0.2, 1.5)
	c.ReceiveCPU = [3]float64{receive * between(0.8, 1.6), receive * between(0.8, 1.6), receive}
	c.DownWork = [3]float64{1, between(1, 1.2), 1}
	c.WorkerShare = [3]float64{between(0.5, 0.9), between(0.85, 1.1), 1}
	return c
}

// offloadCuts implements testBed.
func (*Cluster) offloadCuts() []offload.Cut {
	return []offload.Cut{offload.Transforms, offload.ReadAndTransforms, offload.All}
}

// event is a function that runs at a moment of virtual time.
type event struct {
	at    float64
	order uint64
	do    func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// station serves a number of mini-batches at once; other mini-batches wait in order.
type station struct {
	free    int
	waiting []func()
}

// enter calls a function when a place is free.
func (s *station) enter(do func()) {
	if s.free == 0 {
		s.waiting = append(s.waiting, do)
		return
	}
	s.free--
	do()
}

// leave frees a place.
func (s *station) leave() {
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	next := s.waiting[0]
	s.waiting = s.waiting[1:]
	next()
}

// cpuPeriod is the period of a quota, in seconds, as in the kernel.
const cpuPeriod = 0.1

// thread is a thread that runs on the trainer's machine.
type thread struct {
	left  float64
	after func()
	step  bool // of a trainer's step
}

// clusterRun is a run of a cluster in virtual time.
type clusterRun struct {
	c        *Cluster
	cut      offload.Cut
	counters *offload.Counters
	trains   bool
	supplied bool // mini-batches come from a cache: the trainer alone
	rng      *rand.Rand

	now    float64
	events eventHeap
	order  uint64

	threads []thread
	budget  float64 // CPU seconds that are left of the period
	period  float64 // its end

	engine, disk, down, up *station
	workers                []*station // engine threads
	workerDisks            []*station
	slow                   []bool
	streams                [2][]clusterStream // by offload.Side
	queued                 int
	blocked                []func()
	stepping               int // ranks
	waitedFrom             float64
	making                 [2]int // streams that make a mini-batch, by offload.Side
	madeFrom               [2]float64

	taken       int
	stepUsed    float64 // CPU seconds of the trainer
	workUsed    float64 // workUsed counts preprocessing and receiving.
	observed    offload.Inputs
	stopAtTaken int
}

// clusterStream makes one split after the other.
type clusterStream struct {
	busy   bool
	worker int
}

func (c *Cluster) start(cut offload.Cut, ratio float64, trains bool, seed uint64) *clusterRun {
	r := &clusterRun{c: c, cut: cut, counters: offload.NewCounters(ratio), trains: trains,
		rng:    rand.New(rand.NewPCG(c.Seed+seed, math.Float64bits(ratio)+uint64(cut))),
		budget: c.Quota * cpuPeriod, period: cpuPeriod,
		engine: &station{free: c.Threads}, disk: &station{free: 1}, down: &station{free: 1}, up: &station{free: 1},
		slow: make([]bool, len(c.Workers))}
	r.streams[offload.Local] = make([]clusterStream, c.Threads+1)
	for i, w := range c.Workers {
		r.workers = append(r.workers, &station{free: w.Threads})
		r.workerDisks = append(r.workerDisks, &station{free: 1})
		for range w.Streams {
			r.streams[offload.Remote] = append(r.streams[offload.Remote], clusterStream{worker: i})
		}
		if w.Slow > 1 {
			r.toggle(i)
		}
	}
	return r
}

// toggle makes a tenant of a worker come or go, and schedules the next change.
func (r *clusterRun) toggle(worker int) {
	r.after(r.rng.ExpFloat64()*r.c.Workers[worker].Tenant, func() {
		r.slow[worker] = !r.slow[worker]
		r.toggle(worker)
	})
}

func (r *clusterRun) after(seconds float64, do func()) {
	r.order++
	heap.Push(&r.events, event{r.now + seconds, r.order, do})
}

// random returns a service time with a mean.
func (r *clusterRun) random(mean float64) float64 {
	return mean * math.Exp(float64(r.c.Spread*r.rng.NormFloat64())-float64(r.c.Spread*r.c.Spread)/2)
}

// compute runs a thread on the trainer's machine.
func (r *clusterRun) compute(seconds float64, step bool, after func()) {
	if seconds <= 0 {
		after()
		return
	}
	r.threads = append(r.threads, thread{r.random(seconds), after, step})
}

// serve passes a mini-batch through a station.
func (r *clusterRun) serve(s *station, seconds float64, after func()) {
	s.enter(func() {
		r.after(r.random(seconds), func() {
			s.leave()
			after()
		})
	})
}

// run simulates until a moment, or until the trainer has taken a number of mini-batches.
func (r *clusterRun) run(until float64, taken int) {
	r.stopAtTaken = taken
	r.deal()
	for r.now < until && r.taken < taken {
		next := math.Min(until, r.period)
		if len(r.events) > 0 {
			next = math.Min(next, r.events[0].at)
		}
		speed := 0.0
		if n := len(r.threads); n > 0 && r.budget > 1e-12 {
			speed = math.Min(1, float64(r.c.Cores)/float64(n))
			next = math.Min(next, r.now+r.budget/(speed*float64(n)))
			for i := range r.threads {
				next = math.Min(next, r.now+r.threads[i].left/speed)
			}
		}
		r.spend((next-r.now)*speed, next)
		if r.now >= r.period {
			r.period += cpuPeriod
			r.budget = r.c.Quota * cpuPeriod
		}
		for len(r.events) > 0 && r.events[0].at <= r.now {
			heap.Pop(&r.events).(event).do()
		}
		r.deal()
	}
}

// spend advances the time; every thread computes for some seconds.
func (r *clusterRun) spend(seconds, now float64) {
	r.now = now
	var ended []func()
	kept := r.threads[:0]
	for _, t := range r.threads {
		t.left -= seconds
		r.budget -= seconds
		if t.step {
			r.stepUsed += seconds
		} else {
			r.workUsed += seconds
		}
		if t.left <= 1e-12 {
			ended = append(ended, t.after)
		} else {
			kept = append(kept, t)
		}
	}
	r.threads = kept
	for _, after := range ended {
		after()
	}
}

// deal starts splits and steps until no further one can start.
func (r *clusterRun) deal() {
	for more := true; more; {
		more = r.trainerTakes() || !r.supplied && r.startSplit()
	}
}

// trainerTakes lets each rank take one mini-batch.
func (r *clusterRun) trainerTakes() bool {
	ranks := r.c.Ranks
	if !r.trains {
		ranks = 1
	}
	if r.stepping > 0 || r.taken >= r.stopAtTaken || !r.supplied && r.queued < ranks {
		return false
	}
	r.observed.StallSeconds += r.now - r.waitedFrom
	if !r.supplied {
		r.queued -= ranks
	}
	for len(r.blocked) > 0 && r.queued < r.c.Queue {
		put := r.blocked[0]
		r.blocked = r.blocked[1:]
		put()
	}
	if !r.trains {
		r.taken++
		r.waitedFrom = r.now
		return true
	}
	r.stepping = ranks
	for range ranks {
		r.compute(r.c.StepCPU, true, func() {
			r.after(r.random(r.c.StepDevice), func() {
				if r.stepping--; r.stepping == 0 {
					r.taken += ranks
					r.waitedFrom = r.now
				}
			})
		})
	}
	return true
}

// startSplit starts the next split on a stream of the side whose turn it is, on the worker with the most free streams.
func (r *clusterRun) startSplit() bool {
	side := r.counters.Next()
	var chosen *clusterStream
	most := -1
	for i := range r.streams[side] {
		s := &r.streams[side][i]
		if s.busy {
			continue
		}
		free := 0
		for _, other := range r.streams[side] {
			if other.worker == s.worker && !other.busy {
				free++
			}
		}
		if free > most {
			chosen, most = s, free
		}
	}
	if chosen == nil {
		return false
	}
	r.counters.Count(side)
	chosen.busy = true
	r.makeBatch(side, chosen, r.c.Split)
	return true
}

// makeBatch makes a mini-batch of a split, and then the remaining mini-batches of the split.
func (r *clusterRun) makeBatch(side offload.Side, s *clusterStream, left int) {
	if left == 0 {
		s.busy = false
		return
	}
	if r.making[side]++; r.making[side] == 1 {
		r.madeFrom[side] = r.now
	}
	ready := func() {
		r.mark(side)
		r.making[side]--
		if side == offload.Local {
			r.observed.LocalRows++
		} else {
			r.observed.RemoteRows++
		}
		put := func() {
			r.queued++
			r.makeBatch(side, s, left-1)
		}
		if r.queued < r.c.Queue {
			put()
		} else {
			r.blocked = append(r.blocked, put)
		}
	}
	c := r.c
	if side == offload.Local {
		r.serve(r.disk, c.LocalRead, func() {
			r.engine.enter(func() {
				r.compute(c.LocalCPU, false, func() {
					r.engine.leave()
					ready()
				})
			})
		})
		return
	}
	n := int(r.cut - offload.Transforms)
	back := func() {
		r.serve(r.down, c.Down*c.DownWork[n], func() {
			r.after(c.Latency, func() { r.compute(c.ReceiveCPU[n], false, ready) })
		})
	}
	work := func() {
		r.workers[s.worker].enter(func() {
			seconds := c.Workers[s.worker].Service * c.WorkerShare[n]
			if r.slow[s.worker] {
				seconds *= c.Workers[s.worker].Slow
			}
			r.after(r.random(seconds), func() {
				r.workers[s.worker].leave()
				back()
			})
		})
	}
	if r.cut == offload.Transforms {
		r.serve(r.disk, c.LocalRead, func() {
			r.compute(c.SendCPU, false, func() {
				r.serve(r.up, c.Up, func() { r.after(c.Latency, work) })
			})
		})
		return
	}
	r.serve(r.workerDisks[s.worker], c.Workers[s.worker].Read, work)
}

// mark adds the time until now in which a side was making mini-batches.
func (r *clusterRun) mark(side offload.Side) {
	if r.making[side] == 0 {
		return
	}
	busy := r.now - r.madeFrom[side]
	r.madeFrom[side] = r.now
	if side == offload.Local {
		r.observed.LocalBusy += busy
	} else {
		r.observed.RemoteBusy += busy
	}
}

// measured continues the run and measures.
func (r *clusterRun) measured(warmup, counted int) (perSecond, workCPU, stepCPU float64) {
	r.run(math.Inf(1), r.taken+warmup)
	begun, from, work, step := r.now, r.taken, r.workUsed, r.stepUsed
	r.run(math.Inf(1), from+counted)
	n := float64(r.taken - from)
	return n / (r.now - begun), (r.workUsed - work) / n, (r.stepUsed - step) / n
}

// profile implements testBed.
func (c *Cluster) profile(rng *rand.Rand, _ float64) offload.Metrics {
	seed := rng.Uint64()
	alone := c.start(offload.None, 0, true, seed)
	alone.supplied = true
	m := offload.Metrics{Cores: c.Quota}
	m.Gthp, _, m.Tcycle = alone.measured(profileBatches/2, profileBatches)
	m.Lthp, _, _ = c.start(offload.None, 0, true, seed+1).measured(profileBatches/2, profileBatches)
	m.Supply, m.Pcycle, _ = c.start(offload.None, 0, false, seed+2).measured(profileBatches/2, profileBatches)
	for i, cut := range c.offloadCuts() {
		next := seed + 3 + 2*uint64(i)
		candidate := offload.Candidate{Cut: cut}
		candidate.Rthp, _, _ = c.start(cut, 1, true, next).measured(profileBatches/2, profileBatches)
		candidate.Supply, candidate.Ocycle, _ = c.start(cut, 1, false, next+1).measured(profileBatches/2, profileBatches)
		m.Candidates = append(m.Candidates, candidate)
	}
	return m
}

// clusterBatches is how many mini-batches a run counts: their service times average out to about a hundredth.
const clusterBatches = 1500

// throughput implements testBed.
func (c *Cluster) throughput(cut offload.Cut, ratio float64, again bool) float64 {
	seed, counted := uint64(1), clusterBatches
	if again {
		seed, counted = 2, 3*clusterBatches
	}
	if cut == offload.None {
		ratio = 0
	}
	perSecond, _, _ := c.start(cut, ratio, true, seed).measured(counted/4, counted)
	return perSecond
}

// begin implements testBed.
func (c *Cluster) begin(cut offload.Cut, ratio float64) tunedJob {
	return c.start(cut, ratio, true, 3)
}

// second implements testBed.
func (c *Cluster) second(profile *offload.Metrics) float64 {
	streams := c.Threads + 1
	for _, w := range c.Workers {
		streams += w.Streams
	}
	return float64(max(c.Split*streams, 32)) / math.Max(profile.Lthp, profile.Gthp/4)
}

// runUntil implements tunedJob.
func (r *clusterRun) runUntil(until float64) { r.run(until, math.MaxInt) }

// inputs implements tunedJob.
func (r *clusterRun) inputs() offload.Inputs {
	r.mark(offload.Local)
	r.mark(offload.Remote)
	in := r.observed
	in.TakenRows = float64(r.taken)
	if r.stepping == 0 {
		in.StallSeconds += r.now - r.waitedFrom
	}
	return in
}

// shares implements tunedJob.
func (r *clusterRun) shares() *offload.Counters { return r.counters }

// finish implements tunedJob.
func (r *clusterRun) finish() float64 {
	perSecond, _, _ := r.measured(0, 3*clusterBatches)
	return perSecond
}
