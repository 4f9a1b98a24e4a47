package sizing

import (
	"fmt"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/rowcost"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/quantity"
)

// OwnJob returns the job of a user's own pipeline, of which a row costs c, with mini-batches of rows rows: the rates of
// the modelled devices. The rates of cores are unknown until they are measured on these rows, because rates of another
// model's rows do not apply. source names the files of which the bytes of a row were computed. The bytes to store and T
// are not set.
func OwnJob(name string, c *rowcost.Cost, rows int, source string) *Job {
	j := newJob(name)
	j.Own = true
	b := capacity.Batch{Work: c.Batch(rows), Rows: rows}
	j.Drive, j.Card = RatesOf(timing.SmartSSD(), b), RatesOf(timing.U280(), b)
	j.RowIn = Figure{Value: c.Row.FlashBytes, Kind: Measured,
		Source: fmt.Sprintf("footers of %s: compressed bytes of the %s that the pipeline reads", source,
			quantity.Of(c.Columns, "column"))}
	j.RowOut = Figure{Value: c.Row.OutBytes, Kind: Modelled,
		Source: "the pipeline's tensors: dense, ids, lengths, label, with the lists' mean lengths of the footers"}
	j.LoopsCore = Figure{Source: "no figure: make bench-peers measures TorchArrow's loops for its own models only"}
	j.KernelsCore = Figure{Source: "no figure: measure it on this data with millrace train --engine cpu --output " +
		"json, and give the report with --p-from"}
	none := Figure{Source: "no figure: what PreSto states is of its own models' rows"}
	j.PreStoDrive, j.PreStoCore = none, none
	return j
}
