package review

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/capacity/sizing"
)

// Plan is what was planned. A bandwidth of 0 binds nothing.
type Plan struct {
	Model  string
	Worker string // what is counted: "drives" or "cores"
	// T and P are in rows a second, RowIn and RowOut in bytes of a row that are read and sent.
	T, P, RowIn, RowOut sizing.Figure
	Flash, Memory, Link float64 // bandwidths of a drive, in bytes a second
	Watts               sizing.Figure
	// OwnT and OwnP report whether T or P was taken from the job, because the plan had none. Such a figure is not
	// compared.
	OwnT, OwnP bool
}

// Review is a plan beside a job.
type Review struct {
	Model string `json:"model"`
	Job   string `json:"job"`
	From  string `json:"source"` // what the job is known from
	Says  string `json:"conclusion"`

	Workers     string       `json:"worker_kind"` // what is counted: drives or cores
	Planned     float64      `json:"planned_workers"`
	Then        float64      `json:"replanned_workers"`
	Allowed     int          `json:"job_allowed_drives"`
	Wanted      int          `json:"job_wanted_drives"`
	Busiest     int          `json:"job_peak_drives"`
	Assumptions []Assumption `json:"assumptions"` // the one that matters most first
	Links       []Link       `json:"links"`
	Stall       Stall        `json:"stall"`
	Power       *Power       `json:"power,omitempty"`
	NotCompared []string     `json:"exclusions"`
}

// Assumption is a figure of the plan beside that of the job.
type Assumption struct {
	Name    string      `json:"assumption"`
	Unit    string      `json:"unit"`
	Planned float64     `json:"planned"`
	Kind    sizing.Kind `json:"planned_kind"`
	Source  string      `json:"planned_source"`
	Ran     float64     `json:"job"`
	Ratio   float64     `json:"job_over_planned"`
	// Then is how many drives (or cores) the plan wants at once with the job's figure in the place of its own.
	Then float64 `json:"replanned_workers"`
}

// Link is what went over one of the links.
type Link struct {
	Name          string  `json:"link" table:"link"`
	Planned       float64 `json:"planned_bytes_per_second" table:"planned B/s|%.4g"` // at the planned T
	Ran           float64 `json:"job_bytes_per_second" table:"job B/s|%.4g"`
	PlannedPerRow float64 `json:"planned_bytes_per_row" table:"planned B a row|%.4g"`
	RanPerRow     float64 `json:"job_bytes_per_row" table:"job B a row|%.4g"`
	Note          string  `json:"note,omitempty" table:"note"`
}

// Stall is how long the trainer waited.
type Stall struct {
	Foretold float64 `json:"predicted_seconds"` // by the job, before it ran
	Ran      float64 `json:"job_seconds"`
	Share    float64 `json:"job_share"` // The trainer waited for this share of the job's time.
}

// Power is the power of what preprocesses.
type Power struct {
	Planned       float64     `json:"planned_watts"`
	PlannedKind   sizing.Kind `json:"planned_kind"`
	PlannedSource string      `json:"planned_source"`
	Ran           float64     `json:"job_watts"`
	RanKind       string      `json:"job_kind"`
	Ratio         float64     `json:"job_over_planned"`
	PerMillion    float64     `json:"job_joules_per_million_rows"`
}

// atOnce returns how many drives or cores sustain T, not rounded up.
func (p *Plan) atOnce() float64 {
	rate := p.P.Value
	bound := func(bandwidth, bytes float64) {
		if bandwidth > 0 && bytes > 0 {
			rate = min(rate, bandwidth/bytes)
		}
	}
	bound(p.Flash, p.RowIn.Value)
	bound(p.Link, p.RowOut.Value)
	bound(p.Memory, 2*(p.RowIn.Value+p.RowOut.Value))
	return p.T.Value / rate
}

// Compare compares a plan with a job.
func Compare(p *Plan, r *Ran) (*Review, error) {
	for _, f := range []sizing.Figure{p.T, p.P, p.RowIn, p.RowOut} {
		if !(f.Value > 0) || math.IsInf(f.Value, 0) {
			return nil, fmt.Errorf("%w: the plan of %s has a figure of %v (%s): want T, P and the bytes of a row "+
				"above 0", ErrReport, p.Model, f.Value, f.Source)
		}
	}
	v := &Review{Model: p.Model, Job: r.Job, From: r.Source, Workers: p.Worker, Planned: p.atOnce(), Allowed: r.Drives,
		Wanted: r.Wanted, Busiest: r.Busiest, Links: []Link{}, NotCompared: []string{},
		Stall: Stall{Foretold: r.Foretold, Ran: r.Stall}}
	if r.Seconds > 0 {
		v.Stall.Share = r.Stall / r.Seconds
	}
	v.assume(p, r)
	v.link(p, r)
	v.weigh(p, r)
	v.decide()
	return v, nil
}

