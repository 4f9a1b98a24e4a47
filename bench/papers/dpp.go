package papers

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// What DPP states, and a disk that is assumed.
const (
	dppCoalesce    = 1.25 * (1 << 20) // VII: bytes of a read that joins streams
	dppWorkerCores = 18               // Table X: C-v1
	dppRM3Node     = 12.0e9           // Table VIII: bytes a second of tensors that a trainer node takes
	dppWorkerGain  = 2.94             // VII: of a worker's throughput, after all changes
	dppStorageGain = 2.41             // VII: of the storage's throughput
	dppPowerGain   = 2.59             // VII: of the power of both

	diskSeek = 8e-3  // assumed: seconds of a seek and half a turn of a disk
	diskRate = 200e6 // assumed: bytes a second
)

// dppModels are Tables VIII and IX: gigabytes a second that a trainer node takes, and that a worker sends.
var dppModels = []struct {
	name         string
	node, worker float64
}{{"rm1", 16.50, 0.68}, {"rm2", 4.69, 0.50}, {"rm3", 12.00, 0.22}}

// dppTransforms are the operators of this project's catalogue for Table XI's, in its order.
var dppTransforms = []string{"cartesian", "bucketize", "compute_score", "enumerate", "positive_modulus",
	"id_list_transform", "box_cox", "logit", "map_id", "firstx", "get_local_hour", "sigrid_hash", "ngram", "onehot",
	"clamp", "sampling"}

// modelDPP sets the workers of a trainer node, by this project's rule, and which transforms there are.
func modelDPP(r *Result) error {
	for _, m := range dppModels {
		r.set(Modelled, "table9.exact."+m.name, "workers", m.node/m.worker)
		r.set(Modelled, "table9.workers."+m.name, "workers", float64(allocation.WorkersFor(m.node, m.worker)))
	}
	rm3, err := workload.Find("rm3") // of PreSto, which follows DPP's
	if err != nil {
		return err
	}
	r.set(Counted, "table4.dense", "features", float64(rm3.Dense))
	r.set(Counted, "table4.sparse", "features", float64(rm3.Sparse))
	has := map[string]bool{"sampling": true} // a filter of rows: pipelines have a field for it
	for _, o := range pipeline.Catalogue() {
		has[o.Name] = true
	}
	count := 0
	for _, name := range dppTransforms {
		if has[name] {
			count++
		}
	}
	r.set(Counted, "table11.transforms", "operators", float64(count))
	// The share of preprocessing in the power before follows from the three printed gains: 1/2.59 = share/2.94 +
	// (1 - share)/2.41.
	r.set(Modelled, "power.share", "share",
		(1/dppStorageGain-1/dppPowerGain)/(1/dppStorageGain-1/dppWorkerGain))
	return nil
}

// measureDPP makes the warehouse and reads a model's features in every way of section VII.
func measureDPP(ctx context.Context, o *Options, r *Result) error {
	tell := func(s string) {
		if o.Progress != nil {
			o.Progress(s)
		}
	}
	tell("warehouse: generate features in maps")
	mapped, err := makeTable(ctx, o, smallStripe, true)
	if err != nil {
		return err
	}
	tell("warehouse: generate a column a feature")
	flat, err := makeTable(ctx, o, smallStripe, false)
	if err != nil {
		return err
	}
	wide, err := makeTable(ctx, o, largeStripe, false)
	if err != nil {
		return err
	}
	if err := dppStorage(r, mapped, flat, wide); err != nil {
		return err
	}
	tell("warehouse: measure a worker")
	if err := dppWorker(ctx, o, r, mapped, flat); err != nil {
		return err
	}
	dppPower(r)
	tell("transforms: measure the classes of VI-D")
	return measureMix(ctx, o, r)
}

// dppPower sets the power that both gains save, weighted as the paper's gains are.
func dppPower(r *Result) {
	share := r.at("power.share")
	r.set(ModelledAndMeasured, "power.gain", "times",
		1/(share/r.at("worker.over_maps")+(1-share)/r.at("storage.over_maps.large_stripes")))
}

