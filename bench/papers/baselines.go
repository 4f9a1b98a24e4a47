package papers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/capacity/results"
)

// baselinesIntroduction stands above the tables of the baselines.
var baselinesIntroduction = []string{
	"Libraries that a user would use instead, over the same files, with the same operators and the same columns out. " +
		"The tables are the kept runs of `bench/peers`, which `make reproduce` does not repeat: `make bench-python` and " +
		"`make bench-vocabularies` do, on an idle machine. A run on one thread ties all to one core; the peers take " +
		"turns, and each one in Python is a process of its own. Before the measurement each peer's output is compared " +
		"with Millrace's, which makes mini-batches on top. Values are rows a second, the median of the rounds, with how " +
		"many times as fast Millrace is; - is what was not timed. [capacity/results](../capacity/results) has the rounds' " +
		"extremes, what each peer is, and where its output differs.",
	"TorchArrow has no package for Python 3.11, so its loops are written in Go.",
}

// loadersIntroduction stands above the table of the ways to feed a training loop.
const loadersIntroduction = "Ways to feed a training loop in Python with the same mini-batches: torchdata's nodes, " +
	"torch's `DataLoader`, NVTabular on CPU, tf.data and its service. Each turn is a process of its own, bound to the " +
	"same cores, and the whole call counts; " +
	"[python.md](python.md#beside-torchs-dataloader-torchdata-and-nvtabular) says how each is written."

// baselines are the kept runs that the page prints.
type baselines struct {
	peers   []*results.Report
	loaders *results.LoaderReport // nil: there is no kept run
}

// keptBaselines reads the runs that capacity/results keeps.
func keptBaselines() (b baselines, err error) {
	if b.peers, err = results.Reports(); err != nil {
		return b, err
	}
	b.loaders, err = results.Loaders()
	return b, err
}

// baselines writes the kept runs.
func (p *page) baselines(b baselines) error {
	p.WriteString("## Baselines\n\n")
	for _, s := range baselinesIntroduction {
		p.paragraph(s)
	}
	for _, r := range b.peers {
		if err := p.peersOf(r); err != nil {
			return err
		}
	}
	p.paragraph(loadersIntroduction)
	if b.loaders == nil {
		return nil
	}
	return p.loadersOf(b.loaders)
}

// peersOf writes one run of bench/peers.
func (p *page) peersOf(r *results.Report) error {
	p.paragraph(fmt.Sprintf("This is %s, with %s.", r.Source(), strings.Join(r.Header.Versions, ", ")))
	g := grid{base: results.Ours}
	for _, t := range r.Tables {
		for _, program := range r.Programs() {
			rate, _ := r.Rate(t.Model, t.Layout, program) // 0: not timed
			g.add(strings.ToUpper(t.Model)+", "+t.Layout, program, rate)
		}
	}
	return p.grid(&g)
}

// loadersOf writes the run of loaders.py, and what it does not compare.
func (p *page) loadersOf(r *results.LoaderReport) error {
	h := r.Header
	p.paragraph(fmt.Sprintf("Measured on %s, %s, commit %s, `%s`, with %s; load before %s.", h.CPU, h.Time, h.Commit,
		h.Command, strings.Join(h.Versions, ", "), orUnknown(h.Load)))
	g := grid{base: results.LoaderBase}
	for _, one := range r.Results {
		g.add(fmt.Sprintf("%s, %d core(s)", strings.ToUpper(one.Model), one.Cores), one.Side, one.RowsPerSecond)
	}
	if err := p.grid(&g); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		p.item("Not compared: " + name + ": " + r.Skipped[name] + ".")
	}
	if len(r.Skipped) > 0 {
		p.WriteString("\n")
	}
	return nil
}

// grid is a table of rates: a line for each program, a column for each workload.
type grid struct {
	base              string // the program that the others are compared with
	columns, programs []string
	rates             map[[2]string]float64 // by column and program
}

// add adds a rate. Columns and programs stand in the order in which they are added.
func (g *grid) add(column, program string, rate float64) {
	if g.rates == nil {
		g.rates = map[[2]string]float64{}
	}
	if !slices.Contains(g.columns, column) {
		g.columns = append(g.columns, column)
	}
	if !slices.Contains(g.programs, program) {
		g.programs = append(g.programs, program)
	}
	g.rates[[2]string{column, program}] = rate
}

// grid writes a table of rates. A column without a rate of the base is an error.
func (p *page) grid(g *grid) error {
	p.WriteString("| | " + strings.Join(g.columns, " | ") + " |\n|---|" + strings.Repeat("---|", len(g.columns)) + "\n")
	for _, program := range g.programs {
		p.WriteString("| " + program)
		for _, column := range g.columns {
			ours, theirs := g.rates[[2]string{column, g.base}], g.rates[[2]string{column, program}]
			switch {
			case ours == 0:
				return fmt.Errorf("capacity/results has no rate of %s for %s: run `make bench-python` again", g.base, column)
			case theirs == 0:
				p.WriteString(" | -")
			case program == g.base:
				p.WriteString(" | " + si(theirs))
			default:
				fmt.Fprintf(p, " | %s (%.1fx)", si(theirs), ours/theirs)
			}
		}
		p.WriteString(" |\n")
	}
	p.WriteString("\n")
	return nil
}