// assume compares the figures, and sorts them.
func (v *Review) assume(p *Plan, r *Ran) {
	all := *p
	v.Assumptions = []Assumption{}
	take := func(name, unit string, planned sizing.Figure, ran float64, at func(*Plan) *sizing.Figure, absent string) {
		if ran <= 0 {
			v.NotCompared = append(v.NotCompared, name+": "+absent)
			return
		}
		alone := *p
		at(&alone).Value, at(&all).Value = ran, ran
		v.Assumptions = append(v.Assumptions, Assumption{Name: name, Unit: unit, Planned: planned.Value,
			Kind: planned.Kind, Source: planned.Source, Ran: ran, Ratio: ran / planned.Value, Then: alone.atOnce()})
	}
	if p.OwnT {
		v.NotCompared = append(v.NotCompared, "T: the plan has the job's own; give --t, or --gpus, as it was planned")
	} else {
		take("T", "rows/s", p.T, r.T, func(p *Plan) *sizing.Figure { return &p.T }, "the job did not measure it")
	}
	if p.OwnP {
		v.NotCompared = append(v.NotCompared, "P: the plan has none of "+p.Worker+", and takes the job's own; give "+
			"--p-from, as it was planned")
	} else {
		take("P", "rows/s", p.P, r.P, func(p *Plan) *sizing.Figure { return &p.P }, "the job did not measure it")
	}
	take("bytes read of a row", "B", p.RowIn, perRow(r.Moved-r.Unneeded, r.RowsMade),
		func(p *Plan) *sizing.Figure { return &p.RowIn }, "the job's drives did not count them")
	take("bytes of a row's tensors", "B", p.RowOut, perRow(r.Out, r.RowsMade),
		func(p *Plan) *sizing.Figure { return &p.RowOut }, "the job's drives did not count them")
	slices.SortStableFunc(v.Assumptions, func(a, b Assumption) int {
		far := func(x, y float64) float64 { return math.Abs(math.Log(x / y)) }
		if c := cmp.Compare(far(b.Then, v.Planned), far(a.Then, v.Planned)); c != 0 {
			return c
		}
		return cmp.Compare(far(b.Ratio, 1), far(a.Ratio, 1))
	})
	v.Then = all.atOnce()
}

// perRow returns bytes of a row; 0 if they are not known.
func perRow(bytes, rows int64) float64 {
	if rows <= 0 {
		return 0
	}
	return float64(bytes) / float64(rows)
}

// link compares what goes over the links.
func (v *Review) link(p *Plan, r *Ran) {
	add := func(name string, planned float64, bytes, rows int64, note string) {
		if bytes <= 0 || r.Seconds <= 0 {
			v.NotCompared = append(v.NotCompared, name+": no bytes are counted")
			return
		}
		v.Links = append(v.Links, Link{Name: name, Planned: p.T.Value * planned, Ran: float64(bytes) / r.Seconds,
			PlannedPerRow: planned, RanPerRow: perRow(bytes, rows), Note: note})
	}
	unneeded := ""
	if r.Moved > 0 && r.Unneeded > 0 {
		unneeded = fmt.Sprintf("%.1f %% of it needed by no row: pages that several splits read, gaps, block edges",
			100*float64(r.Unneeded)/float64(r.Moved))
	}
	add("flash to device memory", p.RowIn.Value, r.Moved, r.RowsMade, unneeded)
	if r.Fetched > 0 {
		add("device memory to host", p.RowOut.Value, r.Fetched, r.RowsMade, "")
	} else if r.Out > 0 {
		v.NotCompared = append(v.NotCompared, "device memory to host: tensors were lent where they lie, and not copied")
	}
	add("to the trainers", p.RowOut.Value, r.Delivered, r.Rows, "")
}

// weigh compares the power.
func (v *Review) weigh(p *Plan, r *Ran) {
	switch {
	case r.Energy == nil || r.Energy.Joules <= 0 || r.Energy.Seconds <= 0:
		v.NotCompared = append(v.NotCompared, "watts: the job's report has none")
		return
	case p.Watts.Value <= 0:
		v.NotCompared = append(v.NotCompared, "watts: the plan has none of "+p.Worker)
		return
	}
	w := &Power{Planned: p.Watts.Value * v.Planned, PlannedKind: p.Watts.Kind,
		PlannedSource: fmt.Sprintf("%.4g W each: %s", p.Watts.Value, p.Watts.Source), Ran: r.Energy.Watts(),
		RanKind: r.Energy.Kind, PerMillion: r.Energy.PerMillionRows}
	w.Ratio = w.Ran / w.Planned
	v.Power = w
}

// small is the share by which an assumption may be off without being named.
const small = 0.05

// decide says which assumption was off most.
func (v *Review) decide() {
	if len(v.Assumptions) == 0 {
		v.Says = "Nothing can be compared: see below what the job does not tell."
		return
	}
	a := v.Assumptions[0]
	if moved := a.Then/v.Planned - 1; math.Abs(moved) > small {
		v.Says = fmt.Sprintf("%s was off most: %.4g %s planned (%s), %.4g in the job (%s). With it the plan wants "+
			"%.3g %s at once instead of %.3g.", a.Name, a.Planned, a.Unit, a.Kind, a.Ran, times(a.Ratio), a.Then,
			v.Workers, v.Planned)
		return
	}
	off := slices.MaxFunc(v.Assumptions, func(a, b Assumption) int {
		return cmp.Compare(math.Abs(math.Log(a.Ratio)), math.Abs(math.Log(b.Ratio)))
	})
	if math.Abs(off.Ratio-1) > small {
		v.Says = fmt.Sprintf("No assumption moves the %s at once by more than %.0f %%. %s was off most, and binds "+
			"nothing: %.4g %s planned, %.4g in the job (%s).", v.Workers, 100*small, off.Name, off.Planned, off.Unit,
			off.Ran, times(off.Ratio))
		return
	}
	v.Says = fmt.Sprintf("The plan held: no assumption was off by more than %.0f %%.", 100*small)
}

// times says a ratio in words.
func times(ratio float64) string {
	switch {
	case ratio >= 2:
		return fmt.Sprintf("%.3g times as much", ratio)
	case ratio <= 0.5:
		return fmt.Sprintf("1/%.3g of it", 1/ratio)
	}
	return fmt.Sprintf("%+.1f %%", 100*(ratio-1))
}
