package papers

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/results"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/host/workload"
)

// What PreSto states of its system.
const (
	prestoCores  = capacity.PreStoCores
	prestoDrives = capacity.PreStoDrives
	prestoGPUs   = capacity.PreStoGPUs
	prestoFew    = 16              // III-A: CPU cores that feed one A100
	prestoMost   = 11.6            // VI-A: most that one drive's latency is below one core's
	prestoLink   = 10e9 / 8        // V-B: 10 Gbps Ethernet, in bytes a second
	idBytes      = 8               // of an id in files: those that bench/peers reads
	smallIDBytes = 4               // those of files with int32 ids
	rm5          = "rm5"           // the model of most of the paper's figures
	perDrive     = "cores a drive" // a unit of values
)

// modelPreSto sets what follows from the model of a SmartSSD, from Table I, and from the kept run of bench/peers.
func modelPreSto(r *Result) error {
	for _, m := range workload.Models() {
		tableI(r, m)
		if err := modelDrive(r, m.Name); err != nil {
			return err
		}
	}
	mean := 0.0
	for _, m := range workload.Models() {
		mean += r.at("fig12.extract."+m.Name) / float64(len(workload.Models()))
	}
	r.set(Modelled, "fig12.extract.mean", "share", mean)
	for _, model := range []func(*Result) error{tableII, modelBounds, modelCores, modelMoney, modelCards,
		modelFeatures} {
		if err := model(r); err != nil {
			return err
		}
	}
	return nil
}

// tableI sets the workloads' shapes as this project makes them.
func tableI(r *Result, m workload.Model) {
	for _, v := range []struct {
		name  string
		value float64
	}{{"dense", float64(m.Dense)}, {"sparse", float64(m.Sparse)}, {"length", m.MeanLength},
		{"generated", float64(m.Generated)}, {"borders", float64(m.Borders)}, {"tables", float64(m.Tables)},
		{"embeddings", float64(m.Embeddings)}} {
		r.set(Counted, "table1."+m.Name+"."+v.name, "features", v.value)
	}
}

// modelDrive sets the stages and the throughput of the modelled SmartSSD.
func modelDrive(r *Result, model string) error {
	w, err := capacity.CostOfRow(model, idBytes)
	if err != nil {
		return err
	}
	t := timing.SmartSSD().Batch(w, workload.Batch)
	r.set(Modelled, "fig12.serial."+model, "ms", 1e3*t.Serial())
	r.set(Modelled, "fig12.extract."+model, "share", t.ExtractShare())
	r.set(Modelled, "drive.rows."+model, "rows/s", t.RowsPerSecond(false))
	r.set(Modelled, "drive.rows_with_output."+model, "rows/s", t.RowsPerSecond(true))
	return nil
}

// modelBounds sets the range of the modelled throughput of RM5: a slower link, and narrower ids.
func modelBounds(r *Result) error {
	w, err := capacity.CostOfRow(rm5, idBytes)
	if err != nil {
		return err
	}
	slow := timing.SmartSSD()
	slow.P2P = timing.SmartSSDMeasuredP2P
	r.set(Modelled, "drive.rows_slow_link.rm5", "rows/s", slow.Batch(w, workload.Batch).RowsPerSecond(false))
	w.IDBytes = smallIDBytes
	small := timing.SmartSSD().Batch(w, workload.Batch)
	r.set(Modelled, "drive.rows_small_ids.rm5", "rows/s", small.RowsPerSecond(false))
	return nil
}

// modelCores sets how many cores a modelled drive equals: the paper's, and those that bench/peers measured.
func modelCores(r *Result) error {
	drive := r.at("drive.rows.rm5")
	r.set(Modelled, "cores.paper_core", "rows/s", drive/(float64(prestoCores)/prestoDrives))
	serial := r.at("fig12.serial.rm5") / 1e3
	r.set(Modelled, "cores.batches_in_flight", "mini-batches", serial*drive/workload.Batch)
	r.set(Modelled, "cores.from_latency", perDrive, prestoMost*serial*drive/workload.Batch)
	peers, err := results.Peers()
	if err != nil {
		return err
	}
	r.Kept = peers.Source()
	for _, model := range []string{"rm1", rm5} {
		for name, program := range map[string]string{"loops": results.TorchArrowLoops, "kernels": results.Ours} {
			core, ok := peers.Rate(model, results.PlainLayout, program)
			if !ok {
				return fmt.Errorf("capacity/results has no rate of %s for %s: run `make bench-peers`", program, model)
			}
			r.set(Kept, "core.rows."+name+"."+model, "rows/s", core)
			r.set(ModelledAndKept, "cores."+name+"."+model, perDrive, r.at("drive.rows."+model)/core)
			r.set(ModelledAndKept, "fig12.speedup."+name+"."+model, "times",
				workload.Batch/core/(r.at("fig12.serial."+model)/1e3))
		}
	}
	for _, model := range []string{"rm1", rm5} {
		r.set(Kept, "cores.kernels_over_loops."+model, "times",
			r.at("core.rows.kernels."+model)/r.at("core.rows.loops."+model))
	}
	loops := r.at("core.rows.loops.rm5")
	r.set(ModelledAndKept, "cores.slow_link.loops.rm5", perDrive, r.at("drive.rows_slow_link.rm5")/loops)
	r.set(ModelledAndKept, "cores.small_ids.loops.rm5", perDrive, r.at("drive.rows_small_ids.rm5")/loops)
	// An A100's part of the rate that the drives sustain is fed by few cores, which do not exceed it.
	gpu := prestoDrives * drive / prestoGPUs
	r.set(Modelled, "fig3.gpu.paper_core", "share", min(1, prestoFew*r.at("cores.paper_core")/gpu))
	r.set(ModelledAndKept, "fig3.gpu.loops", "share", min(1, prestoFew*loops/gpu))
	r.set(ModelledAndKept, "fig3.gpu.kernels", "share", min(1, prestoFew*r.at("core.rows.kernels.rm5")/gpu))
	r.set(ModelledAndKept, "fig14.drives_for_paper_cores", "drives", math.Ceil(prestoCores*loops/drive))
	r.set(ModelledAndKept, "fig14.cores_for_paper_drives", "cores", math.Ceil(prestoDrives*drive/loops))
	r.set(ModelledAndKept, "fig14.kernel_cores_for_paper_drives", "cores",
		math.Ceil(prestoDrives*drive/r.at("core.rows.kernels.rm5")))
	return nil
}

