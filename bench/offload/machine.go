package offload

import (
	"math"
	"math/rand/v2"

	"github.com/millrace/millrace/trainmgr/offload"
)

const (
	countedBatches = 150
	warmupBatches  = 64
	workVariation  = 0.3 // of the work of a mini-batch, at most: a standard deviation of 17 %
)

// drawMachine draws a machine on which preprocessing may bind or not.
func drawMachine(rng *rand.Rand) *Machine {
	between := func(low, high float64) float64 { return low * math.Exp(rng.Float64()*math.Log(high/low)) }
	m := &Machine{
		Cores: between(0.3, 16), LocalCPU: between(0.002, 0.05), QueueBatches: 8 + rng.IntN(56),
		SplitBatches: 1 << (1 + rng.IntN(4)), Variation: workVariation, Seed: rng.Uint64(),
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
	if rng.IntN(3) == 0 {
		streams := m.LocalThreads + 1 + streamsOfWorker*len(m.WorkerSeconds)
		m.EpochBatches = m.SplitBatches * streams * (3 + rng.IntN(6))
		m.QueueBatches = max(m.QueueBatches, rng.IntN(2*m.EpochBatches))
	}
	return m
}

// profile returns the measurements for the policies. noise is the standard deviation of each measurement, as a share.
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

// throughput returns the training throughput at a cut and a share. With again it measures on other mini-batches and for
// longer.
func (m *Machine) throughput(cut offload.Cut, ratio float64, again bool) float64 {
	if cut == offload.None {
		ratio = 0
	}
	warmup, counted := m.steadyBatches()
	other := *m
	if again {
		other.Seed++
		counted *= 2
	}
	return other.run(m.cost(cut), ratio, true, warmup, counted).batchesPerSecond
}

// cost returns the cost of a cut.
func (m *Machine) cost(cut offload.Cut) CutCost {
	for _, c := range m.Cuts {
		if c.Cut == cut {
			return c
		}
	}
	return CutCost{}
}

// steadyBatches returns how many mini-batches a run makes before the measurement, and how many it measures. Both
// numbers are several splits of all streams and several fillings of the input queue, so that the filling of the
// queue does not count as throughput.
func (m *Machine) steadyBatches() (warmup, counted int) {
	streams := m.LocalThreads + 1 + streamsOfWorker*len(m.WorkerSeconds)
	round := m.SplitBatches * streams
	warmup = max(warmupBatches, 2*round, 2*m.QueueBatches)
	counted = max(countedBatches, 4*round, 20*m.SplitBatches, 8*m.QueueBatches)
	if m.EpochBatches > 0 { // a part of an epoch says little
		counted = (counted + m.EpochBatches - 1) / m.EpochBatches * m.EpochBatches
	}
	return warmup, counted
}
