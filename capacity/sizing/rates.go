package sizing

import (
	"fmt"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/fpga/timing"
)

// RatesOf returns the rates of a modelled device. Where the device's stages overlap, P is that of its units, and its
// memory is a bandwidth of its own; moves from flash and output are left to the drives' constraints. Without overlap a
// mini-batch's stages follow each other, and P contains them all but the output.
func RatesOf(d timing.Device, b capacity.Batch) Rates {
	if !d.Overlap {
		d.P2P = timing.SmartSSDMeasuredP2P
		times := d.Times(b.Work)
		times.Rows = b.Rows
		return Rates{P: Figure{Value: times.RowsPerSecond(false), Kind: Modelled,
			Source: "model of " + d.Name + ", the sum of its stages"}}
	}
	times := d.Times(b.Work)
	times.Rows, times.Move, times.DDR = b.Rows, 0, 0
	unit, _ := times.Bottleneck(false)
	return Rates{
		P: Figure{Value: times.RowsPerSecond(false), Kind: Modelled, Source: fmt.Sprintf("model of %s: %s binds its "+
			"units", d.Name, unit)},
		Memory: Figure{Value: d.DDR, Kind: Modelled, Source: "model of " + d.Name +
			": 80 % of the DDR4's peak, assumed"},
	}
}

// JobOf returns the job of a model, rm1 to rm5 or dpp-rm1 to dpp-rm3, with the rates of the modelled devices and the
// rates of cores that were measured or published; for any other model the rates have no figure. T of rm1 to rm5 is not
// known, nor is what they store.
func JobOf(model string, idBytes int) (*Job, error) {
	j := newJob(model)
	none := Figure{Source: "no figure for the rows of this job: give --p"}
	j.Drive.P, j.Card.P = none, Figure{Source: "no figure: only rm1 to rm5 have a model of a card"}
	if err := j.baselineRates(model); err != nil {
		return nil, err
	}
	if w, dpp := capacity.DPPWorker(model); dpp {
		j.dpp(model, w)
		return j, nil
	}
	w, err := capacity.CostOfRow(model, idBytes)
	if err != nil {
		return j, nil // a job of the user's own, whose row flags describe
	}
	b := capacity.BatchOf(w)
	j.Drive, j.Card = RatesOf(timing.SmartSSD(), b), RatesOf(timing.U280(), b)
	narrow := w
	narrow.TensorIDBytes = 4
	j.RowIn = Figure{Value: w.InBytes(), Low: w.InBytes() / 2, High: w.InBytes(), Kind: Modelled,
		Source: fmt.Sprintf("PreSto, Table I, PLAIN and uncompressed, ids of %d bytes, every feature present; low: "+
			"half of it, for compressed files", idBytes)}
	j.RowOut = Figure{Value: w.Work(1).OutBytes, Low: narrow.Work(1).OutBytes, High: w.Work(1).OutBytes, Kind: Modelled,
		Source: "dense float32, ids of 8 bytes, lengths, label; low: ids of 4 bytes"}
	return j, nil
}

// newJob returns a job of which only the bytes of a read are known.
func newJob(model string) *Job {
	return &Job{Model: model, ReadSize: Figure{Value: 64 << 10, Low: 4 << 10, High: 1280 << 10, Kind: Assumed,
		Source: "the most that --coalesce joins; high: DPP's 1.25 MiB"}}
}

// baselineRates sets the rates of PreSto's drive and cores, and those of cores that bench/peers measured.
func (j *Job) baselineRates(model string) error {
	cores, err := capacity.CoresOf(model)
	if err != nil {
		return err
	}
	figure := func(r capacity.CoreRate, k Kind) Figure {
		return Figure{Value: r.RowsPerSecond, Kind: k, Source: r.Source}
	}
	j.LoopsCore, j.KernelsCore = figure(cores.Loops, Measured), figure(cores.Kernels, Measured)
	drive := capacity.PreStoDrive(model)
	j.PreStoDrive, j.PreStoCore = figure(drive, Modelled), figure(cores.PreSto, Modelled)
	if j.PreStoCore.Value > 0 {
		j.PreStoCore.Low = drive.RowsPerSecond / capacity.PreStoMostCores
		j.PreStoCore.High = drive.RowsPerSecond / capacity.PreStoFewestCores
	}
	return nil
}

// Baselines returns the rates of cores as the baselines beside the drives. Each name ends with the kind of its figure.
func (j *Job) Baselines() []capacity.CoreRate {
	rate := func(name string, f *Figure) capacity.CoreRate {
		if f.Value > 0 {
			name += ", " + string(f.Kind)
		}
		return capacity.CoreRate{Name: name, RowsPerSecond: f.Value, Source: f.Source}
	}
	return []capacity.CoreRate{rate("PreSto's TorchArrow cores", &j.PreStoCore),
		rate("TorchArrow's loops", &j.LoopsCore), rate("our kernels", &j.KernelsCore)}
}

// dpp sets what DPP publishes of a model.
func (j *Job) dpp(model string, w capacity.Worker) {
	need, _ := capacity.DPP(model)
	published := func(v float64, source string) Figure { return Figure{Value: v, Kind: Published, Source: source} }
	j.T = published(need.T,
		"DPP, Tables VIII and IX: the workers of one training node of 8 V100s times their rows a second")
	j.Bytes = published(need.Bytes, "DPP, Table III: compressed bytes of the partitions that a job reads")
	j.RowIn = published(need.BytesPerRow, "DPP, Table IX: storage RX over kQPS of a worker")
	j.RowOut = published(w.TensorBytes, "DPP, Table IX: transform TX over kQPS of a worker")
	j.DPPCore = published(w.CoreRowsPerSecond, "DPP, Tables IX and X: kQPS of a worker of 18 cores")
	j.ReadSize = published(23.2e3, "DPP, Table VI: mean of RM1's reads; no other model's is published")
}
