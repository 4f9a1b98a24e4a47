package papers

import (
	"context"
	"time"

	"github.com/millrace/millrace/bench/placement"
	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/bench/roofline"
	"github.com/millrace/millrace/host/workload"
)

// What a copy, which Figure 6 is compared with, takes at least.
const (
	copyBytes = 256 << 20 // more than caches hold
	copyTime  = 500 * time.Millisecond
)

// measurePreSto measures RM1 to RM5 on this machine's cores, and counts bytes between machines.
func measurePreSto(ctx context.Context, o *Options, r *Result) error {
	var models []string
	timed := rm.Options{Threads: 1, Time: o.duration(5 * time.Second), Folder: o.Folder, Progress: o.Progress}
	for _, model := range workload.Models() {
		models = append(models, model.Name)
		timed.Models, timed.Rows = []string{model.Name}, o.size(rowsOf(model))
		measured, err := rm.Run(ctx, timed)
		if err != nil {
			return err
		}
		m := &measured[0]
		r.set(Measured, "fig5.rows."+m.Model, "rows/CPU-s", perCPU(m))
		r.set(Measured, "fig5.transform."+m.Model, "share",
			m.TransformShare/(m.MoveShare+m.DecodeShare+m.TransformShare))
		r.set(Measured, "fig5.latency."+m.Model, "ms", 1e3*workload.Batch/perCPU(m))
		if model.Name == "rm1" || model.Name == rm5 { // those of Figure 6
			r.set(Measured, "fig6.cpu."+m.Model, "share", m.CPUSeconds/m.ElapsedSeconds)
			r.set(Measured, "fig6.traffic."+m.Model, "bytes/s", m.InputBytesPerSecond+m.OutputBytesPerSecond)
		}
	}
	r.set(Measured, "fig6.copy", "bytes/s", roofline.Copy(ctx, 1, int(o.whole(copyBytes)), o.duration(copyTime)))
	for _, model := range []string{"rm1", rm5} {
		r.set(Measured, "fig6.bandwidth."+model, "share", r.at("fig6.traffic."+model)/r.at("fig6.copy"))
	}
	for _, model := range models {
		r.set(Measured, "fig5.over_rm1."+model, "times", r.at("fig5.latency."+model)/r.at("fig5.latency.rm1"))
	}
	drive := r.at("drive.rows.rm5")
	r.set(ModelledAndMeasured, "cores.here.rm5", perDrive, drive/r.at("fig5.rows.rm5"))
	if err := measureThreads(ctx, r, timed); err != nil {
		return err
	}
	if err := measureSteps(ctx, o, r); err != nil {
		return err
	}
	return countMoves(ctx, o, r)
}

// rowsOf is the rows of a data set of about 100 MB.
func rowsOf(m workload.Model) int64 {
	if m.Lists {
		return 16_384
	}
	return 524_288
}

// perCPU is rows a second of processor time, which other programs on the cores disturb little. Where the system does
// not tell processor time, it is rows a second.
func perCPU(m *rm.Result) float64 {
	if m.CPURowsPerSecond > 0 {
		return m.CPURowsPerSecond
	}
	return m.RowsPerSecond
}

// measureThreads sets how RM5 scales to two threads, by processor time.
func measureThreads(ctx context.Context, r *Result, o rm.Options) error {
	o.Models = []string{rm5}
	rates := map[int]float64{}
	for _, threads := range []int{1, 2} {
		o.Threads = threads
		measured, err := rm.Run(ctx, o)
		if err != nil {
			return err
		}
		rates[threads] = float64(threads) * perCPU(&measured[0])
	}
	r.set(Measured, "fig3.scaling", "times", rates[2]/rates[1])
	return nil
}

// countMoves sets the bytes a row between machines, of storage that preprocesses and of workers that fetch chunks.
func countMoves(ctx context.Context, o *Options, r *Result) error {
	for _, model := range []string{"rm1", rm5} {
		m, err := workload.Find(model)
		if err != nil {
			return err
		}
		measured, err := placement.Run(ctx, placement.Options{Model: model, Rows: o.whole(rowsOf(m) / 2),
			Time: time.Millisecond, Modes: []placement.Mode{placement.InStorage, placement.Pool}, Progress: o.Progress})
		if err != nil {
			return err
		}
		bytes := map[placement.Mode]float64{}
		for _, m := range measured {
			bytes[m.Mode] = float64(m.NetworkBytes) / float64(m.Rows)
		}
		r.set(Counted, "fig13.in_storage."+model, "bytes/row", bytes[placement.InStorage])
		r.set(Counted, "fig13.pool."+model, "bytes/row", bytes[placement.Pool])
		r.set(Counted, "fig13.reduction."+model, "times", bytes[placement.Pool]/bytes[placement.InStorage])
	}
	return nil
}
