package offload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests of this file check sentences of FastFlow (Um et al., PVLDB 16(5), 2023) about the decision, one by one.
// The tests of the sentences about the measurement are in package trainmgr.

func decidePaper(t *testing.T, m Metrics) Decision {
	t.Helper()
	d, err := Decide(Paper, m)
	require.NoError(t, err)
	return d
}

// TestNoStallMeansNoOffloading checks 4.1: "Lthp = Gthp means that the GPUs consume the preprocessed data on CPUs
// without waiting and stalls. In this case, FastFlow executes the original input pipeline on local CPUs without
// offloading (line 4)."
func TestNoStallMeansNoOffloading(t *testing.T) {
	plenty := []Candidate{{Cut: All, Rthp: 1000, Ocycle: 0}}
	for _, lthp := range []float64{100, 101, 1e6} {
		d := decidePaper(t, Metrics{Gthp: 100, Lthp: lthp, Pcycle: 1, Candidates: plenty})
		assert.False(t, d.Offload)
		assert.Equal(t, None, d.Cut)
		assert.Zero(t, d.Ratio)
	}
}

// TestANegligibleSpeedUpIsNotTaken checks 4.1: "By default, FastFlow does not offload preprocessing if the maximum
// increase in speed is negligible (less than 10%), so as to prevent inefficient remote resource use."
func TestANegligibleSpeedUpIsNotTaken(t *testing.T) {
	m := Metrics{Lthp: 1000, Pcycle: 1, Candidates: []Candidate{{Cut: All, Rthp: 1000}}}
	m.Gthp = 1099.9
	assert.False(t, decidePaper(t, m).Offload)
	m.Gthp = 1100
	assert.True(t, decidePaper(t, m).Offload)
}

// TestTheCutWithTheHighestEstimateIsTaken checks 4.2: "FastFlow then compares the estimated training throughput with
// offloading and selects the pipeline that leads to the maximum training throughput", and 4.3: "the estimated training
// throughput with offloading is Lthp * (1 - Ocycle/Pcycle) + Rthp (line 7)".
func TestTheCutWithTheHighestEstimateIsTaken(t *testing.T) {
	m := Metrics{Gthp: 500, Lthp: 100, Pcycle: 10, Candidates: []Candidate{
		{Cut: Transforms, Rthp: 100, Ocycle: 9},        // 10 + 100
		{Cut: ReadAndTransforms, Rthp: 115, Ocycle: 8}, // 20 + 115
		{Cut: All, Rthp: 130, Ocycle: 9.9},             // 1 + 130
	}}
	d := decidePaper(t, m)
	assert.Equal(t, ReadAndTransforms, d.Cut)
	assert.InDelta(t, 135, d.Expected, 1e-9)
	// "p'1 can lead to the best performance compared to the others when the data transfer throughput (...) from the
	// local to the remote node is higher than the data fetching throughput on the remote node".
	m.Candidates[0].Rthp = 200
	assert.Equal(t, Transforms, decidePaper(t, m).Cut)
}

// TestUpperIsWhatTheWorkersMake checks 4.3: "Intuitively, offloading more than Rthp to the remote nodes will lead to
// the remote bottleneck, and therefore, Upper is Rthp."
func TestUpperIsWhatTheWorkersMake(t *testing.T) {
	d := decidePaper(t, Metrics{Gthp: 500, Lthp: 100, Pcycle: 10,
		Candidates: []Candidate{{Cut: All, Rthp: 123, Ocycle: 1}}})
	assert.InDelta(t, 123, d.Upper, 0)
}

// TestOverheadRaisesLower checks 4.3: "FastFlow tries to offload more data to the remote nodes if the additional
// overhead for offloading is large compared to preprocessing overhead (Pcycle). This is represented by multiplying the
// ratio of offloading and preprocessing cycles (1 + Ocycle/Pcycle) to Gthp - Lthp."
func TestOverheadRaisesLower(t *testing.T) {
	lower := func(ocycle float64) float64 {
		return decidePaper(t, Metrics{Gthp: 300, Lthp: 100, Pcycle: 10,
			Candidates: []Candidate{{Cut: All, Rthp: 250, Ocycle: ocycle}}}).Lower
	}
	assert.InDelta(t, 200, lower(0), 0)
	assert.InDelta(t, 300, lower(5), 0)
	assert.InDelta(t, 400, lower(10), 0)
}

