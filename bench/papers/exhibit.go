package papers

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed *.yaml
var documents embed.FS

// Paper is what a paper's text prints, figure by figure and table by table.
type Paper struct {
	Name  string `yaml:"name"`  // as --paper takes it
	Short string `yaml:"short"` // what its authors call the system
	Title string `yaml:"title"`
	Scale string `yaml:"scale"` // how the paper's experiments are scaled down, and what is modelled

	Exhibits []Exhibit `yaml:"exhibits"`
	Picture  *Bars     `yaml:"picture"`
}

// Exhibit is a figure, a table, or a statement of the paper.
type Exhibit struct {
	ID    string `yaml:"id"`    // "Figure 3", "Table I"
	Shows string `yaml:"shows"` // what the paper shows there
	How   string `yaml:"how"`   // how the values here are made
	// NotReproduced is the reason why there are no rows.
	NotReproduced string `yaml:"not_reproduced"`
	Rows          []Row  `yaml:"rows"`
}

// Row is one quantity of an exhibit.
type Row struct {
	Quantity string `yaml:"quantity"`
	Paper    string `yaml:"paper"` // the value as printed; empty: the text has none
	Place    string `yaml:"place"` // the section or table that prints it
	Ours     string `yaml:"ours"`  // with places for values of the run; empty: Missing says why
	Missing  string `yaml:"missing"`
	Cause    string `yaml:"cause"` // It says in a sentence why Paper and Ours differ.
}

// Bars is a paper's picture: values of the run as bars.
type Bars struct {
	Title string `yaml:"title"`
	Unit  string `yaml:"unit"`
	Bars  []Bar  `yaml:"bars"`
}

// Bar is one bar. Ours is a key of the run; a bar without it has the paper's value.
type Bar struct {
	Label string  `yaml:"label"`
	Ours  string  `yaml:"ours"`
	Paper float64 `yaml:"paper"`
}

// errDocument says that a paper's document breaks the rules of the page.
var errDocument = errors.New("papers: document")

// Find returns a paper's document.
func Find(name string) (*Paper, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("%w: paper %q: want one of %v", ErrOptions, name, Names())
	}
	b, err := documents.ReadFile(name + ".yaml")
	if err != nil {
		return nil, err
	}
	return parse(b)
}

// parse reads a document and checks what does not depend on a run.
func parse(b []byte) (*Paper, error) {
	var p Paper
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocument, err)
	}
	for i := range p.Exhibits {
		if err := p.Exhibits[i].check(); err != nil {
			return nil, fmt.Errorf("%w: %s, %s: %w", errDocument, p.Name, p.Exhibits[i].ID, err)
		}
	}
	return &p, nil
}

func (e *Exhibit) check() error {
	switch {
	case e.ID == "" || e.Shows == "":
		return errors.New("an exhibit has an id and says what it shows")
	case (e.NotReproduced != "") == (len(e.Rows) > 0):
		return errors.New("an exhibit has either rows or the reason why it is not reproduced")
	}
	for i := range e.Rows {
		if err := e.Rows[i].check(); err != nil {
			return fmt.Errorf("%s: %w", e.Rows[i].Quantity, err)
		}
	}
	return nil
}

func (r *Row) check() error {
	switch {
	case r.Quantity == "":
		return errors.New("a row names its quantity")
	case (r.Paper == "") != (r.Place == ""):
		return errors.New("a value of the paper and its place belong together")
	case (r.Ours == "") == (r.Missing == ""):
		return errors.New("a row has either a value of the run or the reason why there is none")
	case r.Paper != "" && r.Ours != "" && r.Cause == "":
		return errors.New("two values stand beside each other without the cause of their difference")
	case r.Cause != "" && (r.Paper == "" || r.Ours == ""):
		return errors.New("a cause wants two values")
	}
	return nil
}