// modelMoney sets watts and dollars of the nine drives of VI-B and of the 367 cores, from the price file.
func modelMoney(r *Result) error {
	prices, err := capacity.ReadPrices(capacity.DefaultPrices())
	if err != nil {
		return err
	}
	drive := r.at("drive.rows.rm5")
	w, err := capacity.CostOfRow(rm5, idBytes)
	if err != nil {
		return err
	}
	prices.Drive.Read = timing.AssumedP2P // that of P
	// The paper's cores are compared with the modelled drive.
	core := capacity.CoreRate{Name: "PreSto's cores", RowsPerSecond: r.at("cores.paper_core")}
	plan, err := capacity.Plan(capacity.Need{Model: rm5, T: prestoDrives * drive, BytesPerRow: w.InBytes(), P: drive,
		CPUs: []capacity.CoreRate{core}}, prices)
	if err != nil {
		return err
	}
	published := plan.Baselines[0]
	r.set(Modelled, "fig15.drives", "drives", float64(plan.Busy))
	r.set(Modelled, "fig15.drive_watts", "W", plan.BusyWatts)
	r.set(Modelled, "fig15.nodes", "nodes", float64(published.Nodes))
	r.set(Modelled, "fig15.node_watts", "W", published.Watts)
	r.set(Modelled, "fig15.energy", "times", published.Watts/plan.BusyWatts)
	r.set(Modelled, "fig15.cost", "times", published.USD/plan.BusyUSD)
	return nil
}

// modelCards sets VI-C's design points: PreSto on an Alveo U280, and a U280 to which data is copied and from which
// tensors are copied over the network of V-B.
func modelCards(r *Result) error {
	w, err := capacity.CostOfRow(rm5, idBytes)
	if err != nil {
		return err
	}
	drive, card := timing.SmartSSD(), timing.U280()
	d, c := drive.Batch(w, workload.Batch), card.Batch(w, workload.Batch)
	r.set(Modelled, "fig16.card_serial", "ms", 1e3*c.Serial())
	r.set(Modelled, "fig16.card_over_drive", "times", d.Serial()/c.Serial())
	r.set(Modelled, "fig16.per_watt", "times", c.Serial()*timing.U280Watts/(d.Serial()*timing.PreStoWatts))
	work := w.Work(workload.Batch)
	copies := (work.FlashBytes + work.OutBytes) / prestoLink
	// The drive's tensors cross the network as well; the card's data crosses it before.
	away := c.Serial() + copies
	near := d.Serial() + work.OutBytes/prestoLink
	r.set(Modelled, "fig16.copy_share", "share", copies/away)
	r.set(Modelled, "fig16.drive_over_away_card", "times", away/near)
	return nil
}

// featureSteps are how many times RM5's features Figure 17 is modelled for.
var featureSteps = []int{1, 2, 4}

// modelFeatures sets the time of a mini-batch's operators over the number of features.
func modelFeatures(r *Result) error {
	w, err := capacity.CostOfRow(rm5, idBytes)
	if err != nil {
		return err
	}
	for _, n := range featureSteps {
		more := w
		more.Dense, more.Sparse, more.Generated = n*w.Dense, n*w.Sparse, n*w.Generated
		t := timing.SmartSSD().Batch(more, workload.Batch)
		for name, v := range map[string]float64{"bucketize": t.Bucketize, "hash": t.Hash, "log": t.Log} {
			r.set(Modelled, fmt.Sprintf("fig17.%s.%d", name, n), "ms", 1e3*v)
		}
	}
	return nil
}
