package sizing

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/internal/quantity"
)

// benchResult is the part of a line of `millrace bench rm --output json` that a plan takes.
type benchResult struct {
	Model       string  `json:"model"`
	Engine      string  `json:"engine"`
	Threads     int     `json:"threads"`
	Codec       string  `json:"codec"`
	Encoding    string  `json:"encoding"`
	Rate        float64 `json:"rows_per_second"`
	Spread      float64 `json:"p_spread_share"` // relative spread of Rate; 0 if unknown
	InputBytes  float64 `json:"input_bytes_per_second"`
	OutputBytes float64 `json:"output_bytes_per_second"`
	Timing      struct {
		Mode     string `json:"timing"`
		Modelled bool   `json:"modelled"`
	} `json:"timing"`
}

// takeBench takes what `millrace bench rm --output json` measured of the job's model: with the engine drive P of a
// drive, with the engine cpu the rate of a core that runs our kernels; and the bytes of a row, unless the job has a
// pipeline's. A rate that did not settle is refused. name is the file's. Errors wrap ErrJob.
func (j *Job) takeBench(b []byte, name string) error {
	var all []benchResult
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("%w: %s is not what millrace bench rm --output json writes, nor the report of millrace "+
			"train --output json: %w", ErrJob, name, err)
	}
	taken := 0
	for i := range all {
		r := &all[i]
		if r.Model != j.Model {
			continue
		}
		taken++
		if !(r.Rate > 0) || r.Threads < 1 || !(r.InputBytes > 0) || !(r.OutputBytes > 0) {
			return fmt.Errorf("%w: %s: %s has %v rows/s, %d threads, %v and %v bytes/s: want numbers above 0", ErrJob,
				name, r.Model, r.Rate, r.Threads, r.InputBytes, r.OutputBytes)
		}
		if err := checkSettled(r.Spread, name+": the rate of "+r.Model, "measure with a longer --time"); err != nil {
			return err
		}
		if err := j.take(r, name); err != nil {
			return err
		}
	}
	if taken == 0 && j.Own {
		return fmt.Errorf("%w: %s has no result of %q: bench rm measures its own models; a pipeline's rates are in "+
			"the report of a job, of millrace train --pipeline FILE --in FILES --output json", ErrJob, name, j.Model)
	}
	if taken != 1 {
		return fmt.Errorf("%w: %s has %d results of %q, want one: measure with millrace bench rm --models %s "+
			"--output json", ErrJob, name, taken, j.Model, j.Model)
	}
	return nil
}

// take takes one measurement.
func (j *Job) take(r *benchResult, name string) error {
	source := fmt.Sprintf("millrace bench rm, %s: engine %s, %s, %s, %s, timing %s; the file does not name its "+
		"machine and date", name, r.Engine, quantity.Of(r.Threads, "thread"), r.Codec, r.Encoding, r.Timing.Mode)
	figure := func(v float64) Figure {
		f := Figure{Value: v, Kind: Measured, Source: source}
		if r.Timing.Modelled {
			f.Kind = Modelled
		}
		return f
	}
	switch r.Engine {
	case "drive":
		j.Drive = Rates{P: figure(r.Rate), Memory: Figure{Source: "P contains the device's memory"}}
	case "cpu":
		j.KernelsCore = figure(r.Rate / float64(r.Threads))
	default:
		return fmt.Errorf("%w: %s: engine %q is not a placement: measure the engine drive or cpu", ErrJob, name,
			r.Engine)
	}
	if !j.Own { // the files of a user's own pipeline have other bytes
		j.RowIn, j.RowOut = figure(r.InputBytes/r.Rate), figure(r.OutputBytes/r.Rate)
	}
	return nil
}
