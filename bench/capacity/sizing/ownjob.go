package sizing

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/bench/capacity"
	"github.com/millrace/millrace/bench/capacity/rowcost"
	"github.com/millrace/millrace/fpga/timing"
)

// OwnJob returns the job of a user's own pipeline, of which a row costs c, with mini-batches of rows rows: the rates of
// the modelled devices, and an assumed rate of a core that runs our kernels. Nobody measured TorchArrow's loops for it.
// source says which files the bytes of a row are of. What the job stores and T are not set.
func OwnJob(name string, c *rowcost.Cost, rows int, source string) (*Job, error) {
	j := newJob(name)
	j.Own = true
	b := capacity.Batch{Work: c.Batch(rows), Rows: rows}
	j.Drive, j.Card = RatesOf(timing.SmartSSD(), b), RatesOf(timing.U280(), b)
	j.RowIn = Figure{Value: c.Row.FlashBytes, Kind: Measured,
		Source: fmt.Sprintf("footers of %s: compressed bytes of the %d columns that the pipeline reads", source, c.Columns)}
	j.RowOut = Figure{Value: c.Row.OutBytes, Kind: Modelled,
		Source: "the pipeline's tensors: dense, ids, lengths, label, with the lists' mean lengths of the footers"}
	j.LoopsCore = Figure{Source: "no figure: make bench-peers measures TorchArrow's loops for rm1 and rm5 only"}
	var err error
	j.KernelsCore, err = assumedKernels(c)
	return j, err
}

// assumedKernels returns an assumed rate of a core that runs our kernels over rows of a cost: as many values a second
// as the one of rm1 and rm5 whose rows are more like them. The other one is an end of the range.
func assumedKernels(c *rowcost.Cost) (Figure, error) {
	own := c.Values()
	var best Figure
	least := math.Inf(1)
	low, high := math.Inf(1), 0.0
	for _, model := range []string{"rm1", "rm5"} {
		w, err := capacity.CostOfRow(model, 8)
		if err != nil {
			return best, err
		}
		rates, err := capacity.MeasuredCPUs(model)
		if err != nil {
			return best, err
		}
		work := w.Work(1)
		values := work.Decoded + work.Bucketized + work.Hashed + work.Logged
		rate := rates[1].RowsPerSecond * values / own
		low, high = min(low, rate), max(high, rate)
		if distance := math.Abs(math.Log(own / values)); distance < least {
			least = distance
			best = Figure{Value: rate, Kind: Assumed, Source: fmt.Sprintf("as many values a second as %s, which was measured: "+
				"%s, with %.4g values a row beside %.4g here; give --p-from for a measured rate", model, rates[1].Source, values,
				own)}
		}
	}
	best.Low, best.High = low, high
	return best, nil
}
