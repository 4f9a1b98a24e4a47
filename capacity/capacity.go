// Package capacity plans a purchase: how many drives a job needs, which constraint binds, the watts and dollars, and
// the CPU cores that would sustain the same rate.
//
// # Overview
//
// A [Need] is a job: bytes to store, T rows a second, bytes a row. [Plan] counts drives by three constraints, capacity,
// T/P and read bandwidth, takes the largest and says which it is. Money follows PreSto V-C:
//
//	cost-efficiency = throughput x duration / (CapEx + OpEx),  OpEx = sum(power x duration x price of electricity)
//
// Drives that only store are bought anyway: a plan that capacity binds says how few of its drives preprocess at once. P
// comes from a measurement (--p) or from the model of fpga/timing. It is the rate of the computation: what the flash
// yields is a constraint of its own. [Plan] counts drives alone; package sizing counts whole placements, with nodes,
// networks and racks. Prices and powers are a YAML file ([Prices]), each with its source; the embedded one is PreSto's
// where PreSto states a figure and an assumption, named so, where it does not.
//
// CPU baselines stand beside the drives ([CoresOf]): PreSto's TorchArrow cores, and two that bench/peers measured,
// TorchArrow's loops and our own kernels. Each is the rate of one core for one model, in rows a second. It does not
// depend on P, so a slower drive makes no baseline look worse. A model without a rate has no baseline of that kind. The
// plan repeats no ratio of a paper: PreSto's own ratios rest on its cores and its node power.
//
// # Errors
//
// [ErrNeed] for a job with impossible figures, [ErrPrices] for an invalid price file.
package capacity

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/internal/quantity"
)

var (
	// ErrNeed says that the job's figures are impossible.
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
		Cores           float64 `yaml:"cores"`
		CoresSource     string  `yaml:"cores_source"`
		NodeWatts       float64 `yaml:"node_watts"`
		NodeWattsSource string  `yaml:"node_watts_source"`
		NodeUSD         float64 `yaml:"node_usd"`
		NodeUSDSource   string  `yaml:"node_usd_source"`
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
		{"duration.years", p.Duration.Years}, {"drive.bytes", p.Drive.Bytes}, {"drive.watts", p.Drive.Watts},
		{"drive.usd", p.Drive.USD},
		{"drive.read_bytes_per_second", p.Drive.Read}, {"drive.fill", p.Drive.Fill}, {"cpu.cores", p.CPU.Cores},
		{"cpu.node_watts", p.CPU.NodeWatts},
		{"cpu.node_usd", p.CPU.NodeUSD}, {"electricity.usd_per_kwh", p.Electricity.USDPerKWh},
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
	P           float64 // rows/s that one drive computes; 0: unknown, and the drive keeps up with its flash
	PSource     string
	Assumes     []string // lines that the report has beside the plan's own
	// CPUs are the baselines on CPU cores.
	CPUs []CoreRate
}

// CoreRate is the rate at which one CPU core preprocesses, as a baseline beside the drives.
type CoreRate struct {
	Name          string
	RowsPerSecond float64 // rows/s of one core; 0 if unknown
	Source        string  // the source of the rate, or the reason why it is unknown
}

// Constraint is one reason to need drives.
type Constraint struct {
	Name   string `json:"constraint"`
	Drives int64  `json:"drives"`
	Why    string `json:"reason"`
}

// Result is a plan.
type Result struct {
	Model         string       `json:"model"`
	T             float64      `json:"t_rows_per_second"`
	P             float64      `json:"p_rows_per_second"`
	PSource       string       `json:"p_source"`
	DriveRate     float64      `json:"drive_rows_per_second"` // the lower of P and of what the flash yields
	Constraints   []Constraint `json:"constraints"`
	Drives        int64        `json:"drives"`
	Binds         string       `json:"binding_constraint"`
	Busy          int64        `json:"busy_drives"`
	Watts         float64      `json:"drives_watts"`
	CapEx         float64      `json:"drives_capex_usd"`
	OpEx          float64      `json:"drives_opex_usd"`
	RowsPerDollar float64      `json:"drives_rows_per_usd"`
	BusyWatts     float64      `json:"busy_drives_watts"`
	BusyUSD       float64      `json:"busy_drives_usd"` // CapEx + OpEx
	Baselines     []Baseline   `json:"cpu_baselines"`
	Says          string       `json:"conclusion"`
	Assumes       []string     `json:"assumptions"`
	NotCounted    []string     `json:"exclusions"`
}

// Baseline has the CPU cores that would sustain the same T, whatever P is. Watts and dollars are of whole nodes.
type Baseline struct {
	Name       string  `json:"name" table:"the same T on CPU cores"`
	DriveCores float64 `json:"cores_a_drive" table:"cores a drive|-%.2g"` // how many cores equal one drive; 0: no figure
	Cores      int64   `json:"cores" table:"cores|-%d"`
	Nodes      int64   `json:"nodes" table:"nodes|-%d"`
	Watts      float64 `json:"watts" table:"watts|-%.0f"`
	USD        float64 `json:"usd" table:"CapEx + OpEx, $|-%.0f"`
	Rows       float64 `json:"rows_per_usd" table:"rows a $|-%.4g"`
	Source     string  `json:"source"` // the source of the core's rate, or the reason why it is unknown
}

