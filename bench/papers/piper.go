package papers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/bench/operators"
	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/tensor"
)

// What Piper states of its design. It states no clocks of its kernels: the clocks of the network board are fitted to
// the paper's seconds of Decode, and the clock of the local board is that of its memory channels.
const (
	piperBytes     = 11e9  // 4.1: of the data set as text
	piperDecoded   = 4     // 3.3: bytes that Decode takes in a cycle
	piperSmall     = 11.00 // Table 4.4.6: seconds of Decode with a vocabulary of 5K, on the board
	piperLarge     = 20.37 // the same with 1M
	piperLocal     = 300e6 // 3.3: clock of the local board's memory channels, taken for its kernel
	piperValues    = 40    // of a row: a label, 13 dense and 26 sparse features, one at a time (3.4.1)
	piperInterval  = 2     // 3.2: cycles of GenVocab and of ApplyVocab for a value
	piperLoops     = 2     // 3.1: the data set is read twice
	piperBinaryRow = 160   // bytes of a row, packed
	bitsOfAByte    = 8
)

// modelPiper sets the rates and times of one value a cycle, at clocks that are fitted to the times of Decode.
func modelPiper(r *Result) error {
	for size, decode := range map[string]float64{"5k": piperSmall, "1m": piperLarge} {
		clock := piperBytes / piperDecoded / decode
		one := piperValues * firstRows / clock // of an operator with an interval of one cycle
		r.set(Fitted, "operators.clock."+size, "Hz", clock)
		r.set(Fitted, "operators.one_cycle."+size, "s", one)
		r.set(Fitted, "operators.two_cycles."+size, "s", piperInterval*one)
		r.set(Fitted, "rates.network."+size+"-tsv", "rows/s", firstRows/(piperLoops*piperInterval*one))
	}
	r.set(Modelled, "rates.local.5k-tsv", "rows/s", piperLocal/(piperLoops*piperInterval*piperValues))
	modelBinary(r)
	return nil
}

// measurePiper measures both loops over packed rows and text, the operators, and the stages of a local run.
func measurePiper(ctx context.Context, o *Options, r *Result) error {
	for _, name := range []string{"5k", "1m", "5k-tsv", "1m-tsv"} {
		for threads, key := range map[int]string{1: ".1", 2: ".2"} {
			measured, err := measureCriteo(ctx, o, "criteo-"+name, threads)
			if err != nil {
				return err
			}
			kind := Measured
			if threads > 1 { // twice the rows of a second of processor time, measured with two threads
				kind = Computed
			}
			r.set(kind, "rates."+name+key, "rows/CPU-s", float64(threads)*perCPU(measured))
		}
	}
	for size, name := range map[string]string{"5k": "5k.1", "1m": "1m.1"} {
		r.set(Measured, "rates.gbit."+size, "Gbit/s", r.at("rates."+name)*piperBinaryRow*bitsOfAByte/1e9)
	}
	for key, name := range map[string]string{"text": rm.CriteoTSV, "binary": rm.CriteoBinary} {
		measured, err := measureCriteo(ctx, o, name, 1)
		if err != nil {
			return err
		}
		part := measured.DecodeShare / (measured.MoveShare + measured.DecodeShare + measured.TransformShare)
		r.set(Measured, "operators.decode."+key, "CPU-s", part*firstRows/perCPU(measured))
	}
	for _, measure := range []func(context.Context, *Options, *Result) error{piperOperators, piperStages} {
		if err := measure(ctx, o, r); err != nil {
			return err
		}
	}
	endToEnd(r)
	return countDamage(r)
}

