package sizing

import (
	"fmt"

	"github.com/millrace/millrace/capacity"
)

// Report is a plan of every placement.
type Report struct {
	Model         string      `json:"model"`
	T             float64     `json:"t_rows_per_second"` // at the horizon's end, as every count is
	Bytes         float64     `json:"bytes"`             // at the horizon's end, with copies
	Years         float64     `json:"years"`
	TrainingNodes int64       `json:"training_nodes"`
	Answer        Outcome     `json:"answer"`
	Cheapest      string      `json:"cheapest"` // name of a placement; "" if none fits
	Verdict       string      `json:"verdict"`
	Placements    []Placement `json:"placements"`
	Tornado       []Move      `json:"tornado"`
	BreakEven     []BreakEven `json:"break_even"`
	Sweep         []Point     `json:"sweep"`
	Crossovers    []Crossover `json:"crossovers"`         // The cheapest placement changes there.
	Overtakings   []Crossover `json:"storage_crossovers"` // In storage and another placement cost the same there.
	Tiers         []Tier      `json:"tiers,omitempty"`
	Figures       []Figure    `json:"figures"` // Figures are those that the plan used.
	Kinds         []KindCount `json:"figures_by_kind"`
	Notes         []string    `json:"notes"`
	NotCounted    []string    `json:"exclusions"`
}

// KindCount is how many of the figures are of a kind.
type KindCount struct {
	Kind  Kind `json:"kind"`
	Count int  `json:"count"`
}

// Plan sizes every placement of a job. Errors wrap ErrJob or ErrFigures.
func Plan(j *Job, t *Table, p *capacity.Prices) (*Report, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	table, err := t.ofJob(p, j)
	if err != nil {
		return nil, err
	}
	s := newSizer(table, j)
	placements, err := s.placeAll()
	if err != nil {
		return nil, err
	}
	r := &Report{Model: j.Model, T: s.t, Bytes: s.bytes, Years: s.value(figureYears), TrainingNodes: s.trainingNodes(),
		Placements: placements, Answer: summarize(placements), Tiers: Tiers(j.paperModel())}
	r.decide()
	if r.Tornado, err = tornado(s, j); err != nil {
		return nil, err
	}
	r.BreakEven = breakEven(s, placements)
	if r.Sweep, err = sweep(s, j); err != nil {
		return nil, err
	}
	r.Crossovers, r.Overtakings = crossovers(r.Sweep), overtakings(r.Sweep)
	r.list(s)
	return r, nil
}

// placeAll sizes every mode.
func (s *sizer) placeAll() ([]Placement, error) {
	modes := Modes(s.model)
	list := make([]Placement, len(modes))
	for i, m := range modes {
		var err error
		if list[i], err = s.place(m); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// counted reports whether a placement has counts and fits, so that it can be chosen.
func (p *Placement) counted() bool { return p.NoFigure == "" && p.Fits }

// cheapest returns the cheapest placement that fits, and the cheapest of those that are not in storage; nil: none.
func cheapest(list []Placement) (best, other *Placement) {
	for i := range list {
		p := &list[i]
		if !p.counted() {
			continue
		}
		if best == nil || p.Total < best.Total {
			best = p
		}
		if p.Name != InStorage && (other == nil || p.Total < other.Total) {
			other = p
		}
	}
	return best, other
}

// find returns the placement of a name; nil if it has no counts or does not fit.
func find(list []Placement, name string) *Placement {
	for i := range list {
		if list[i].Name == name && list[i].counted() {
			return &list[i]
		}
	}
	return nil
}

// decide names the cheapest placement and says whether preprocessing in storage wins.
func (r *Report) decide() {
	best, other := cheapest(r.Placements)
	in := find(r.Placements, InStorage)
	switch {
	case best == nil:
		r.Verdict = "No placement fits: see why beside each."
		return
	case in == nil:
		r.Verdict = fmt.Sprintf("In storage has no counts here. The cheapest of the others is %s: $%.0f.", best.Name,
			best.Total)
	case other == nil:
		r.Verdict = fmt.Sprintf("In storage is the only placement that fits: $%.0f.", in.Total)
	case best == in:
		r.Verdict = fmt.Sprintf("In storage wins: $%.0f, and the next, %s, $%.0f (%.0f %% more).", in.Total, other.Name,
			other.Total, 100*(other.Total/in.Total-1))
	default:
		cheaper := 0
		for i := range r.Placements {
			if p := &r.Placements[i]; p.counted() && p.Total < in.Total {
				cheaper++
			}
		}
		r.Verdict = fmt.Sprintf("In storage loses: $%.0f, and %s $%.0f (%.0f %% less). %d of the other placements "+
			"cost less than in storage.", in.Total, best.Name, best.Total, 100*(1-best.Total/in.Total), cheaper)
	}
	r.Cheapest = best.Name
}

// list adds the figures that the plan used, and what it leaves out.
func (r *Report) list(s *sizer) {
	counts := make(map[Kind]int)
	for _, name := range s.table.order {
		if f := s.table.figures[name]; s.used[name] && f.Value != 0 {
			r.Figures = append(r.Figures, f)
			counts[f.Kind]++
		}
	}
	for _, k := range Kinds() {
		r.Kinds = append(r.Kinds, KindCount{k, counts[k]})
	}
	r.Notes = []string{
		"the rates of cores are of the processor that each figure names; the prices' CPU node is another one, and " +
			"the plan takes a core of it to be as fast",
		"a node that computes is planned to be busy all the time: give a larger T for a margin",
		"the trainers' CPUs cost nothing here, in dollars and watts, where they preprocess: they are bought anyway, " +
			"as far as their cores suffice",
		"T and the bytes are those of the horizon's end, and everything is bought at its beginning",
	}
	if s.used[figurePreStoCore] || s.used[figurePreStoDrive] {
		r.Notes = append(r.Notes, "PreSto states no rates: those of its drive, cores and cards follow from the "+
			"bandwidth of its drive's flash, and do not change with the drive of this plan")
	}
	r.NotCounted = []string{"GPUs and training nodes, with their network interfaces and CPUs", "switches and cooling",
		"people and software", "the copy from which a failed drive's data comes, where there is one copy"}
}
