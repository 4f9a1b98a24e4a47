package sizing

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/millrace/millrace/capacity"
)

// ErrJob says that a job's figures are impossible.
var ErrJob = errors.New("plan")

// Job is what is to be planned for. Of a figure only Value, Low, High, Kind and Source are wanted. A figure of T, bytes
// or a row without a range goes from half to double in the tornado.
type Job struct {
	Model    string
	Own      bool   // Model is the name of a user's own pipeline: what papers say of a model of that name does not hold
	T        Figure // rows/s that the trainers take
	Bytes    Figure // to store, one copy; 0: capacity does not matter
	RowIn    Figure // bytes of a row that are read from flash
	RowOut   Figure // bytes of a row's tensors, which go to the trainer
	ReadSize Figure // bytes of a read from flash, on average

	Replicas  int     // copies of every partition; 0 means 1
	Growth    float64 // Growth is that of the bytes in a year: 0.5 is half as much again.
	TGrowth   float64 // TGrowth is that of T in a year.
	Retention float64 // days after which data is replaced by new data; 0: never
	Trainers  int     // training nodes; 0: as few as their network interfaces and CPUs allow
	Medium    Medium  // Plain drives are SSD (also "") or HDD.

	Drive, Card Rates
	// PreStoDrive is the rate of PreSto's SmartSSD, and the others are rates of one core, all in rows/s. None depends
	// on Drive. If a rate is unknown, Value is 0 and Source has the reason.
	PreStoDrive, PreStoCore, DPPCore, LoopsCore, KernelsCore Figure
}

// Rates are what a device computes.
type Rates struct {
	P Figure // rows/s; a zero Value: no figure, and Source says why
	// Memory is the bandwidth of the device's memory in bytes/s. A zero Value: P contains it.
	Memory Figure
}

// mostCount bounds every count: beyond it a figure is a slip.
const mostCount = 1e12

// check refuses impossible figures.
func (j *Job) check() error {
	for _, c := range []struct {
		name string
		v    float64
		zero bool
	}{
		{"T", j.T.Value, false}, {"the bytes of a row that are read", j.RowIn.Value, false},
		{"the bytes of a row that are sent", j.RowOut.Value, false}, {"the bytes of a read", j.ReadSize.Value, false},
		{"the bytes to store", j.Bytes.Value, true}, {"growth", j.Growth, true}, {"growth of T", j.TGrowth, true},
		{"retention", j.Retention, true},
	} {
		if !(c.v > 0 || c.zero && c.v == 0) || math.IsInf(c.v, 0) {
			return fmt.Errorf("%w: %s: %v, want a number above 0", ErrJob, c.name, c.v)
		}
	}
	if j.Replicas < 0 || j.Trainers < 0 {
		return fmt.Errorf("%w: %d copies, %d training nodes: want numbers not below 0", ErrJob, j.Replicas, j.Trainers)
	}
	if j.Medium != "" && j.Medium != SSD && j.Medium != HDD {
		return fmt.Errorf("%w: medium %q: want ssd or hdd", ErrJob, j.Medium)
	}
	return nil
}

// paperModel returns the model of which papers say something, if the job is one's.
func (j *Job) paperModel() string {
	if j.Own {
		return ""
	}
	return j.Model
}

// medium returns what plain drives are.
func (j *Job) medium() Medium {
	if j.Medium == HDD {
		return HDD
	}
	return SSD
}

// ofJob returns a copy of the table that also has the figures of the prices and of the job.
func (t *Table) ofJob(p *capacity.Prices, j *Job) (*Table, error) {
	c := &Table{figures: maps.Clone(t.figures), order: append([]string(nil), t.order...)}
	for _, f := range append(priceFigures(p), j.figures()...) {
		if err := f.check(true); err != nil {
			return nil, err
		}
		c.set(f)
	}
	return c, nil
}

// priceFigures returns the figures of the price file.
func priceFigures(p *capacity.Prices) []Figure {
	priced := func(name string, value float64, unit, source string) Figure {
		f := Figure{Name: name, Value: value, Unit: unit, Kind: Published, Source: source}
		if strings.HasPrefix(source, "assumption") {
			// Nobody published the figure: a fifth less and a half more is the range that the report tries.
			f.Kind, f.Low, f.High = Assumed, value*0.8, value*1.5
		}
		switch {
		case source == "":
			f.Kind, f.Source = Assumed, "the price file, without a source"
		case strings.HasPrefix(source, string(Measured)):
			f.Kind = Measured
		}
		return f
	}
	fill := priced(figureFill, p.Drive.Fill, "of the bytes", p.Drive.FillSource)
	fill.High = min(fill.High, 1)
	return []Figure{
		priced(string(CSD)+ofBytes, p.Drive.Bytes, "B", p.Drive.BytesSource),
		priced(string(CSD)+ofRead, p.Drive.Read, "B/s", p.Drive.ReadSource),
		priced(string(CSD)+ofWatts, p.Drive.Watts, "W", p.Drive.WattsSource),
		priced(string(CSD)+ofUSD, p.Drive.USD, "$", p.Drive.USDSource),
		fill,
		priced(figureCPUCores, p.CPU.Cores, "cores", p.CPU.CoresSource),
		priced(figureCPUWatts, p.CPU.NodeWatts, "W", p.CPU.NodeWattsSource),
		priced(figureCPUUSD, p.CPU.NodeUSD, "$", p.CPU.NodeUSDSource),
		priced(figureYears, p.Duration.Years, "years", p.Duration.Source),
		priced(figureElectricity, p.Electricity.USDPerKWh, "$/kWh", p.Electricity.Source),
	}
}

// figures returns the figures of the job.
func (j *Job) figures() []Figure {
	named := func(name, unit string, f Figure) Figure { f.Name, f.Unit = name, unit; return f }
	ranged := func(name, unit string, f Figure) Figure {
		if !f.varies() {
			f.Low, f.High = f.Value/2, f.Value*2
		}
		return named(name, unit, f)
	}
	given := func(name, unit string, value float64) Figure {
		return Figure{Name: name, Value: value, Unit: unit, Kind: Assumed, Source: "given for this plan"}
	}
	list := []Figure{
		ranged(figureT, "rows/s", j.T), ranged(figureBytes, "B", j.Bytes), ranged(figureRowIn, "B", j.RowIn),
		ranged(figureRowOut, "B", j.RowOut), named(figureReadSize, "B", j.ReadSize),
		given(figureReplicas, "copies", float64(max(j.Replicas, 1))),
		given(figureGrowth, "a year", j.Growth), given(figureTGrowth, "a year", j.TGrowth),
		given(figureRetention, "days", j.Retention), given(figureTrainers, "training nodes", float64(j.Trainers)),
		named(figureDriveP, "rows/s", j.Drive.P), named(figureDriveMemory, "B/s", j.Drive.Memory),
		named(figureCardP, "rows/s", j.Card.P), named(figureCardMemory, "B/s", j.Card.Memory),
		named(figurePreStoDrive, "rows/s", j.PreStoDrive), named(figurePreStoCore, "rows/s", j.PreStoCore),
		named(figureDPPCore, "rows/s", j.DPPCore), named(figureLoopsCore, "rows/s", j.LoopsCore),
		named(figureKernelCore, "rows/s", j.KernelsCore),
	}
	for i := range list {
		if f := &list[i]; f.Value == 0 {
			f.Kind, f.Low, f.High = Assumed, 0, 0
			if f.Source == "" {
				f.Source = "no figure"
			}
		}
	}
	return list
}
