package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/internal/power"
	"github.com/millrace/millrace/trainmgr"
)

// ErrReport says that a document is not a report of a job that ran.
var ErrReport = errors.New("job report")

// Ran is what a job did. A zero says that something is not known.
type Ran struct {
	Source string // where it is known from
	Job    string
	// Engine is what computed: "drive", "cpu" or "reference"; "" if it is not known or the drives differ.
	Engine  string
	Rows    int64
	Seconds float64
	T, P    float64 // rows a second, as the job measured them
	// Drives is how many may run at once, Wanted is T/P rounded up, Busiest how many did run at once.
	Drives, Wanted, Busiest int
	// Bytes that the drives made and took, for RowsMade rows.
	RowsMade, Moved, Unneeded, Fetched, Out int64
	Delivered                               int64 // bytes of mini-batches that the trainer took
	Stall, Foretold                         float64
	Timing                                  timing.Report
	Energy                                  *power.Energy
}

// document is the form of the report of `millrace train --output json`.
type document struct {
	trainmgr.Report
	Timing timing.Report `json:"timing"`
	Energy *power.Energy `json:"energy"`
}

// RanOf reads the report of a job, of `millrace train --output json`. name is the file's. Errors wrap ErrReport.
func RanOf(b []byte, name string) (*Ran, error) {
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("%w: %s is not what millrace train --output json writes: %w", ErrReport, name, err)
	}
	if d.Job == "" {
		return nil, fmt.Errorf("%w: %s names no job: want what millrace train --output json writes", ErrReport, name)
	}
	r := &Ran{Source: name, Job: d.Job, Rows: d.Rows, Seconds: d.ElapsedSeconds, T: d.TRowsPerSecond,
		P: d.PRowsPerSecond, Drives: d.Drives, Wanted: d.DrivesWanted, Busiest: d.DrivesBusiest, Delivered: d.Bytes,
		Stall: d.StallSeconds, Foretold: d.ExpectedStallSecond, Timing: d.Timing, Energy: d.Energy}
	for i := range d.PerDrive {
		p := &d.PerDrive[i]
		r.RowsMade += p.CountedRows
		r.Moved, r.Unneeded = r.Moved+p.BytesMoved, r.Unneeded+p.BytesUnneeded
		r.Fetched, r.Out = r.Fetched+p.BytesFetched, r.Out+p.BytesOut
		engine, _, _ := strings.Cut(p.Engine, " ")
		if i > 0 && engine != r.Engine {
			engine = ""
		}
		r.Engine = engine
	}
	return r, r.check()
}

// check refuses figures that no job has.
func (r *Ran) check() error {
	for _, c := range []struct {
		name  string
		value float64
	}{
		{"rows", float64(r.Rows)}, {"elapsed seconds", r.Seconds}, {"T", r.T}, {"P", r.P},
		{"drives", float64(r.Drives)},
		{"drives that are wanted", float64(r.Wanted)}, {"drives at the busiest", float64(r.Busiest)},
		{"rows of the drives", float64(r.RowsMade)}, {"bytes moved", float64(r.Moved)},
		{"bytes moved and needed", float64(r.Moved - r.Unneeded)}, {"bytes fetched", float64(r.Fetched)},
		{"bytes of tensors", float64(r.Out)}, {"bytes delivered", float64(r.Delivered)}, {"stalled seconds", r.Stall},
		{"foretold seconds", r.Foretold},
	} {
		if !(c.value >= 0) || math.IsInf(c.value, 0) {
			return fmt.Errorf("%w: %s: %s are %v, want a number not below 0", ErrReport, r.Source, c.name, c.value)
		}
	}
	if r.Rows == 0 || r.Seconds == 0 {
		return fmt.Errorf("%w: %s: job %.12s has trained %d rows in %v s: want the report of a job that ran", ErrReport,
			r.Source, r.Job, r.Rows, r.Seconds)
	}
	return nil
}
