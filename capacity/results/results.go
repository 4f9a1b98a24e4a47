package results

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.json
var kept embed.FS

// Names of two lines of the report, as bench/peers writes them.
const (
	Ours            = "millrace"           // the cpu engine
	TorchArrowLoops = "TorchArrow's loops" // TorchArrow's scalar loops, rewritten in Go, behind arrow-go's reader
	PlainLayout     = "none, plain"        // files without compression and dictionaries
)

// speedFile is the file of `make bench-speed`, from which README's table is written.
const speedFile = "speed.json"

// Report is one run of bench/peers.
type Report struct {
	Header Header  `json:"header"`
	Tables []Table `json:"tables"`
}

// Header describes where, when and how a run was measured.
type Header struct {
	Time    string `json:"time"`
	CPU     string `json:"cpu"`
	Commit  string `json:"commit"`
	Command string `json:"command"`
	Threads int    `json:"threads"`
	// Versions name the libraries with their versions.
	Versions []string `json:"versions"`
	Load     string   `json:"load_before"` // averages of 1, 5 and 15 minutes
}

// Table is one workload in one layout.
type Table struct {
	Model  string `json:"model"` // "rm1", "rm5"
	Layout string `json:"layout"`
	Lines  []Line `json:"lines"`
}

// Line is one program's figures.
type Line struct {
	Name          string `json:"name"`
	RowsPerSecond struct {
		Median float64 `json:"median"`
	} `json:"rows_per_second"`
}

// Peers returns the embedded run on one core.
func Peers() (*Report, error) { return read("peers.json") }

// Reports returns all embedded runs of bench/peers, in the order of their files' names without the ending: the run with
// one thread comes before that with two.
func Reports() (reports []*Report, err error) {
	files, err := kept.ReadDir(".")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b fs.DirEntry) int {
		return strings.Compare(strings.TrimSuffix(a.Name(), ".json"), strings.TrimSuffix(b.Name(), ".json"))
	})
	for _, f := range files {
		if f.Name() == loadersFile || f.Name() == speedFile {
			continue
		}
		r, err := read(f.Name())
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// read reads an embedded run.
func read(name string) (*Report, error) {
	b, err := kept.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read capacity/results/%s: %w: run make bench-peers again", name, err)
	}
	return &r, nil
}

// Rate returns the median rows a second of a program on a model's files in a layout, and reports whether the run had
// it.
func (r *Report) Rate(model, layout, program string) (float64, bool) {
	for _, t := range r.Tables {
		if t.Model != model || t.Layout != layout {
			continue
		}
		for _, l := range t.Lines {
			if l.Name == program && l.RowsPerSecond.Median > 0 {
				return l.RowsPerSecond.Median, true
			}
		}
	}
	return 0, false
}

// Programs returns the names of the programs of all tables, in the order in which they come first.
func (r *Report) Programs() (names []string) {
	for _, t := range r.Tables {
		for _, l := range t.Lines {
			if !slices.Contains(names, l.Name) {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

// Source returns the origin of the run's figures in one line.
func (r *Report) Source() string {
	h := r.Header
	threads := max(h.Threads, 1)
	return fmt.Sprintf("measured on %s, %d thread(s), %s, commit %s, `%s` in bench/peers", h.CPU, threads, h.Time,
		h.Commit, h.Command)
}
