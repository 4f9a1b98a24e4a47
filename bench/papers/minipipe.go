package papers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/bench/operators"
	"github.com/millrace/millrace/bench/regions"
	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/bench/wire"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/sdk"
)

// What MiniPipe states of its design and of its data sets.
const (
	minipipePort   = 64    // 3.4: bytes that a port takes in a cycle
	minipipeClock  = 200e6 // 4.1.2: kernel frequency
	minipipeSlower = 135e6 // 4.2.3: with seven pipelines
	minipipeHost   = 14e9  // 4.2.4: bytes a second that the board reads of the host's memory

	firstDense, firstSparse = 13, 26     // columns of D-I
	firstRows               = 45_840_617 // of D-I: Criteo's Kaggle set, 45 million in 4.1.1
	secondRows              = 4e6        // of D-II: 4.1.1
)

// Resources of the Alveo U55c.
const (
	u55cLUT    = 1_303_680 // published: AMD, Alveo U55C data sheet
	u55cRAMB36 = 2_016     // published: the same
	u55cDSP    = 9_024     // published: the same
)

// portOperator is an operator of Table 4, as the board's port limits it.
type portOperator struct {
	name     string
	columns  int        // D-I has this number of columns.
	width    int        // bytes of a value
	interval int        // 3.4.1, 3.4.2
	gpus     [2]float64 // seconds of the RTX 3090 and of the A100
}

// portOperators are those of Table 4 in its order.
func portOperators() []portOperator {
	return []portOperator{
		{"neg2zero", firstDense, 4, 1, [2]float64{0.029, 0.043}},
		{"logarithm", firstDense, 4, 1, [2]float64{0.01, 0.015}},
		{"hex2int", firstSparse, 8, 1, [2]float64{0.051, 0.059}},
		{"modulus", firstSparse, 4, 1, [2]float64{0.017, 0.026}},
		{"vocabgen-8k", firstSparse, 4, 2, [2]float64{7.57, 8.76}},
		{"vocabmap-8k", firstSparse, 4, 1, [2]float64{0.02, 0.11}},
		{"vocabgen-512k", firstSparse, 4, 6, [2]float64{64.10, 69.03}},
		{"vocabmap-512k", firstSparse, 4, 6, [2]float64{0.015, 0.11}},
	}
}

// modelMiniPipe sets what a port of 64 bytes a cycle at 200 MHz gives, with the paper's initiation intervals.
func modelMiniPipe(r *Result) error {
	seconds := map[string]float64{}
	for _, o := range portOperators() {
		bytes := float64(firstRows) * float64(o.columns*o.width)
		seconds[o.name] = bytes * float64(o.interval) / (minipipePort * minipipeClock)
		r.set(Modelled, "table4.model."+o.name, "s", seconds[o.name])
	}
	// Operators of a pipeline run at once, and the slowest bounds each loop over the data.
	r.set(Modelled, "fig9.model.d1-1", "s", max(seconds["logarithm"], seconds["hex2int"]))
	for pipeline, size := range map[string]string{"d1-2": "8k", "d1-3": "512k"} {
		generate := max(seconds["hex2int"], seconds["vocabgen-"+size])
		apply := max(seconds["hex2int"], seconds["vocabmap-"+size])
		r.set(Modelled, "fig9.model."+pipeline, "s", generate+apply)
	}
	one := minipipePort * minipipeClock
	for _, n := range []int{1, 2, 4} {
		r.set(Modelled, fmt.Sprintf("fig11.rate.%d", n), "bytes/s", float64(n)*one)
	}
	r.set(Modelled, "fig11.rate.7", "bytes/s", 7*minipipePort*minipipeSlower)
	r.set(Modelled, "fig11.host", "bytes/s", minipipeHost)
	r.set(Modelled, "fig11.seven_over_one", "times", r.at("fig11.rate.7")/one)
	modelGPUs(r)
	return modelArea(r)
}

