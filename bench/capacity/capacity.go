// Package capacity answers what to buy: how many drives a job needs, which constraint binds, the watts and dollars,
// beside the CPU cores that would do the same.
//
// # Overview
//
// A [Need] is a job: bytes to store, T rows a second, bytes a row. [Plan] counts drives by three constraints, capacity, T/P and read bandwidth,
// takes the largest and says which it is. Money follows PreSto V-C:
//
//	cost-efficiency = throughput x duration / (CapEx + OpEx),  OpEx = sum(power x duration x price of electricity)
//
// Drives that only store are bought anyway: a plan that capacity binds says how few of its drives preprocess at once.
// P comes from a measurement (--p) or from the model of fpga/timing. Prices and powers are a YAML file ([Prices]), each with its
// source; the embedded one is PreSto's where PreSto states a figure and an assumption, named so, where it doesn't.
//
// # Errors
//
// [ErrNeed] for a job that makes no sense, [ErrPrices] for a price file that does not.
package capacity

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"

	"go.yaml.in/yaml/v3"
)

var (
	// ErrNeed says that the job's figures make no sense.
	ErrNeed = errors.New("plan")
	// ErrPrices says that the price file does not parse or a figure is out of range.
	ErrPrices = errors.New("prices")
)

//go:embed prices.yaml
var defaultPrices []byte

// DefaultPrices returns the embedded price file, comments and sources included.
func DefaultPrices() []byte { return bytes.Clone(defaultPrices) }

// Prices is the price file.
type Prices struct {
	Electricity struct {
		USDPerKWh float64 `yaml:"usd_per_kwh"`
		Source    string  `yaml:"source"`
	} `yaml:"electricity"`
	Duration struct {
		Years  float64 `yaml:"years"`
		Source string  `yaml:"source"`
	} `yaml:"duration"`
	Drive struct {
		Name        string  `yaml:"name"`
		Bytes       float64 `yaml:"bytes"`
		BytesSource string  `yaml:"bytes_source"`
		Watts       float64 `yaml:"watts"`
		WattsSource string  `yaml:"watts_source"`
		USD         float64 `yaml:"usd"`
		USDSource   string  `yaml:"usd_source"`
		Read        float64 `yaml:"read_bytes_per_second"`
		ReadSource  string  `yaml:"read_source"`
		Fill        float64 `yaml:"fill"`
		FillSource  string  `yaml:"fill_source"`
	} `yaml:"drive"`
	CPU struct {
		Name             string  `yaml:"name"`
		Cores            float64 `yaml:"cores"`
		CoresSource      string  `yaml:"cores_source"`
		NodeWatts        float64 `yaml:"node_watts"`
		NodeWattsSource  string  `yaml:"node_watts_source"`
		NodeUSD          float64 `yaml:"node_usd"`
		NodeUSDSource    string  `yaml:"node_usd_source"`
		DriveCores       float64 `yaml:"drive_cores"`
		DriveCoresSource string  `yaml:"drive_cores_source"`
	} `yaml:"cpu"`
}

// ReadPrices reads a price file; unknown keys are errors.
func ReadPrices(b []byte) (*Prices, error) {
	var p Prices
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrPrices, err)
	}
	for _, c := range []struct {
		name string
		v    float64
	}{
		{"duration.years", p.Duration.Years}, {"drive.bytes", p.Drive.Bytes}, {"drive.watts", p.Drive.Watts}, {"drive.usd", p.Drive.USD},
		{"drive.read_bytes_per_second", p.Drive.Read}, {"drive.fill", p.Drive.Fill}, {"cpu.cores", p.CPU.Cores}, {"cpu.node_watts", p.CPU.NodeWatts},
		{"cpu.node_usd", p.CPU.NodeUSD}, {"cpu.drive_cores", p.CPU.DriveCores}, {"electricity.usd_per_kwh", p.Electricity.USDPerKWh},
	} {
		if !(c.v > 0) || math.IsInf(c.v, 0) {
			return nil, fmt.Errorf("%w: %s is %v, want a number above 0", ErrPrices, c.name, c.v)
		}
	}
	if p.Drive.Fill > 1 {
		return nil, fmt.Errorf("%w: drive.fill is %v, want at most 1", ErrPrices, p.Drive.Fill)
	}
	return &p, nil
}

// Need is a job to plan for.
type Need struct {
	Model       string  // name, for the report
	Bytes       float64 // to store, one copy; 0 if capacity does not matter
	Replicas    int     // copies of every partition, 0 means 1
	T           float64 // rows/s that the trainers take
	BytesPerRow float64 // read from flash, as stored
	P           float64 // rows/s of one drive; 0 derives it from the drive's read bandwidth
	PSource     string
}

// Constraint is one reason to need drives.
type Constraint struct {
	Name   string `json:"constraint"`
	Drives int64  `json:"drives"`
	Why    string `json:"why"`
}

// Result is a plan.
type Result struct {
	Model         string       `json:"model"`
	T             float64      `json:"t_rows_per_second"`
	P             float64      `json:"p_rows_per_second"`
	PSource       string       `json:"p_source"`
	Constraints   []Constraint `json:"constraints"`
	Drives        int64        `json:"drives"`
	Binds         string       `json:"binds"`
	Busy          int64        `json:"drives_preprocessing_at_once"`
	Watts         float64      `json:"drives_watts"`
	CapEx         float64      `json:"drives_capex_usd"`
	OpEx          float64      `json:"drives_opex_usd"`
	RowsPerDollar float64      `json:"drives_rows_per_usd"`
	Cores         int64        `json:"cpu_cores"`
	Nodes         int64        `json:"cpu_nodes"`
	CPUWatts      float64      `json:"cpu_watts"`
	CPUCapEx      float64      `json:"cpu_capex_usd"`
	CPUOpEx       float64      `json:"cpu_opex_usd"`
	CPURows       float64      `json:"cpu_rows_per_usd"`
	Compute       Comparison   `json:"compute_only"`
	Says          string       `json:"says"`
	Assumes       []string     `json:"assumes"`
}

