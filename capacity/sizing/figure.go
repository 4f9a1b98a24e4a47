package sizing

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ErrFigures says that a table of figures does not parse or has a figure out of range.
var ErrFigures = errors.New("figures")

// Kind says where a figure comes from.
type Kind string

// The kinds of figures.
const (
	Measured  Kind = "measured"  // by a command, on a machine, at a date
	Modelled  Kind = "modelled"  // by constants that the source names
	Published Kind = "published" // by a paper, a specification or a data sheet
	Assumed   Kind = "assumed"   // nobody published it
)

// Kinds returns the kinds in the order in which reports list them.
func Kinds() []Kind { return []Kind{Measured, Modelled, Published, Assumed} }

// Figure is a number that a plan rests on.
type Figure struct {
	Name   string  `json:"figure" yaml:"name" table:"figure"`
	Value  float64 `json:"value" yaml:"value" table:"value|%.4g"`
	Unit   string  `json:"unit" yaml:"unit" table:"unit"`
	Low    float64 `json:"low,omitempty" yaml:"low"` // the ends of its range; 0 and 0: it does not vary
	High   float64 `json:"high,omitempty" yaml:"high"`
	Kind   Kind    `json:"kind" yaml:"kind" table:"kind"`
	Source string  `json:"source" yaml:"source" table:"source"`
}

// varies reports whether the figure has a range.
func (f *Figure) varies() bool { return f.Low != 0 || f.High != 0 }

// check refuses a figure that no plan can use. A figure of a job may be 0.
func (f *Figure) check(mayBeZero bool) error {
	low := f.Value > 0 || mayBeZero && f.Value == 0
	switch {
	case !low || math.IsInf(f.Value, 0):
		return fmt.Errorf("%w: %s is %v, want a number above 0", ErrFigures, f.Name, f.Value)
	case f.varies() && !(f.Low > 0 && f.Low <= f.Value && f.Value <= f.High && !math.IsInf(f.High, 0)):
		return fmt.Errorf("%w: %s is %v with a range of %v to %v, want a range above 0 that holds the value", ErrFigures,
			f.Name, f.Value, f.Low, f.High)
	case !slices.Contains(Kinds(), f.Kind):
		return fmt.Errorf("%w: %s has the kind %q, want one of %v", ErrFigures, f.Name, f.Kind, Kinds())
	case f.Source == "":
		return fmt.Errorf("%w: %s has no source: say where %v comes from", ErrFigures, f.Name, f.Value)
	}
	return nil
}

// Table is the figures of a plan by name.
type Table struct {
	figures map[string]Figure
	order   []string // the names, in the order in which reports list them
}

//go:embed figures.yaml
var builtin []byte

// DefaultFigures returns the built-in table as YAML, with comments and sources.
func DefaultFigures() []byte { return bytes.Clone(builtin) }

// shares are the figures that are parts of a whole.
var shares = []string{figureFill, figureUsableNetwork, figureRebuildShare}

// NewTable returns the built-in table, with the figures of overrides in the place of the built-in ones. overrides is a
// YAML list of figures, and may be empty. A unit that it leaves out stays. Errors wrap ErrFigures.
func NewTable(overrides []byte) (*Table, error) {
	t := &Table{figures: make(map[string]Figure)}
	list, err := readFigures(builtin)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		t.set(f)
	}
	if list, err = readFigures(overrides); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, f := range list {
		old, known := t.figures[f.Name]
		switch {
		case !known:
			return nil, fmt.Errorf("%w: %q is not a figure of the table: --print-figures lists them", ErrFigures, f.Name)
		case seen[f.Name]:
			return nil, fmt.Errorf("%w: %s is given twice", ErrFigures, f.Name)
		case f.Unit != "" && f.Unit != old.Unit:
			return nil, fmt.Errorf("%w: %s is in %s, want %s", ErrFigures, f.Name, f.Unit, old.Unit)
		}
		f.Unit, seen[f.Name] = old.Unit, true
		t.set(f)
	}
	return t, nil
}

// readFigures reads a list of figures and checks each.
func readFigures(b []byte) (list []Figure, err error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %w", ErrFigures, err)
	}
	for i := range list {
		f := &list[i]
		if err := f.check(false); err != nil {
			return nil, err
		}
		if slices.Contains(shares, f.Name) && max(f.Value, f.High) > 1 {
			return nil, fmt.Errorf("%w: %s is %v, at most %v, want at most 1", ErrFigures, f.Name, f.Value,
				max(f.Value, f.High))
		}
	}
	return list, nil
}

// set puts a figure into the table.
func (t *Table) set(f Figure) {
	if _, known := t.figures[f.Name]; !known {
		t.order = append(t.order, f.Name)
	}
	t.figures[f.Name] = f
}

// DriveLink returns the bandwidth of the link of a drive that computes, in bytes a second.
func (t *Table) DriveLink() float64 { return t.figures[figureDriveLink].Value }

// with returns a copy of the table in which one figure has another value.
func (t *Table) with(name string, value float64) *Table {
	c := &Table{figures: maps.Clone(t.figures), order: t.order}
	f := c.figures[name]
	f.Value = value
	c.figures[name] = f
	return c
}
