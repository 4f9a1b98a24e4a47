package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
)

// printPlan prints the drives alone, then the placements.
func printPlan(w io.Writer, r *planResult) {
	printDrives(w, r.Result)
	printSizedPlacements(w, r.Placements)
}

// printDrives prints the plan of the drives alone.
func printDrives(w io.Writer, r *capacity.Result) {
	fmt.Fprintf(w, "%s\n\n", r.Says)
	fmt.Fprintf(w, "constraint\tdrives\twhy\n")
	for _, k := range r.Constraints {
		name := strings.ReplaceAll(k.Name, "_", " ")
		if k.Name == r.Binds {
			name += " (binds)"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", name, k.Drives, k.Why)
	}
	fmt.Fprintf(w, "\n\tall drives\tdrives at once\n")
	fmt.Fprintf(w, "count\t%d\t%d\n", r.Drives, r.Busy)
	fmt.Fprintf(w, "watts\t%.0f\t%.0f\n", r.Watts, r.BusyWatts)
	fmt.Fprintf(w, "CapEx + OpEx, $\t%.0f\t%.0f\n", r.CapEx+r.OpEx, r.BusyUSD)
	fmt.Fprintf(w, "rows a $\t%.4g\t\n", r.RowsPerDollar)
	fmt.Fprintln(w)
	terminal.Rows(w, r.Baselines)
	sources := make([]string, len(r.Baselines))
	for i, b := range r.Baselines {
		sources[i] = b.Name + ": " + b.Source
	}
	printLines(w, "where the cores come from", sources)
	printLines(w, "not counted above", r.NotCounted)
	printLines(w, "assumes", r.Assumes)
}

func printLines(w io.Writer, title string, lines []string) {
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// mostMoves is how many figures the table's tornado shows. JSON and HTML have all of them.
const mostMoves = 12

// printSizedPlacements prints the placements and what moves them.
func printSizedPlacements(w io.Writer, r *sizing.Report) {
	fmt.Fprintf(w, "\nplacements, for %.4g rows/s, %.4g bytes with copies, %s, %.3g years:\n", r.T, r.Bytes,
		quantity.Of(r.TrainingNodes, "training node"), r.Years)
	fmt.Fprintf(w, "%s\n\n", r.Verdict)
	fmt.Fprintf(w, "placement\tdrives\tspares\tcards\tstorage nodes\tpool nodes\tNICs\ttrainer NICs\tracks\twatts\t"+
		"CapEx, $\tOpEx, $\ttotal, $\n")
	for i := range r.Placements {
		p := &r.Placements[i]
		if p.NoFigure != "" {
			fmt.Fprintf(w, "%s%s\n", p.Name, strings.Repeat("\t-", 12))
			continue
		}
		name := p.Name
		if p.Name == r.Cheapest {
			name += " (cheapest)"
		} else if !p.Fits {
			name += " (does not fit)"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f\t%.0f\t%.0f\t%.0f\n", name, p.Drives, p.Spares,
			p.Cards, p.Nodes, p.Workers, p.NICs, p.TrainerNICs, p.Racks, p.Watts, p.CapEx, p.OpEx, p.Total)
	}
	fmt.Fprintf(w, "\nplacement\twhat it is\twhat binds\trebuild, h\n")
	for i := range r.Placements {
		p := &r.Placements[i]
		switch {
		case p.NoFigure != "":
			fmt.Fprintf(w, "%s\t%s\tnot counted: %s\t-\n", p.Name, p.Title, p.NoFigure)
		case !p.Fits:
			fmt.Fprintf(w, "%s\t%s\tdoes not fit: %s\t%.3g\n", p.Name, p.Title, p.Misfit, p.RebuildHours)
		default:
			fmt.Fprintf(w, "%s\t%s\t%s\t%.3g\n", p.Name, p.Title, p.Binds, p.RebuildHours)
		}
	}
	printConstraints(w, r)
	printSensitivity(w, r)
	printSources(w, r)
}

// printConstraints prints every constraint of the placement in storage, or else of the cheapest one.
func printConstraints(w io.Writer, r *sizing.Report) {
	for i := range r.Placements {
		p := &r.Placements[i]
		if p.NoFigure != "" || p.Name != sizing.InStorage && p.Name != r.Cheapest {
			continue
		}
		fmt.Fprintf(w, "\n%s: constraint\tof\tcount\twhy\n", p.Name)
		for _, k := range p.Constraints {
			name := k.Name
			if k.Binds {
				name += " (binds)"
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", name, k.Resource, k.Count, k.Why)
		}
	}
}

// printSensitivity prints what moves the answer.
func printSensitivity(w io.Writer, r *sizing.Report) {
	fmt.Fprintln(w)
	terminal.Rows(w, r.Tornado[:min(len(r.Tornado), mostMoves)])
	fmt.Fprintf(w, "\nbreak-even price\tbeside\tof a\t$\tnow, $\n")
	for _, b := range r.BreakEven {
		price := fmt.Sprintf("%.0f", b.USD)
		if b.Never {
			price = "never: it would be below 0"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\n", b.Placement, b.Beside, b.Device, price, b.PriceNow)
	}
	fmt.Fprintf(w, "\nas T grows, from rows/s\tthe cheapest is\n")
	if len(r.Sweep) > 0 {
		fmt.Fprintf(w, "%.4g\t%s\n", r.Sweep[0].T, orNone(r.Sweep[0].Cheapest))
	}
	for _, x := range r.Crossovers {
		fmt.Fprintf(w, "%.4g\t%s\n", x.T, orNone(x.To))
	}
	if len(r.Overtakings) > 0 {
		fmt.Fprintf(w, "\nas T grows, from rows/s\tthis placement\tcosts less than\n")
	}
	for _, x := range r.Overtakings {
		fmt.Fprintf(w, "%.4g\t%s\t%s\n", x.T, x.To, x.From)
	}
	if len(r.Tiers) > 0 {
		fmt.Fprintln(w)
		terminal.Rows(w, r.Tiers)
	}
}

func orNone(name string) string {
	if name == "" {
		return "none fits"
	}
	return name
}

// printSources prints where the figures come from.
func printSources(w io.Writer, r *sizing.Report) {
	kinds := make([]string, len(r.Kinds))
	for i, k := range r.Kinds {
		kinds[i] = fmt.Sprintf("%d %s", k.Count, k.Kind)
	}
	fmt.Fprintf(w, "\nfigures: %s\n\n", strings.Join(kinds, ", "))
	terminal.Rows(w, r.Figures)
	printLines(w, "holds for all placements", r.Notes)
	printLines(w, "counted in no placement", r.NotCounted)
}