// mostDrives bounds a plan: beyond it a figure is a slip.
const mostDrives = 1e12

// Plan counts drives, watts and dollars. Errors wrap ErrNeed.
func Plan(n Need, p *Prices) (*Result, error) {
	if n.Replicas == 0 {
		n.Replicas = 1
	}
	if !(n.T > 0) || !(n.BytesPerRow > 0) || math.IsInf(n.T*n.BytesPerRow, 0) {
		return nil,
			fmt.Errorf("%w: T is %v rows/s, a row has %v bytes: want numbers above 0", ErrNeed, n.T, n.BytesPerRow)
	}
	if n.Bytes < 0 || n.P < 0 || n.Replicas < 0 || math.IsNaN(n.Bytes+n.P) || math.IsInf(n.Bytes+n.P, 0) {
		return nil,
			fmt.Errorf("%w: bytes %v, replicas %d, P %v: want numbers not below 0", ErrNeed, n.Bytes, n.Replicas, n.P)
	}
	r := &Result{Model: n.Model, T: n.T, P: n.P, PSource: n.PSource}
	flash := p.Drive.Read / n.BytesPerRow
	if r.P == 0 {
		r.P, r.PSource = flash, "drive's read bandwidth / bytes a row"
	}
	r.DriveRate = min(r.P, flash)
	up := func(x float64) int64 { return int64(math.Ceil(x - 1e-9)) }
	usable := p.Drive.Bytes * p.Drive.Fill
	r.Constraints = []Constraint{
		{
			"capacity", up(n.Bytes * float64(n.Replicas) / usable),
			fmt.Sprintf("%.4g bytes x %d copies / (%.4g bytes x %.2g full)", n.Bytes, n.Replicas, p.Drive.Bytes,
				p.Drive.Fill),
		},
		{"t_over_p", up(n.T / r.P), fmt.Sprintf("T %.4g rows/s / P %.4g rows/s", n.T, r.P)},
		{
			"read_bandwidth", up(n.T * n.BytesPerRow / p.Drive.Read),
			fmt.Sprintf("%.4g rows/s x %.4g bytes / %.4g bytes/s", n.T, n.BytesPerRow, p.Drive.Read),
		},
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
	r.BusyWatts = float64(r.Busy) * p.Drive.Watts
	r.BusyUSD = float64(r.Busy)*p.Drive.USD + opex(r.BusyWatts)
	baseline := func(name string, driveCores, cores float64, source string) Baseline {
		b := Baseline{Name: name, DriveCores: driveCores, Cores: up(cores), Source: source}
		b.Nodes = up(float64(b.Cores) / p.CPU.Cores)
		b.Watts = float64(b.Nodes) * p.CPU.NodeWatts
		if b.USD = float64(b.Nodes)*p.CPU.NodeUSD + opex(b.Watts); b.USD > 0 {
			b.Rows = rows / b.USD
		}
		return b
	}
	r.Baselines = []Baseline{}
	for _, c := range n.CPUs {
		if c.RowsPerSecond < 0 || math.IsNaN(c.RowsPerSecond) || c.RowsPerSecond > 0 &&
			!(n.T/c.RowsPerSecond <= mostDrives) {
			return nil, fmt.Errorf("%w: %s: %v rows/s a core: want a rate above 0", ErrNeed, c.Name, c.RowsPerSecond)
		}
		if c.RowsPerSecond == 0 {
			r.Baselines = append(r.Baselines, Baseline{Name: c.Name, Source: c.Source})
			continue
		}
		r.Baselines = append(r.Baselines, baseline(c.Name, r.DriveRate/c.RowsPerSecond, n.T/c.RowsPerSecond, c.Source))
	}
	switch r.Binds {
	case "capacity":
		why := "T/P"
		if r.Constraints[2].Drives > r.Constraints[1].Drives {
			why = "read bandwidth"
		}
		r.Says = fmt.Sprintf("%d drives hold the data; %d of them at once feed the trainers (%s). Capacity binds: the "+
			"compute comes with the storage.", r.Drives, r.Busy, why)
	default:
		r.Says = fmt.Sprintf("%s: %s binds; the data alone would fit %d.", quantity.Of(r.Drives, "drive"), r.Binds,
			max(r.Constraints[0].Drives, 0))
	}
	r.Assumes = []string{
		"drive price: " + p.Drive.USDSource, "drive power: " + p.Drive.WattsSource, "drive reads: " +
			p.Drive.ReadSource,
		"CPU node: " + p.CPU.CoresSource + "; " + p.CPU.NodeWattsSource + "; " + p.CPU.NodeUSDSource,
		"P: " + r.PSource,
		"watts of the drives and of the CPU nodes are the price file's, not measured: what they come to beside each " +
			"other follows from those figures alone",
	}
	r.Assumes = append(r.Assumes, n.Assumes...)
	if n.P == 0 {
		r.Assumes = append(r.Assumes,
			"t_over_p and read_bandwidth are one constraint here: P is not known, and taken to be what the drive's "+
				"read bandwidth gives; give --p with a measured P to set them apart")
	}
	r.NotCounted = []string{
		"the network between storage and trainers",
		"the storage hosts that hold the drives, and in the CPU rows the drives " +
			"that the data lies on", "the trainers' own CPUs, which receive the mini-batches",
	}
	return r, nil
}
