package offload

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr/offload"
)

// TestExtendedIsNearTheBest draws cases. The policy Extended comes to within 5 % of a sweep's best in every case, and
// is nearer than each other policy of the summary, in the mean and in the farthest case. The command bench offload
// draws more cases. It takes half a minute on a busy machine, because a case is a sweep of all cuts and ratios in the
// simulator, and with fewer cases the farthest ones would not be among them.
func TestExtendedIsNearTheBest(t *testing.T) {
	s, err := Simulate(t.Context(), SimulateOptions{Cases: simulatedCases, Seed: 1})
	require.NoError(t, err)
	require.Len(t, s.Summary, len(Policies()))
	extended := s.Summary[0]
	t.Logf("%+v", s.Summary)
	assert.Equal(t, "extended", extended.Policy)
	assert.LessOrEqual(t, extended.Largest, NearShare, "%v are too far; %+v", s.Beyond, s.Farthest)
	for _, other := range s.Summary[1:] {
		assert.Less(t, extended.Mean, other.Mean, other.Policy)
		assert.Less(t, extended.Largest, other.Largest, other.Policy)
	}
	assert.InDelta(t, extended.Largest, s.Farthest.Outcomes[0].Distance, 0)
	require.Len(t, s.Workers, len(workerPolicies))
	for i, w := range s.Workers {
		assert.Equal(t, workerPolicies[i].name, w.Policy)
	}
}

// TestRanksWaitForEachOther: several ranks take as many mini-batches as one, in more time, because each waits for the
// slowest, alone and in a job.
func TestRanksWaitForEachOther(t *testing.T) {
	rates := map[int][2]float64{}
	for _, ranks := range []int{1, 2, 4} {
		m := plainMachine()
		m.StepSeconds, m.Variation, m.Ranks = 0.02, 0.3, ranks
		rates[ranks] = [2]float64{m.trainerAlone().batchesPerSecond, m.run(m.Cuts[0], 0.5, true, 100, 400).batchesPerSecond}
		assert.InEpsilon(t, rates[ranks][0], rates[ranks][1], 0.03, "the trainer binds")
	}
	assert.InDelta(t, 50, rates[1][0], 1e-9)
	assert.InDelta(t, 50/1.1, rates[2][0], 1e-9, "the greater of two steps is longer by a third of the variation")
	assert.InDelta(t, 50/1.18, rates[4][0], 1e-9)
}

// TestWorkerPoliciesAreCompared: Workers has the mean over the cases of each policy's number of workers.
func TestWorkerPoliciesAreCompared(t *testing.T) {
	o := SimulateOptions{Cases: 4, Seed: 3, Noise: 0.01}
	s, err := Simulate(t.Context(), o)
	require.NoError(t, err)
	cases, err := o.run(t.Context())
	require.NoError(t, err)
	for i, w := range s.Workers {
		sum := 0
		for _, c := range cases {
			sum += workerPolicies[i].count(c)
		}
		assert.InDelta(t, float64(sum)/4, w.Mean, 1e-9, w.Policy)
	}
}

// TestWorkerPoliciesCountByTheirFormulas: four workers supply 400 rows a second, so one supplies 100. The trainer takes
// 1,000 rows a second and makes 320 of them itself; the decision's lower bound of the offloaded rate is 650.
func TestWorkerPoliciesCountByTheirFormulas(t *testing.T) {
	c := Case{
		Metrics: offload.Metrics{Gthp: 1000, Lthp: 320,
			Candidates: []offload.Candidate{{Supply: 200}, {Supply: 400}, {Supply: 300}}},
		Outcomes: []Outcome{{Decision: offload.Decision{Offload: true, Lower: 650}}},
	}
	for name, want := range map[string]int{
		"FastFlow, section 9: ceil(Lower / Rthp of one)":              7, // 6.5
		"FastFlow's program: ceil((Gthp - Lthp) / Rthp of one - 0.1)": 7, // 6.7
		"PreSto: ceil(T / P)":                            10, // 10
		"tf.data service: ceil(wanted rate / mean rate)": 10, // 10
	} {
		i := slices.IndexFunc(workerPolicies, func(p workerPolicy) bool { return p.name == name })
		require.GreaterOrEqual(t, i, 0, name)
		assert.Equal(t, want, workerPolicies[i].count(c), name)
	}
	assert.Len(t, workerPolicies, 4, "the policies above")
}

