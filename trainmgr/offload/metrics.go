package offload

import (
	"errors"
	"fmt"
	"math"
)

// ErrMetrics says that a metric is not a number, is negative, or contradicts another metric.
var ErrMetrics = errors.New("metrics of offloading")

// Cut is the place in the pipeline from which workers elsewhere preprocess.
type Cut uint8

// The cuts. FastFlow calls the last three p'1, p'2 and p'3.
const (
	None              Cut = iota // nothing is offloaded
	Transforms                   // the trainer's machine reads, a worker transforms
	ReadAndTransforms            // a worker reads and transforms, the trainer's machine gathers mini-batches
	All                          // a worker makes whole mini-batches
)

var cutNames = [...]string{"none", "transforms", "read_and_transforms", "all"}

// String returns the cut's name in documents and flags.
func (c Cut) String() string {
	if int(c) < len(cutNames) {
		return cutNames[c]
	}
	return fmt.Sprintf("cut %d", uint8(c))
}

// MarshalText returns the cut's name.
func (c Cut) MarshalText() ([]byte, error) {
	if int(c) >= len(cutNames) {
		return nil, fmt.Errorf("%w: there is no %v", ErrMetrics, c)
	}
	return []byte(c.String()), nil
}

// UnmarshalText reads a cut's name.
func (c *Cut) UnmarshalText(text []byte) error {
	for i, name := range cutNames {
		if name == string(text) {
			*c = Cut(i)
			return nil
		}
	}
	return fmt.Errorf("%w: no cut is called %.40q: want none, transforms, read_and_transforms or all", ErrMetrics, text)
}

// Candidate holds the metrics of one cut, measured with all remote workers that the job may use.
type Candidate struct {
	Cut    Cut     `json:"cut"`
	Rthp   float64 `json:"rthp_rows_per_second"`   // throughput with everything remote, with the trainer
	Ocycle float64 `json:"ocycle_row_cpu_seconds"` // CPU time on the trainer's machine, without the trainer
	// Supply is the throughput with everything remote and without the trainer: of workers and network. 0: not measured.
	Supply float64 `json:"supply_rows_per_second,omitempty"`
}

// Metrics are the measurements from which the policies decide. Algorithm 1 uses Gthp, Lthp, Pcycle and each
// candidate's Rthp and Ocycle; the other fields are for Extended and may be 0, which means not measured.
type Metrics struct {
	Gthp       float64     `json:"gthp_rows_per_second"`   // throughput of the trainer alone, on one cached mini-batch
	Lthp       float64     `json:"lthp_rows_per_second"`   // throughput with everything local, with the trainer
	Pcycle     float64     `json:"pcycle_row_cpu_seconds"` // CPU time with everything local, without the trainer
	Candidates []Candidate `json:"candidates,omitempty"`

	Tcycle float64 `json:"tcycle_row_cpu_seconds,omitempty"` // CPU time of the trainer alone
	Cores  float64 `json:"cores,omitempty"`                  // CPUs that the trainer's machine may use
	// Supply is the throughput with everything local and without the trainer. 0: not measured.
	Supply float64 `json:"supply_rows_per_second,omitempty"`
}

// most bounds every metric. No machine reaches it, and sums of metrics below it do not overflow.
const most = 1e18

// checkMetrics refuses metrics that are not numbers or contradict each other.
func (m *Metrics) checkMetrics() error {
	number := func(name string, v float64) error {
		if !(v >= 0) || v > most || (v > 0 && v < 1/most) {
			return fmt.Errorf("%w: %s is %v: want 0, or %g to %g", ErrMetrics, name, v, 1/most, most)
		}
		return nil
	}
	errs := []error{number("Gthp", m.Gthp), number("Lthp", m.Lthp), number("Pcycle", m.Pcycle),
		number("Tcycle", m.Tcycle), number("Cores", m.Cores), number("Supply", m.Supply)}
	for _, c := range m.Candidates {
		if c.Cut == None || int(c.Cut) >= len(cutNames) {
			errs = append(errs, fmt.Errorf("%w: a candidate of cut %v offloads nothing", ErrMetrics, c.Cut))
			continue
		}
		prefix := c.Cut.String() + ": "
		errs = append(errs, number(prefix+"Rthp", c.Rthp), number(prefix+"Ocycle", c.Ocycle),
			number(prefix+"Supply", c.Supply))
		if m.Pcycle == 0 && c.Ocycle > 0 {
			errs = append(errs, fmt.Errorf("%w: %sOcycle is %v where Pcycle is 0: measure Pcycle first", ErrMetrics,
				prefix, c.Ocycle))
		}
	}
	return errors.Join(errs...)
}

// relativeCost returns Ocycle / Pcycle: the CPU time that the trainer's machine spends on a row that arrives ready, in
// units of the CPU time that the machine needs to preprocess the row.
func (m *Metrics) relativeCost(c Candidate) float64 {
	if c.Ocycle == 0 {
		return 0
	}
	return c.Ocycle / m.Pcycle
}

// shareWithin returns v bounded to 0 to 1, and 0 if v is not a number.
func shareWithin(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return math.Min(v, 1)
}