// Comparison sets the drives that preprocess at once (not those that only store) beside the CPU cores, as PreSto does.
type Comparison struct {
	Watts       float64 `json:"watts"`
	USD         float64 `json:"usd"` // CapEx + OpEx
	EnergyRatio float64 `json:"energy_efficiency_ratio"`
	CostRatio   float64 `json:"cost_efficiency_ratio"`
	PaperSays   string  `json:"paper_says"`
}

// mostDrives bounds a plan: beyond it a figure is a slip.
const mostDrives = 1e12

// Plan counts drives, watts and dollars. Errors wrap ErrNeed.
func Plan(n Need, p *Prices) (*Result, error) {
	if n.Replicas == 0 {
		n.Replicas = 1
	}
	if !(n.T > 0) || !(n.BytesPerRow > 0) || math.IsInf(n.T*n.BytesPerRow, 0) {
		return nil, fmt.Errorf("%w: T is %v rows/s, a row has %v bytes: want numbers above 0", ErrNeed, n.T, n.BytesPerRow)
	}
	if n.Bytes < 0 || n.P < 0 || n.Replicas < 0 || math.IsNaN(n.Bytes+n.P) || math.IsInf(n.Bytes+n.P, 0) {
		return nil, fmt.Errorf("%w: bytes %v, replicas %d, P %v: want numbers not below 0", ErrNeed, n.Bytes, n.Replicas, n.P)
	}
	r := &Result{Model: n.Model, T: n.T, P: n.P, PSource: n.PSource}
	if r.P == 0 {
		r.P = p.Drive.Read / n.BytesPerRow
		r.PSource = "drive's read bandwidth / bytes a row"
	}
	up := func(x float64) int64 { return int64(math.Ceil(x - 1e-9)) }
	usable := p.Drive.Bytes * p.Drive.Fill
	r.Constraints = []Constraint{
		{"capacity", up(n.Bytes * float64(n.Replicas) / usable), fmt.Sprintf("%.4g bytes x %d copies / (%.4g bytes x %.2g full)", n.Bytes, n.Replicas, p.Drive.Bytes, p.Drive.Fill)},
		{"t_over_p", up(n.T / r.P), fmt.Sprintf("T %.4g rows/s / P %.4g rows/s", n.T, r.P)},
		{"read_bandwidth", up(n.T * n.BytesPerRow / p.Drive.Read), fmt.Sprintf("%.4g rows/s x %.4g bytes / %.4g bytes/s", n.T, n.BytesPerRow, p.Drive.Read)},
	}
	for _, x := range []float64{n.Bytes * float64(n.Replicas) / usable, n.T / r.P, n.T * n.BytesPerRow / p.Drive.Read} {
		if !(x <= mostDrives) {
			return nil, fmt.Errorf("%w: %.3g drives, which no plan is for: check T, P and the bytes", ErrNeed, x)
		}
	}
	for _, c := range r.Constraints {
		if c.Drives > r.Drives {
			r.Drives, r.Binds = c.Drives, c.Name
		}
	}
	r.Busy = max(r.Constraints[1].Drives, r.Constraints[2].Drives)
	hours := p.Duration.Years * 365 * 24
	opex := func(watts float64) float64 { return watts / 1000 * hours * p.Electricity.USDPerKWh }
	rows := n.T * hours * 3600
	r.Watts = float64(r.Drives) * p.Drive.Watts
	r.CapEx, r.OpEx = float64(r.Drives)*p.Drive.USD, opex(r.Watts)
	r.RowsPerDollar = rows / (r.CapEx + r.OpEx)
	r.Cores = up(float64(r.Busy) * p.CPU.DriveCores)
	r.Nodes = up(float64(r.Cores) / p.CPU.Cores)
	r.CPUWatts = float64(r.Nodes) * p.CPU.NodeWatts
	r.CPUCapEx, r.CPUOpEx = float64(r.Nodes)*p.CPU.NodeUSD, opex(r.CPUWatts)
	r.CPURows = rows / (r.CPUCapEx + r.CPUOpEx)
	busyWatts := float64(r.Busy) * p.Drive.Watts
	busyUSD := float64(r.Busy)*p.Drive.USD + opex(busyWatts)
	r.Compute = Comparison{
		Watts: busyWatts, USD: busyUSD, EnergyRatio: r.CPUWatts / busyWatts, CostRatio: (r.CPUCapEx + r.CPUOpEx) / busyUSD,
		PaperSays: "PreSto VI-B: energy 11.3x on average (15.1x at most), cost 4.3x (5.6x at most)",
	}
	switch r.Binds {
	case "capacity":
		r.Says = fmt.Sprintf("%d drives hold the data; %d of them at once feed the trainers (T/P). Capacity binds: the compute comes with the storage.", r.Drives, r.Busy)
	default:
		r.Says = fmt.Sprintf("%d drives: %s binds; the data alone would fit %d.", r.Drives, r.Binds, max(r.Constraints[0].Drives, 0))
	}
	r.Assumes = []string{
		"drive price: " + p.Drive.USDSource, "drive power: " + p.Drive.WattsSource, "drive reads: " + p.Drive.ReadSource,
		"CPU: " + p.CPU.DriveCoresSource + "; " + p.CPU.NodeWattsSource + "; " + p.CPU.NodeUSDSource,
		"P: " + r.PSource,
	}
	return r, nil
}