// TestSimulationRepeats: a seed gives the same cases again. Simulate ends with its context, and refuses options that
// are out of range.
func TestSimulationRepeats(t *testing.T) {
	one, err := Simulate(t.Context(), SimulateOptions{Cases: 3, Seed: 5, Noise: -1})
	require.NoError(t, err)
	assert.Zero(t, one.Noise)
	two, err := Simulate(t.Context(), SimulateOptions{Cases: 3, Seed: 5, Noise: -1})
	require.NoError(t, err)
	assert.Equal(t, one, two)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Simulate(ctx, SimulateOptions{})
	require.ErrorIs(t, err, context.Canceled)
	for _, o := range []SimulateOptions{{Cases: -1}, {Cases: MaxCases + 1}, {Noise: 0.51}, {Ranks: -1},
		{Ranks: maxRanks + 1}} {
		_, err := Simulate(t.Context(), o)
		require.ErrorIs(t, err, ErrOptions)
	}
}

// plainMachine is one whose throughput can be computed by hand: four processors, a trainer on a device, one local
// engine thread, one worker.
func plainMachine() *Machine {
	return &Machine{Cores: 4, StepSeconds: 0.001, LocalCPU: 0.01, LocalThreads: 1, WorkerSeconds: []float64{0.01},
		LinkSeconds: 0.0001, QueueBatches: 32, SplitBatches: 4,
		Cuts: []CutCost{{Cut: offload.All, ReceiveCPU: 0.0001, WorkerWork: 1, LinkWork: 1}}}
}

// TestSimulatorAgreesWithArithmetic checks throughputs that can be computed by hand, to within a few per cent.
func TestSimulatorAgreesWithArithmetic(t *testing.T) {
	m := plainMachine()
	rate := func(m *Machine, ratio float64) float64 {
		return m.run(m.Cuts[0], ratio, true, 100, 400).batchesPerSecond
	}
	assert.InDelta(t, 1000, m.trainerAlone().batchesPerSecond, 1e-6)
	assert.InDelta(t, 100, rate(m, 0), 2, "the local thread")
	assert.InDelta(t, 100, rate(m, 1), 2, "the worker")
	assert.InDelta(t, 200, rate(m, 0.5), 6, "both")
	assert.InDelta(t, 133, rate(m, 0.25), 5, "the local thread makes three of four")
	slow := plainMachine()
	slow.StepSeconds = 0.02
	assert.InDelta(t, 50, rate(slow, 0.5), 0.5, "the trainer")
	link := plainMachine()
	link.LinkSeconds = 0.05
	assert.InDelta(t, 20, rate(link, 1), 1, "the link")
	quota := plainMachine()
	quota.Cores = 0.5
	assert.InDelta(t, 50, rate(quota, 0), 1, "the quota")
	assert.InDelta(t, 0.01, quota.run(quota.Cuts[0], 0, false, 50, 100).cpuPerBatch, 0.0005)
	two := plainMachine()
	two.WorkerSeconds = []float64{0.01, 0.005}
	assert.InDelta(t, 300, rate(two, 1), 15, "unlike workers")
}

// TestThroughputNeverExceedsItsBounds draws machines and checks that no run makes more than the trainer, the link and
// the processors allow, with a tolerance of 5 %, 30 % and 1 %.
func TestThroughputNeverExceedsItsBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for range 30 {
		m := drawMachine(rng)
		for _, ratio := range []float64{0, 0.4, 1} {
			r := m.run(m.Cuts[2], ratio, true, 64, 256)
			assert.LessOrEqual(t, r.batchesPerSecond, 1.05*m.trainerAlone().batchesPerSecond)
			assert.LessOrEqual(t, r.batchesPerSecond*ratio, 1.3/m.LinkSeconds, "%v", m)
			assert.LessOrEqual(t, r.batchesPerSecond*(r.cpuPerBatch), 1.01*m.Cores)
		}
	}
}