// measureCriteo measures one workload of Criteo's rows.
func measureCriteo(ctx context.Context, o *Options, name string, threads int) (*rm.Result, error) {
	const rows = 1 << 20
	measured, err := rm.Run(ctx, rm.Options{Models: []string{name}, Threads: threads, Rows: o.whole(rows),
		Time: o.duration(5 * time.Second), Folder: o.Folder, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	return &measured[0], nil
}

// piperOperators sets the seconds of each operator on one core for all rows.
func piperOperators(ctx context.Context, o *Options, r *Result) error {
	measured, err := operators.Run(ctx, operators.Options{Values: int(o.whole(operators.DefaultValues)),
		Time: o.duration(3 * time.Second), Folder: o.Folder, Progress: o.Progress})
	if err != nil {
		return err
	}
	seconds := map[string]float64{}
	for i := range measured {
		m := &measured[i]
		rate := m.ValuesPerSecond
		if m.CPUValuesPerSecond > 0 {
			rate = m.CPUValuesPerSecond
		}
		seconds[measuredNames[m.Operator]] = float64(m.DataSetValues) / rate
	}
	r.set(Measured, "operators.hex_and_modulus", "CPU-s", seconds["hex2int"]+seconds["modulus"])
	for _, name := range []string{"neg2zero", "logarithm", "vocabgen-8k", "vocabmap-8k", "vocabgen-512k",
		"vocabmap-512k"} {
		r.set(Measured, "operators."+name, "CPU-s", seconds[name])
	}
	return nil
}

// piperStages sets the stages of Figure 10 for text that is in a file: counting rows, making a buffer, reading the file
// into it, and both loops; nanoseconds a row, by the wall's clock.
func piperStages(ctx context.Context, o *Options, r *Result) (err error) {
	const rows = 1 << 20
	loops, err := rm.OpenLoops(ctx, rm.Options{Threads: 1, Rows: o.whole(rows), Folder: o.Folder, Progress: o.Progress},
		"criteo-5k-tsv")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loops.Close()) }()
	stage := func(key string, f func() error) error {
		begin := time.Now()
		if err := f(); err != nil {
			return err
		}
		r.set(Measured, "fig10."+key, "ns/row", float64(time.Since(begin).Nanoseconds())/float64(loops.Rows()))
		return nil
	}
	var size int64
	if err := stage("count", func() (err error) { size, err = countLines(loops.Path()); return err }); err != nil {
		return err
	}
	r.set(Counted, "fig10.text_row", "bytes/row", float64(size)/float64(loops.Rows()))
	var buffer []byte
	if err := stage("buffer", func() error { buffer = touched(size); return nil }); err != nil {
		return err
	}
	if err := stage("assign", func() error { return readInto(loops.Path(), buffer) }); err != nil {
		return err
	}
	drop := func(int, int64, *tensor.MiniBatch) error { return nil }
	if err := stage("loops", func() error { return loops.Turn(ctx, drop) }); err != nil {
		return err
	}
	all := r.at("fig10.count") + r.at("fig10.buffer") + r.at("fig10.assign") + r.at("fig10.loops")
	r.set(Measured, "fig10.buffer_share", "share", r.at("fig10.buffer")/all)
	r.set(Measured, "fig10.buffer_seconds", "s", r.at("fig10.buffer")*firstRows/1e9)
	return nil
}

// countLines reads a file and counts its lines; it returns the file's size.
func countLines(path string) (size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block, lines := make([]byte, 1<<20), 0
	for {
		n, err := f.Read(block)
		lines += bytes.Count(block[:n], []byte{'\n'})
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// touched makes a buffer whose pages are there.
func touched(size int64) []byte {
	const page = 4096
	b := make([]byte, size)
	for i := 0; i < len(b); i += page {
		b[i] = 1
	}
	return b
}

// readInto reads a file into a buffer of its size.
func readInto(path string, buffer []byte) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.ReadFull(f, buffer)
	return err
}

// countDamage sets in how many of eight places the decoder of text reads -1 as another value.
func countDamage(r *Result) error {
	const places, minus = 8, -1
	wrong := 0
	for pad := range places {
		cells := make([]string, 1+text.Dense+text.Sparse)
		cells[0], cells[1], cells[2] = "1", strings.Repeat("3", pad), "-1"
		d, err := text.NewDecoder(text.Options{})
		if err != nil {
			return err
		}
		c := text.NewColumns(1)
		if _, err := d.Decode(c, 0, 1, []byte(strings.Join(cells, "\t")+"\n"), true); err != nil {
			return err
		}
		if c.Dense[1][0] != minus {
			wrong++
		}
	}
	r.set(Counted, "decoder.places", "places", places)
	r.set(Counted, "decoder.wrong", "places", float64(wrong))
	return nil
}