// dppStorage sets sizes of reads and, on the assumed disk, the bytes a second that were wanted.
func dppStorage(r *Result, mapped, flat, wide *table) error {
	all, err := mapped.chunks(true)
	if err != nil {
		return err
	}
	apart, err := flat.chunks(true)
	if err != nil {
		return err
	}
	beside, err := flat.chunks(false)
	if err != nil {
		return err
	}
	besideWide, err := wide.chunks(false)
	if err != nil {
		return err
	}
	apartWide, err := wide.chunks(true)
	if err != nil {
		return err
	}
	d := distributionOf(apartWide)
	for name, v := range map[string]float64{"mean": d.mean, "deviation": d.deviation, "p5": d.p5, "p25": d.p25,
		"p50": d.p50, "p75": d.p75, "p95": d.p95} {
		r.set(Counted, "table6."+name, "bytes", v)
	}
	r.set(Counted, "table5.features", "share", float64(readDense+readSparse)/(warehouseDense+warehouseSparse))
	r.set(Counted, "table5.bytes", "share", total(apartWide)/float64(len(wide.bytes)))
	wanted := total(apart)
	for _, step := range []struct {
		name   string
		wanted float64
		reads  [][]byteRange
	}{
		{"maps", wanted, coalesce(all, math.MaxInt64)}, // a row group as a whole
		{"flattened", wanted, apart},
		{"coalesced", wanted, coalesce(apart, dppCoalesce)},
		{"ordered", total(beside), coalesce(beside, dppCoalesce)},
		{"large_stripes", total(besideWide), coalesce(besideWide, dppCoalesce)},
	} {
		seeks := 0
		for _, group := range step.reads {
			seeks += len(group)
		}
		seconds := float64(seeks)*diskSeek + total(step.reads)/diskRate
		r.set(Modelled, "storage.rate."+step.name, "bytes/s", step.wanted/seconds)
		r.set(Counted, "storage.reads."+step.name, "reads", float64(seeks))
		r.set(Counted, "storage.excess."+step.name, "share", 1-step.wanted/total(step.reads))
	}
	for _, name := range []string{"flattened", "coalesced", "ordered", "large_stripes"} {
		r.set(Modelled, "storage.over_maps."+name, "times", r.at("storage.rate."+name)/r.at("storage.rate.maps"))
	}
	return nil
}

// dppWorker sets what one core of a worker does with features in maps and with a column a feature, and what DPP's
// number of cores would do with rows as wide as those of RM3.
func dppWorker(ctx context.Context, o *Options, r *Result, mapped, flat *table) error {
	least := o.duration(5 * time.Second)
	for name, t := range map[string]*table{"maps": mapped, "flattened": flat} {
		p, err := t.measure(ctx, least)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.set(Measured, "worker.rows."+name, "rows/CPU-s", p.rowsPerCPUSecond)
		r.set(Counted, "worker.bytes_in."+name, "bytes/row", float64(p.bytesIn)/float64(p.rows))
	}
	r.set(Measured, "worker.over_maps", "times", r.at("worker.rows.flattened")/r.at("worker.rows.maps"))
	measured, err := rm.Run(ctx, rm.Options{Models: []string{"rm3"}, Threads: 1, Rows: o.size(largeStripe),
		Coverage: warehouseShare, Codec: warehouseCodec, Time: least, Folder: o.Folder, Progress: o.Progress})
	if err != nil {
		return err
	}
	m := &measured[0]
	rows := dppWorkerCores * perCPU(m)
	out := rows * m.OutputBytesPerSecond / m.RowsPerSecond
	r.set(Measured, "worker.node_rows", "rows/s", rows)
	r.set(Measured, "worker.node_in", "bytes/s", rows*m.InputBytesPerSecond/m.RowsPerSecond)
	r.set(Measured, "worker.node_out", "bytes/s", out)
	r.set(Measured, "worker.nodes", "workers", dppRM3Node/out)
	return nil
}
