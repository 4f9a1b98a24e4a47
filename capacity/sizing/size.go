package sizing

import (
	"fmt"
	"math"
)

// Resources that constraints count.
const (
	Drives   = "drives"
	Cards    = "cards"
	Nodes    = "storage nodes"
	Workers  = "pool nodes"
	Trainers = "training nodes"
	Racks    = "racks"
)

// Constraint is one reason to need some of a resource.
type Constraint struct {
	Name     string `json:"constraint"`
	Resource string `json:"resource"`
	Count    int64  `json:"count"`
	Binds    bool   `json:"binding"` // no constraint needs more of the resource
	Why      string `json:"reason"`
}

// Placement is a sized mode.
type Placement struct {
	Name     string `json:"placement"`
	Title    string `json:"title"`
	NoFigure string `json:"uncounted_reason,omitempty"`  // why nothing is counted
	Fits     bool   `json:"feasible"`                    // the trainers' nodes suffice
	Misfit   string `json:"infeasible_reason,omitempty"` // why they do not

	Drives      int64 `json:"drives"`
	Spares      int64 `json:"spare_drives"` // Spares replace drives that fail over the years.
	Cards       int64 `json:"cards"`
	Nodes       int64 `json:"storage_nodes"`
	Workers     int64 `json:"pool_nodes"`
	NICs        int64 `json:"network_interfaces"` // Storage nodes and pool nodes have these interfaces.
	TrainerNICs int64 `json:"trainer_network_interfaces"`
	Racks       int64 `json:"racks"`

	Watts        float64 `json:"watts"`
	CapEx        float64 `json:"capex_usd"`
	OpEx         float64 `json:"opex_usd"`
	Total        float64 `json:"total_usd"`
	RowsPerUSD   float64 `json:"rows_per_usd"`
	RebuildHours float64 `json:"rebuild_hours"`

	Binds       string       `json:"binding_constraints"` // the constraint of each resource, in words
	Constraints []Constraint `json:"constraints"`
}

// sizer sizes the placements of one job by one table.
type sizer struct {
	table *Table
	used  map[string]bool
	model string
	plain Medium

	t, bytes float64 // rows/s and bytes at the end of the horizon
}

func newSizer(t *Table, j *Job) *sizer {
	s := &sizer{table: t, used: make(map[string]bool), model: j.paperModel(), plain: j.medium()}
	years := s.value(figureYears)
	s.t = s.value(figureT) * math.Pow(1+s.value(figureTGrowth), years)
	s.bytes = s.value(figureBytes) * math.Pow(1+s.value(figureGrowth), years) * s.value(figureReplicas)
	return s
}

// value returns a figure, and notes that the plan uses it.
func (s *sizer) value(name string) float64 {
	s.used[name] = true
	return s.table.figures[name].Value
}

// of returns a figure of a medium.
func (s *sizer) of(m Medium, what string) float64 { return s.value(string(m) + what) }

// nic is the usable bandwidth of a network interface.
func (s *sizer) nic() float64 { return s.value(figureNICRate) * s.value(figureUsableNetwork) }

// up is the least whole number that is not below x, but for rounding.
func up(x float64) int64 { return int64(math.Ceil(x - 1e-9)) }

// counts collects the constraints of a placement.
type counts struct {
	list []Constraint
	err  error
}

// need adds a constraint.
func (c *counts) need(name, resource string, x float64, format string, args ...any) {
	if !(x <= mostCount) {
		c.err = fmt.Errorf("%w: %s asks for %.3g %s, which no plan is for: check T, the rates and the bytes", ErrJob,
			name, x, resource)
		x = 0
	}
	c.list = append(c.list, Constraint{Name: name, Resource: resource, Count: up(x), Why: fmt.Sprintf(format, args...)})
}

// most returns the largest count of a resource, and marks the first constraint that has it.
func (c *counts) most(resource string) (most int64) {
	binding := -1
	for i, k := range c.list {
		if k.Resource == resource && k.Count > most {
			most, binding = k.Count, i
		}
	}
	if binding >= 0 {
		c.list[binding].Binds = true
	}
	return most
}

// place sizes one placement.
func (s *sizer) place(m Mode) (Placement, error) {
	p := Placement{Name: m.Name, Title: m.Title, NoFigure: m.absent, Constraints: []Constraint{}}
	if p.NoFigure == "" {
		p.NoFigure = s.missing(m)
	}
	if p.NoFigure != "" {
		return p, nil
	}
	var c counts
	medium := s.plain
	if m.site == inDrives {
		medium = CSD
	}
	s.storage(&c, medium)
	p.Drives = c.most(Drives)
	s.nodes(&c, m, p.Drives)
	p.Cards = c.most(Cards)
	if m.site == onCards || m.site == onPooled {
		s.slots(&c, m, p.Cards)
	}
	p.Nodes, p.Workers = c.most(Nodes), c.most(Workers)
	p.NICs = s.interfaces(m, p.Nodes, p.Workers)
	s.trainers(&c, m, &p)
	s.spend(&c, m, medium, &p)
	p.Constraints, p.Binds = c.list, describe(c.list)
	return p, c.err
}

// describe says which constraint binds each resource.
func describe(list []Constraint) string {
	text := ""
	for _, k := range list {
		if !k.Binds || k.Resource == Trainers {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += k.Resource + ": " + k.Name
	}
	return text
}

// missing names the figure without which a placement cannot be counted; "" if all are there.
func (s *sizer) missing(m Mode) string {
	if m.core != "" {
		_, _, why := s.cores(m.core)
		return why
	}
	rate := figureDriveP
	switch m.site {
	case onCards:
		rate = figureCardP
	case onPooled:
		rate = figurePreStoDrive
	}
	if f := s.table.figures[rate]; f.Value == 0 {
		return f.Source
	}
	return ""
}