// TestWithoutARemedyTheLoadIsBalanced checks 4.3: "In some cases, Upper is lower than Lower, e.g., when the remote CPU
// power or network bandwidth is low (line 13). (...) The best way in this case is to evenly balance the load among
// local and remote CPUs based on the resource capacity (Rthp/(Lthp + Rthp))."
func TestWithoutARemedyTheLoadIsBalanced(t *testing.T) {
	d := decidePaper(t, Metrics{Gthp: 1000, Lthp: 100, Pcycle: 10,
		Candidates: []Candidate{{Cut: All, Rthp: 300, Ocycle: 1}}})
	assert.InDelta(t, 0.75, d.Ratio, 0)
}

// TestRatioFollowsTheWorkers checks 7.3: "For CPU-intensive workloads, the optimal offloading ratio increases as the
// number of remote CPUs increases", and "offloading 50% of data is optimal in 7:7, but in 7:21, 80% of data needs to be
// preprocessed for the optimal performance".
func TestRatioFollowsTheWorkers(t *testing.T) {
	ratio := func(workers float64) float64 {
		return decidePaper(t, Metrics{Gthp: 1000, Lthp: 100, Pcycle: 10,
			Candidates: []Candidate{{Cut: All, Rthp: 100 * workers, Ocycle: 0.1}}}).Ratio
	}
	assert.InDelta(t, 0.5, ratio(1), 0.05)
	assert.InDelta(t, 0.8, ratio(3), 0.06)
	assert.Greater(t, ratio(4), ratio(3))
	// "For data-transfer-intensive workloads, the optimal offloading ratio decreases as the network bandwidth decreases".
	assert.InDelta(t, 0.3, ratio(0.43), 0.01)
}

// TestFirstWorkers checks section 9: "The number of workers for offloading can be simply derived by n_workers =
// [Lower/Rthp_a_worker]", rounded up.
func TestFirstWorkers(t *testing.T) {
	m := Metrics{Gthp: 300, Lthp: 100, Pcycle: 10, Candidates: []Candidate{{Cut: All, Rthp: 500, Ocycle: 1}}}
	d := decidePaper(t, m)
	assert.InDelta(t, 220, d.Lower, 1e-9)
	for rthpOfOne, want := range map[float64]int{220: 1, 219: 2, 110: 2, 100: 3, 1e9: 1, 0: 0, 1e-300: maxWorkers} {
		assert.Equal(t, want, FirstWorkers(d, rthpOfOne), rthpOfOne)
	}
	assert.Zero(t, FirstWorkers(Decision{Lower: 100}, 10), "nothing is offloaded")
}

// TestOneKeyAMetric checks Table 2: M gives Gthp, (P, M) gives Lthp and Pcycle, (P, M, RemoteNodeInfo) gives Rthp, P'
// and Ocycle; "For the model, FastFlow also stores its batch size, as the batch size affects GPU throughput. If the key
// is matched, FastFlow loads the corresponding metric and skips profiling."
func TestOneKeyAMetric(t *testing.T) {
	parts := KeyParts{Model: "dlrm-512", Batch: 8192, Machine: "2 cores", Pipeline: []byte("rm1"),
		Workers: []string{"a", "b"}}
	m := Metrics{Gthp: 3, Lthp: 2, Pcycle: 1, Tcycle: 0.5, Cores: 2, Supply: 4,
		Candidates: []Candidate{{Cut: All, Rthp: 2.5, Ocycle: 0.25, Supply: 5}}}
	var table Table
	require.NoError(t, table.Put(parts.Keys(), m, Known{true, true, true}))
	got, known := table.Lookup(parts.Keys())
	assert.Equal(t, m, got)
	assert.True(t, known.All())
	for name, c := range map[string]struct {
		change func(p *KeyParts)
		known  Known
	}{
		"workers in another order": {func(p *KeyParts) { p.Workers = []string{"b", "a"} }, Known{true, true, true}},
		"other workers":            {func(p *KeyParts) { p.Workers = []string{"a"} }, Known{true, true, false}},
		"names that run together":  {func(p *KeyParts) { p.Workers = []string{"ab"} }, Known{true, true, false}},
		"another pipeline":         {func(p *KeyParts) { p.Pipeline = []byte("rm2") }, Known{true, false, false}},
		"another batch":            {func(p *KeyParts) { p.Batch = 4096 }, Known{}},
		"another model":            {func(p *KeyParts) { p.Model = "dlrm-256" }, Known{}},
		"another machine":          {func(p *KeyParts) { p.Machine = "4 cores" }, Known{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := parts
			c.change(&p)
			got, known := table.Lookup(p.Keys())
			assert.Equal(t, c.known, known)
			if !known.Remote {
				assert.Empty(t, got.Candidates)
			}
			if !known.Pipeline {
				assert.Zero(t, got.Lthp+got.Pcycle+got.Supply)
			}
		})
	}
}
