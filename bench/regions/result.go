package regions

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/fpga/timing"
)

// Result is everything that was measured.
type Result struct {
	Drive   string `json:"drive"` // mem or file
	Regions int    `json:"regions"`
	Threads int    `json:"engine_threads"` // Each region's engine has these threads.
	Cores   int    `json:"cores"`          // processors that this process may use

	// Switch, Beside and HostIO are left out under a modelled timing.
	Switch     SwitchResult   `json:"switch,omitzero"`
	Beside     BesideResult   `json:"beside_switches,omitzero"`
	Throughput []Throughput   `json:"throughput"`
	HostIO     []HostIO       `json:"host_io,omitempty"`
	Timing     *timing.Report `json:"timing,omitempty"` // nil: native
	Notes      []string       `json:"notes"`
}

// Quantiles are those of some times, in seconds.
type Quantiles struct {
	P50 float64 `json:"p50_seconds"`
	P99 float64 `json:"p99_seconds"`
	Max float64 `json:"max_seconds"`
}

// SwitchResult is how long the switch of a region takes.
type SwitchResult struct {
	Switches   int       `json:"switches"`
	OtherJobs  int       `json:"other_jobs"` // jobs that ran in other regions meanwhile
	Drain      Quantiles `json:"drain"`      // from the interruption of the job to the end of its last slice
	Switch     Quantiles `json:"switch"`     // from there to the first slice that the drive accepted
	Activation Quantiles `json:"activation"` // Activation is the time of the command alone.
}

// BesideResult is what jobs of other regions lose while a region is switched.
type BesideResult struct {
	Jobs  int `json:"jobs"` // Jobs counts those of other regions.
	Turns int `json:"turns"`
	// RowsPerSecond are those of all jobs of other regions together, the median of the turns: without switches and with.
	RowsPerSecond         float64 `json:"rows_per_second"`
	RowsPerSecondSwitched float64 `json:"switched_rows_per_second"`
	Loss                  float64 `json:"loss_share"` // Loss is that of the medians.
	LeastLoss             float64 `json:"least_loss_share"`
	MostLoss              float64 `json:"most_loss_share"` // MostLoss is the greatest loss of a turn.
	SwitchesPerSecond     float64 `json:"switches_per_second"`
}

// Throughput is the rates of jobs in some regions at once.
type Throughput struct {
	Regions            int       `json:"regions"`
	Models             []string  `json:"models"`          // by region
	RowsPerSecond      []float64 `json:"rows_per_second"` // by region
	TotalRowsPerSecond float64   `json:"total_rows_per_second"`
	Speedup            float64   `json:"speedup"` // the sum of each job's rate over that of its workload alone
}

// HostIO is a run with ordinary reads and writes of a host, with jobs in regions, or with both.
type HostIO struct {
	Share         int        `json:"host_io_share_percent"` // 100: no limit
	Jobs          int        `json:"jobs"`                  // 0: reads and writes alone
	Depth         int        `json:"depth"`                 // commands at a time, half of them reads; 0: jobs alone
	RowsPerSecond float64    `json:"rows_per_second"`       // RowsPerSecond is the sum of all jobs.
	IOPS          float64    `json:"iops"`
	Read          *Quantiles `json:"read,omitempty"`
	Write         *Quantiles `json:"write,omitempty"`
}

// quantilesOf returns those of some times, which it sorts.
func quantilesOf(times []time.Duration) Quantiles {
	slices.Sort(times)
	return Quantiles{P50: quantileSeconds(times, 0.5), P99: quantileSeconds(times, 0.99), Max: quantileSeconds(times, 1)}
}

// quantileSeconds returns the least time that a share of the sorted times does not exceed, in seconds.
func quantileSeconds(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[max(i, 0)].Seconds()
}

// medianOf returns the median of some numbers, the mean of the middle two where there are two.
func medianOf(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// turn is the rates of the jobs of other regions in a turn, all together.
type turn struct{ without, with float64 }

// setRateLoss compares the rates of turns.
func (b *BesideResult) setRateLoss(turns []turn) {
	var without, with []float64
	b.LeastLoss, b.MostLoss = math.Inf(1), math.Inf(-1)
	for _, t := range turns {
		without, with = append(without, t.without), append(with, t.with)
		loss := 1 - t.with/t.without
		b.LeastLoss, b.MostLoss = min(b.LeastLoss, loss), max(b.MostLoss, loss)
	}
	b.Turns, b.RowsPerSecond, b.RowsPerSecondSwitched = len(turns), medianOf(without), medianOf(with)
	b.Loss = 1 - b.RowsPerSecondSwitched/b.RowsPerSecond
}

// newThroughput makes a line of the table, from the rates of jobs and the rates of their workloads alone.
func newThroughput(models []string, rates []float64, alone map[string]float64) Throughput {
	t := Throughput{Regions: len(models), Models: models, RowsPerSecond: rates}
	for i, rate := range rates {
		t.TotalRowsPerSecond += rate
		t.Speedup += rate / alone[models[i]]
	}
	return t
}

// explanations says what the figures are of.
func (r *Result) explanations() []string {
	list := []string{"the drive is software, and so are its regions: threads of this process, which share its cores"}
	if most := r.Regions * r.Threads; most > r.Cores {
		list = append(list, fmt.Sprintf("there are %d cores for up to %d engine threads: rates add up over %d regions at "+
			"most", r.Cores, most, max(1, r.Cores/r.Threads)))
	}
	return list
}
