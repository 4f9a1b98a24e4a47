package papers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/bench/operators"
	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/fpga/image"
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

// portOperator is an operator of Table 4, as the board's port limits it.
type portOperator struct {
	name     string
	columns  int // of D-I
	width    int // bytes of a value
	interval int // 3.4.1, 3.4.2
}

// portOperators are those of Table 4 in its order.
func portOperators() []portOperator {
	return []portOperator{
		{"neg2zero", firstDense, 4, 1}, {"logarithm", firstDense, 4, 1},
		{"hex2int", firstSparse, 8, 1}, {"modulus", firstSparse, 4, 1},
		{"vocabgen-8k", firstSparse, 4, 2}, {"vocabmap-8k", firstSparse, 4, 1},
		{"vocabgen-512k", firstSparse, 4, 6}, {"vocabmap-512k", firstSparse, 4, 6},
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
	return nil
}

// measuredNames are the operators' names here, by their names in package operators.
var measuredNames = map[string]string{"Neg2Zero": "neg2zero", "Logarithm": "logarithm", "Hex2Int": "hex2int",
	"Modulus": "modulus", "VocabGen-8K": "vocabgen-8k", "VocabMap-8K": "vocabmap-8k", "VocabGen-512K": "vocabgen-512k",
	"VocabMap-512K": "vocabmap-512k"}

// measureMiniPipe measures the operators one by one, the pipelines, and the switches of a software drive.
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
	return measureSwitches(ctx, o, r)
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

// measureSwitches sets how long a software drive takes to make another image active, test of the image included.
func measureSwitches(ctx context.Context, o *Options, r *Result) (err error) {
	drive, err := sdk.Create(ctx, "mem:?size=0&slm=16MiB", sdk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drive.Close()) }()
	var slots []int
	for _, name := range []string{"minipipe", "piper"} {
		b, err := image.StockNamed(name)
		if err != nil {
			return err
		}
		begin := time.Now()
		slot, _, err := drive.PlaceImage(ctx, b)
		if err != nil {
			return err
		}
		r.set(Measured, "switch.load."+name, "ms", 1e3*time.Since(begin).Seconds())
		if err := drive.ActivateImage(ctx, slot); err != nil {
			return err
		}
		slots = append(slots, slot)
	}
	turns := int(o.size(64))
	begin := time.Now()
	for i := range turns {
		if err := drive.ActivateImage(ctx, slots[i%len(slots)]); err != nil {
			return err
		}
	}
	r.set(Measured, "switch.activate", "ms", 1e3*time.Since(begin).Seconds()/float64(turns))
	return nil
}
