package power

import "fmt"

// The kinds of energy.
const (
	Measured = "measured"
	Modelled = "modelled"
)

// Energy is what a run used.
type Energy struct {
	Kind           string   `json:"kind"` // Measured or Modelled
	Seconds        float64  `json:"seconds"`
	Joules         float64  `json:"joules"`
	PerMillionRows float64  `json:"joules_per_million_rows"`
	Split          *Split   `json:"split,omitempty"` // nil: the idle machine was not measured
	Domains        []Domain `json:"domains"`
	Notes          []string `json:"notes,omitempty"`
}

// Split tells static and dynamic energy apart. Static is what the machine draws anyway.
type Split struct {
	IdleWatts             float64 `json:"idle_watts"`
	StaticJoules          float64 `json:"static_joules"`
	DynamicJoules         float64 `json:"dynamic_joules"`
	DynamicPerMillionRows float64 `json:"dynamic_joules_per_million_rows"`
}

// Domain is the part of something that is measured or modelled by itself.
type Domain struct {
	Name   string  `json:"domain"` // package-0, package-0/dram, gpu-0, machine, cores, drives
	Source string  `json:"source"`
	Joules float64 `json:"joules"`
}

// model sets the energy of the model.
func (e *Energy) model(m Model, u Use) {
	e.Kind = Modelled
	if u.DriveSeconds > 0 {
		e.Domains = []Domain{{"drives", fmt.Sprintf("%.4g s of drives x %.4g W (%s)", u.DriveSeconds, m.Drive,
			m.DriveSource), u.DriveSeconds * m.Drive}}
		e.Notes = append(e.Notes, "the drives alone are modelled: no host, no network")
		return
	}
	e.Domains = []Domain{{"cores", fmt.Sprintf("%.4g s of processor time x %.4g W a core (%s)", u.CPUSeconds, m.Core,
		m.CoreSource), u.CPUSeconds * m.Core}}
	e.Notes = append(e.Notes, "nothing on this machine measures energy: a busy core's share of a node is modelled, and "+
		"what the machine draws idle is not")
}

// addUp sets the sums. A domain whose idle power was not measured counts as drawing nothing idle.
func (e *Energy) addUp(idle map[string]float64, rows int64) {
	static := 0.0
	for _, d := range e.Domains {
		e.Joules += d.Joules
		static += idle[d.Name]
	}
	millions := float64(rows) / 1e6
	if rows > 0 {
		e.PerMillionRows = e.Joules / millions
	}
	if idle == nil || e.Kind != Measured {
		return
	}
	s := &Split{IdleWatts: static, StaticJoules: min(static*e.Seconds, e.Joules)}
	if s.DynamicJoules = e.Joules - s.StaticJoules; rows > 0 {
		s.DynamicPerMillionRows = s.DynamicJoules / millions
	}
	e.Split = s
}

// Watts returns the mean power.
func (e *Energy) Watts() float64 {
	if e.Seconds <= 0 {
		return 0
	}
	return e.Joules / e.Seconds
}

// String tells the energy in a line.
func (e *Energy) String() string {
	text := fmt.Sprintf("%.4g J %s, %.4g J a million rows, %.4g W on average", e.Joules, e.Kind, e.PerMillionRows,
		e.Watts())
	if e.Split != nil {
		text += fmt.Sprintf("; %.4g J of it static (%.4g W idle) and %.4g J dynamic", e.Split.StaticJoules,
			e.Split.IdleWatts, e.Split.DynamicJoules)
	}
	return text
}
