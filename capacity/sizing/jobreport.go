package sizing

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/steadyrate"
)

// jobReport is the part of a job's report (`millrace train --output json`) that a plan takes rates of.
type jobReport struct {
	Job    string `json:"job"`
	Timing struct {
		Mode     string `json:"timing"`
		Modelled bool   `json:"modelled"`
	} `json:"timing"`
	PerDrive []struct {
		Name     string  `json:"name"`
		Engine   string  `json:"engine"`
		Rate     float64 `json:"p_rows_per_second"`
		Spread   float64 `json:"p_spread_share"` // relative spread of Rate; 0 if unknown
		Rows     int64   `json:"rows"`
		Moved    int64   `json:"moved_bytes"`
		Unneeded int64   `json:"unneeded_bytes"`
		Out      int64   `json:"out_bytes"`
	} `json:"per_drive"`
}

// errNotReport says that a document is not a job's report.
var errNotReport = errors.New("it is not a job's report")

// TakeRates takes the rates of a file that millrace wrote: the results of `millrace bench rm --output json`
// ([Job.takeBench]), or the report of a job with this pipeline, of `millrace train --output json`. Errors wrap ErrJob.
func (j *Job) TakeRates(b []byte, name string) error {
	err := j.takeReport(b, name)
	if errors.Is(err, errNotReport) {
		return j.takeBench(b, name)
	}
	return err
}

// checkSettled refuses a rate whose relative spread is more than a plan takes, and says how to measure it again.
func checkSettled(spread float64, rate, again string) error {
	if spread >= 0 && spread <= steadyrate.Goal {
		return nil
	}
	return fmt.Errorf("%w: %s did not settle: its spread is %.0f %%, and a plan wants at most %.0f %%: %s", ErrJob,
		rate, 100*spread, 100*steadyrate.Goal, again)
}

// takeReport takes the mean P of the drives of a job's report: with the engine cpu that is the rate of a core that runs
// our kernels, else P of a drive. A P that did not settle is refused. It also takes the bytes of a row, unless the job
// has a pipeline's: the moved bytes less the unneeded ones are the rows' shares of their column chunks, whatever splits
// the job had.
func (j *Job) takeReport(b []byte, name string) error {
	var r jobReport
	if err := json.Unmarshal(b, &r); err != nil || r.Job == "" {
		return errNotReport
	}
	engine, sum, rows, in, out := "", 0.0, int64(0), int64(0), int64(0)
	for _, d := range r.PerDrive {
		kind, _, _ := strings.Cut(d.Engine, " ")
		switch {
		case kind != "drive" && kind != "cpu":
			return fmt.Errorf("%w: %s: drive %s computed with the engine %q, which is not a placement: run the job "+
				"with the engine drive or cpu", ErrJob, name, d.Name, d.Engine)
		case engine != "" && engine != kind:
			return fmt.Errorf("%w: %s: some drives computed with the engine %s and some with %s: run the job with "+
				"one of them", ErrJob, name, engine, kind)
		case !(d.Rate > 0) || d.Rows < 0 || d.Moved < d.Unneeded || d.Unneeded < 0 || d.Out < 0:
			return fmt.Errorf("%w: %s: drive %s has P of %v rows/s, %d rows, %d bytes in, %d bytes out: want a job "+
				"that measured P and ran to its end", ErrJob, name, d.Name, d.Rate, d.Rows, d.Moved-d.Unneeded, d.Out)
		}
		const again = "run the job again with a longer --measure, or with more rows"
		if err := checkSettled(d.Spread, name+": P of drive "+d.Name, again); err != nil {
			return err
		}
		engine, sum = kind, sum+d.Rate
		rows, in, out = rows+d.Rows, in+d.Moved-d.Unneeded, out+d.Out
	}
	if engine == "" {
		return fmt.Errorf("%w: %s: the job's report names no drive: P is measured on drives", ErrJob, name)
	}
	figure := func(v float64) Figure {
		f := Figure{Value: v, Kind: Measured, Source: fmt.Sprintf("millrace train, %s: job %.12s, engine %s, mean of "+
			"%s, timing %s; the file does not name its machine and date", name, r.Job, engine,
			quantity.Of(len(r.PerDrive), "drive"), r.Timing.Mode)}
		if r.Timing.Modelled {
			f.Kind = Modelled
		}
		return f
	}
	p := figure(sum / float64(len(r.PerDrive)))
	if engine == "drive" {
		j.Drive = Rates{P: p, Memory: Figure{Source: "P contains the device's memory"}}
	} else {
		p.Source += "; a drive has one engine thread unless --threads gave it more"
		j.KernelsCore = p
	}
	if !j.Own && rows > 0 && in > 0 && out > 0 {
		j.RowIn, j.RowOut = figure(float64(in)/float64(rows)), figure(float64(out)/float64(rows))
	}
	return nil
}