// modelGPUs sets the sums of the operators' printed seconds on the GPUs over the modelled board's seconds.
func modelGPUs(r *Result) {
	operators := map[string]portOperator{}
	for _, o := range portOperators() {
		operators[o.name] = o
	}
	for pipeline, tables := range map[string][]string{"d1-1": nil, "d1-2": {"vocabgen-8k", "vocabmap-8k"},
		"d1-3": {"vocabgen-512k", "vocabmap-512k"}} {
		var sum [2]float64
		for _, name := range append([]string{"neg2zero", "logarithm", "hex2int", "modulus"}, tables...) {
			for i, seconds := range operators[name].gpus {
				sum[i] += seconds
			}
		}
		for i, gpu := range []string{"rtx3090", "a100"} {
			r.set(Modelled, "fig9."+gpu+"."+pipeline, "times", sum[i]/r.at("fig9.model."+pipeline))
		}
	}
}

// modelArea sets the shares of the U55c that the units of fpga/rtl for pipeline I take, for what a port brings in a
// cycle: dense values, or texts of ids.
func modelArea(r *Result) error {
	synthesis, err := rtl.ReadSynthesis()
	if err != nil {
		return err
	}
	const dense, texts = minipipePort / 4, minipipePort / 8
	a, err := areaOf(synthesis, []unitCount{{"clamp", dense}, {"log", dense}, {"hex_to_int", texts},
		{"positive_modulus", texts}})
	if err != nil {
		return err
	}
	r.set(Modelled, "table2.lut", "share", float64(a.LUT)/u55cLUT)
	r.set(Modelled, "table2.bram", "share", float64(a.BRAM18)/(2*u55cRAMB36))
	r.set(Modelled, "table2.dsp", "share", float64(a.DSP)/u55cDSP)
	return nil
}

// measuredNames are the operators' names here, by their names in package operators.
var measuredNames = map[string]string{"Neg2Zero": "neg2zero", "Logarithm": "logarithm", "Hex2Int": "hex2int",
	"Modulus": "modulus", "VocabGen-8K": "vocabgen-8k", "VocabMap-8K": "vocabmap-8k", "VocabGen-512K": "vocabgen-512k",
	"VocabMap-512K": "vocabmap-512k"}

// measureMiniPipe measures the operators one by one, the pipelines, and the regions of a software drive.
func measureMiniPipe(ctx context.Context, o *Options, r *Result) error {
	measured, err := operators.Run(ctx, operators.Options{Values: int(o.whole(operators.DefaultValues)),
		Time: o.duration(3 * time.Second), Folder: o.Folder, Progress: o.Progress})
	if err != nil {
		return err
	}
	columns := map[string]float64{}
	for _, op := range portOperators() {
		columns[op.name] = float64(op.columns)
	}
	for i := range measured {
		m := &measured[i]
		name, rate := measuredNames[m.Operator], m.ValuesPerSecond
		if m.CPUValuesPerSecond > 0 {
			rate = m.CPUValuesPerSecond
		}
		seconds := float64(m.DataSetValues) / rate
		r.set(Measured, "table4."+name, "CPU-s", seconds)
		r.set(Measured, "fig7."+name, "CPU-s", seconds/columns[name])
	}
	r.set(Measured, "fig7.dense", "CPU-s", r.at("fig7.neg2zero")+r.at("fig7.logarithm"))
	r.set(Measured, "fig7.sparse-1", "CPU-s", r.at("fig7.hex2int")+r.at("fig7.modulus"))
	if err := measurePipelines(ctx, o, r); err != nil {
		return err
	}
	if err := measureImages(ctx, r); err != nil {
		return err
	}
	if err := measureRegions(ctx, o, r); err != nil {
		return err
	}
	return measureLink(ctx, o, r)
}

