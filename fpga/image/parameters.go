package image

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Source says where a figure comes from. No source is a measurement on a board: nobody has run an image on one.
type Source string

// The sources of figures.
const (
	SourceRequested Source = "requested" // chosen by whoever designed the image, or asked of a tool
	SourceAssumed   Source = "assumed"   // the reference says why
	SourcePublished Source = "published" // the reference names the publication and the place in it
	SourceRTL       Source = "rtl"       // of the description of a unit in fpga/rtl; see [RTLReference]
)

// Figure is a number with its source.
type Figure struct {
	Value     uint32 `json:"value"`
	Source    Source `json:"source"`
	Reference string `json:"reference"` // required of every source but "requested"
}

// Parameters determine how fast the device of an image is, according to the model in fpga/timing. They do not change
// what the image computes. None of them is what a tool achieved: the clock is the one that was requested.
type Parameters struct {
	Clock   Figure           `json:"clock_khz"`
	Buffers Figure           `json:"buffers"` // 2: stages work on successive mini-batches at the same time; 1: one by one
	Chained Figure           `json:"chained"` // 1: decoded values reach the operators on chip; 0: through device memory
	Units   []UnitParameters `json:"units"`   // ascending by number
}

// UnitParameters are the parameters of one unit.
type UnitParameters struct {
	Unit     uint16 `json:"unit"`
	Elements Figure `json:"elements"`            // copies of the unit, which work on different features
	Lanes    Figure `json:"lanes"`               // values that enter one element together
	Interval Figure `json:"initiation_interval"` // cycles from one entry to the next
	Latency  Figure `json:"latency_cycles"`      // cycles from a value's entry to its result; 0: left out of the model
}

// Limits of figures, both included. They exclude slips of the pen, not what a device could not do.
const (
	MinClockKHz  = 1_000
	MaxClockKHz  = 1_000_000
	MaxElements  = 1024
	MaxLanes     = 64
	MaxInterval  = 1024
	MaxLatency   = 65535
	MaxReference = 200 // bytes
)

// RTLReference is the reference of a figure with [SourceRTL]: the unit's name in fpga/rtl and the SHA-256 of its
// sources.
func RTLReference(unit, sources string) string { return unit + " " + sources }

func (f Figure) String() string {
	if f.Reference == "" {
		return fmt.Sprintf("%d (%s)", f.Value, f.Source)
	}
	return fmt.Sprintf("%d (%s: %s)", f.Value, f.Source, f.Reference)
}

// NamedFigure is a figure with its name, as "clock_khz" or "log.lanes".
type NamedFigure struct {
	Name   string `json:"name"`
	Figure Figure `json:"figure"`
}

// Figures lists all figures, those of units with the unit's name.
func (p *Parameters) Figures(units []Unit) []NamedFigure {
	all := []NamedFigure{{"clock_khz", p.Clock}, {"buffers", p.Buffers}, {"chained", p.Chained}}
	names := make(map[uint16]string, len(units))
	for _, u := range units {
		names[u.Number] = u.Name
	}
	for i := range p.Units {
		u := &p.Units[i]
		name := names[u.Unit] + "."
		all = append(all, NamedFigure{name + "elements", u.Elements}, NamedFigure{name + "lanes", u.Lanes},
			NamedFigure{name + "initiation_interval", u.Interval}, NamedFigure{name + "latency_cycles", u.Latency})
	}
	return all
}

// checkFigure returns an error unless the figure lies within its limits and names its source.
func (f Figure) checkFigure(name string, least, most uint32, rtl bool) error {
	if f.Value < least || f.Value > most {
		return fmt.Errorf("%s is %d, want %d to %d", name, f.Value, least, most)
	}
	if len(f.Reference) > MaxReference || !utf8.ValidString(f.Reference) ||
		strings.ContainsFunc(f.Reference, unicode.IsControl) {
		return fmt.Errorf("%s has a reference that is not text of at most %d bytes on one line", name, MaxReference)
	}
	switch f.Source {
	case SourceRequested:
		return nil
	case SourceAssumed, SourcePublished:
		if strings.TrimSpace(f.Reference) == "" {
			return fmt.Errorf("%s is %s and has no reference: say why, or where", name, f.Source)
		}
		return nil
	case SourceRTL:
		unit, digest, _ := strings.Cut(f.Reference, " ")
		sum, err := hex.DecodeString(digest)
		switch {
		case !rtl:
			return fmt.Errorf("%s has the source %s, and fpga/rtl describes initiation interval and latency only", name,
				SourceRTL)
		case unit == "" || err != nil || len(sum) != 32 || strings.ToLower(digest) != digest:
			return fmt.Errorf("%s has the reference %q, want the name of a unit of fpga/rtl and the SHA-256 of its sources",
				name, f.Reference)
		}
		return nil
	}
	return fmt.Errorf("%s has the source %q, want %s, %s, %s or %s", name, f.Source, SourceRequested, SourceAssumed,
		SourcePublished, SourceRTL)
}

// checkParameters returns an error unless all figures are within their limits and belong to one of the image's units.
func (p *Parameters) checkParameters(units map[uint16]bool) error {
	if err := p.Clock.checkFigure("clock_khz", MinClockKHz, MaxClockKHz, false); err != nil {
		return err
	}
	if err := p.Buffers.checkFigure("buffers", 1, 2, false); err != nil {
		return err
	}
	if err := p.Chained.checkFigure("chained", 0, 1, false); err != nil {
		return err
	}
	if len(p.Units) == 0 {
		return fmt.Errorf("no units")
	}
	for i := range p.Units {
		u := &p.Units[i]
		if !units[u.Unit] {
			return fmt.Errorf("figures of unit %d, which the image lacks", u.Unit)
		}
		if i > 0 && u.Unit <= p.Units[i-1].Unit {
			return fmt.Errorf("unit numbers must ascend: %d behind %d", u.Unit, p.Units[i-1].Unit)
		}
		for _, f := range []struct {
			figure      Figure
			name        string
			least, most uint32
			rtl         bool
		}{
			{u.Elements, "elements", 1, MaxElements, false}, {u.Lanes, "lanes", 1, MaxLanes, false},
			{u.Interval, "initiation_interval", 1, MaxInterval, true}, {u.Latency, "latency_cycles", 0, MaxLatency, true},
		} {
			if err := f.figure.checkFigure(fmt.Sprintf("unit %d: %s", u.Unit, f.name), f.least, f.most, f.rtl); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unsourced lists the figures of format 1.0 that the specification states and that name no source: clocks, and the
// lanes, initiation intervals and latencies of units. Nothing reads them. [Parameters] hold such figures with sources.
func (s *Spec) Unsourced() []string {
	var all []string
	for i := range s.Clocks {
		all = append(all, "clock "+s.Clocks[i].Name)
	}
	for _, u := range s.Units {
		if u.Lanes != 0 {
			all = append(all, "lanes of unit "+u.Name)
		}
	}
	for i := range s.Kernels {
		if s.Kernels[i].II != 0 {
			all = append(all, "initiation_interval of kernel "+s.Kernels[i].Name)
		}
		if s.Kernels[i].Latency != 0 {
			all = append(all, "latency_cycles of kernel "+s.Kernels[i].Name)
		}
	}
	return all
}