// measurePipelines sets the processor time that pipelines I to III take for all rows of D-I and D-II on one core.
func measurePipelines(ctx context.Context, o *Options, r *Result) error {
	for _, set := range []struct {
		name       string
		rows, here int64
	}{{"d1", firstRows, 524_288}, {"d2", secondRows, 16_384}} {
		for _, pipeline := range []string{"1", "2", "3"} {
			name := set.name + "-" + pipeline
			measured, err := rm.Run(ctx, rm.Options{Models: []string{name}, Threads: 1, Rows: o.size(set.here),
				Time: o.duration(5 * time.Second), Folder: o.Folder, Progress: o.Progress})
			if err != nil {
				return err
			}
			rate := perCPU(&measured[0])
			r.set(Measured, "fig9.rows."+name, "rows/CPU-s", rate)
			r.set(Measured, "fig9.seconds."+name, "CPU-s", float64(set.rows)/rate)
		}
	}
	for _, name := range []string{"d1-1", "d1-2", "d1-3"} {
		r.set(ModelledAndMeasured, "fig9.board_over_core."+name, "times",
			r.at("fig9.seconds."+name)/r.at("fig9.model."+name))
	}
	return nil
}

// measureImages sets how long a software drive takes to load an image, test of the image included.
func measureImages(ctx context.Context, r *Result) (err error) {
	drive, err := sdk.Create(ctx, "mem:?size=0&slm=16MiB", sdk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drive.Close()) }()
	for _, name := range []string{"minipipe", "piper"} {
		b, err := stock.Named(name)
		if err != nil {
			return err
		}
		begin := time.Now()
		if _, _, err := drive.PlaceImage(ctx, b); err != nil {
			return err
		}
		r.set(Measured, "switch.load."+name, "ms", 1e3*time.Since(begin).Seconds())
	}
	return nil
}

// measureRegions sets the times of switches of a software drive's regions, what a job in another region loses
// meanwhile, and how the rates of pipeline I over D-II add up over regions.
func measureRegions(ctx context.Context, o *Options, r *Result) error {
	const rows, switches = 8192, 200
	measured, err := regions.Run(ctx, regions.Options{Models: []string{"d2"}, Rows: o.whole(rows),
		Time: o.duration(2 * time.Second), Turns: 3, Switches: int(o.size(switches)), Progress: o.Progress})
	if err != nil {
		return err
	}
	const ms = 1e3
	r.set(Measured, "switch.p50", "ms", ms*measured.Switch.Switch.P50)
	r.set(Measured, "switch.p99", "ms", ms*measured.Switch.Switch.P99)
	r.set(Measured, "switch.drain", "ms", ms*measured.Switch.Drain.P50)
	r.set(Measured, "switch.activation", "ms", ms*measured.Switch.Activation.P50)
	r.set(Measured, "beside.loss", "share", measured.Beside.Loss)
	r.set(Measured, "beside.least", "share", measured.Beside.LeastLoss)
	r.set(Measured, "beside.most", "share", measured.Beside.MostLoss)
	r.set(Measured, "beside.switches", "switches/s", measured.Beside.SwitchesPerSecond)
	for _, t := range measured.Throughput {
		r.set(Measured, fmt.Sprintf("regions.rows.%d", t.Regions), "rows/s", t.TotalRowsPerSecond)
		r.set(Measured, fmt.Sprintf("regions.speedup.%d", t.Regions), "times", t.Speedup)
	}
	return nil
}

// measureLink sets what one connection of NVMe/TCP to a software drive carries over loopback, and the time of a small
// read.
func measureLink(ctx context.Context, o *Options, r *Result) error {
	const deep = 32
	options := wire.Options{Operations: []wire.Operation{wire.SequentialRead, wire.SequentialWrite}, Depths: []int{deep},
		Connections: []int{1}, Digests: []bool{false}, Time: o.duration(2 * time.Second), Progress: o.Progress}
	measured, err := wire.Run(ctx, options)
	if err != nil {
		return err
	}
	for i := range measured {
		name := map[wire.Operation]string{wire.SequentialRead: "read", wire.SequentialWrite: "write"}[measured[i].Operation]
		r.set(Measured, "fig12."+name, "bytes/s", measured[i].BytesPerSecond)
		r.set(Measured, "fig12."+name+"_over_tcp", "share", measured[i].Ratio)
	}
	options.Operations, options.Depths = []wire.Operation{wire.RandomRead}, []int{1}
	if measured, err = wire.Run(ctx, options); err != nil {
		return err
	}
	r.set(Measured, "fig12.latency", "us", 1e6/measured[0].IOPS)
	return nil
}
