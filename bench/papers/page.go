package papers

import (
	_ "embed" // overview.md
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// lineLength is the length that lines of the page's paragraphs and lists have at most.
const lineLength = 120

// place is where a value of the run stands in a row: {key} or {key|format}.
var place = regexp.MustCompile(`\{([a-z0-9_./-]+)(?:\|([^}]+))?\}`)

// page is a page in the making.
type page struct {
	strings.Builder
	result *Result
	used   map[string]bool
}

// pageOf writes the page of the papers' documents and results, which are in the same order, and of the baselines.
func pageOf(papers []*Paper, runs []*Result, kept baselines) (string, error) {
	p := &page{}
	p.WriteString("# Reproduction of the papers\n\n")
	for _, s := range introduction {
		p.paragraph(s)
	}
	p.WriteString("<!-- not run: measures for up to half an hour -->\n```sh\nmake reproduce\n```\n\n")
	p.WriteString("## What is here of each paper\n\n" + overview + "\n")
	for i, paper := range papers {
		if err := p.paper(paper, runs[i]); err != nil {
			return "", fmt.Errorf("%s: %w", paper.Name, err)
		}
	}
	if err := p.baselines(kept); err != nil {
		return "", err
	}
	return strings.TrimRight(p.String(), "\n") + "\n", nil
}

// WritePage writes the page of all papers, and their pictures beside it, of the results in a folder.
func WritePage(folder, path string) error {
	var papers []*Paper
	var runs []*Result
	for _, name := range Names() {
		p, err := Find(name)
		if err != nil {
			return err
		}
		r, err := readResult(folder, name)
		if err != nil {
			return fmt.Errorf("the page has all papers, and there is no run of %s: %w", name, err)
		}
		papers, runs = append(papers, p), append(runs, r)
	}
	kept, err := keptBaselines()
	if err != nil {
		return err
	}
	text, err := pageOf(papers, runs, kept)
	if err != nil {
		return err
	}
	files := map[string]string{path: text}
	for i, p := range papers {
		if p.Picture == nil {
			continue
		}
		if files[filepath.Join(filepath.Dir(path), pictureName(p))], err = pictureOf(p, runs[i]); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// overview is the table of what this project has of each paper, and what it lacks.
//
//go:embed overview.md
var overview string

// introduction is what stands above the papers.
var introduction = []string{
	"This page is generated from the papers' values (`bench/papers`, with the places that print them) and from the " +
		"results of a run (`capacity/results/papers`). `make reproduce` runs everything again and writes both; " +
		"`MILLRACE_UPDATE=1 go test ./bench/papers` writes the page alone.",
	"The papers' values are those that their prose and tables print. Heights of bars are in no text, and nothing is " +
		"read off a picture; where a figure has no value in its text, the value here stands alone. *Modelled* values " +
		"follow from constants of `fpga/timing` or of the paper, whose sources the code names: no board has run. " +
		"*Fitted* values are modelled with a constant that was chosen so that another value of the paper comes out: " +
		"that they agree with the paper is not evidence for the model. " +
		"*Measured* values are software on the machine that each section names. *Computed* values follow from " +
		"measured ones by arithmetic, and no run had them. *Counted* values are bytes, rows or features. *Kept* " +
		"values are from the run of `bench/peers` that `capacity/results` keeps. The cause of every " +
		"difference stands below its table; a cause with the word *probably* is a guess that nothing here can " +
		"decide. The [baselines](#baselines) stand behind the papers.",
}

// paper writes one paper.
func (p *page) paper(paper *Paper, r *Result) error {
	p.result, p.used = r, map[string]bool{}
	fmt.Fprintf(p, "## %s\n\n", paper.Short)
	p.paragraph(paper.Title + ". " + paper.Scale)
	p.paragraph(runInWords(r))
	for i := range paper.Exhibits {
		if err := p.exhibit(&paper.Exhibits[i]); err != nil {
			return fmt.Errorf("%s: %w", paper.Exhibits[i].ID, err)
		}
	}
	if paper.Picture != nil {
		for _, b := range paper.Picture.Bars {
			p.used[b.Ours] = true
		}
		fmt.Fprintf(p, "![%s](%s)\n\n", paper.Picture.Title, pictureName(paper))
	}
	for key := range r.Values {
		if !p.used[key] {
			return fmt.Errorf("%w: the run's value %s is on no row", errDocument, key)
		}
	}
	return nil
}

// runInWords says where the run's values come from.
func runInWords(r *Result) string {
	m := r.Machine
	s := fmt.Sprintf("The run: `%s`, %s, %.0f s, on %s, %d cores, %s, %s, load before %s, after %s.", r.Command, r.Time,
		r.Seconds, m.CPU, m.Cores, m.System, m.Go, orUnknown(m.LoadBefore), orUnknown(m.LoadAfter))
	for _, n := range r.Notes {
		s += " " + n
	}
	if r.Kept != "" {
		s += " Kept values: " + r.Kept + "."
	}
	return s
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// exhibit writes a table, and the causes of differences below it.
func (p *page) exhibit(e *Exhibit) error {
	fmt.Fprintf(p, "### %s: %s\n\n", e.ID, e.Shows)
	if e.NotReproduced != "" {
		p.paragraph("Not reproduced: " + e.NotReproduced)
		return nil
	}
	how, _, err := p.fill(e.How)
	if err != nil {
		return err
	}
	p.paragraph(how)
	p.WriteString("| | quantity | paper | here | kind |\n|---|---|---|---|---|\n")
	var causes []string
	for i := range e.Rows {
		row := &e.Rows[i]
		here, kinds, err := p.fill(row.Ours)
		if err != nil {
			return err
		}
		theirs := "no value in the text"
		if row.Paper != "" {
			theirs = fmt.Sprintf("%s (%s)", row.Paper, row.Place)
		}
		if row.Missing != "" {
			here, kinds = "not reproduced", "-"
		}
		fmt.Fprintf(p, "| %d | %s | %s | %s | %s |\n", i+1, row.Quantity, theirs, here, kinds)
		why, _, err := p.fill(row.Cause + row.Missing)
		if err != nil {
			return err
		}
		if why != "" {
			causes = append(causes, fmt.Sprintf("%d: %s", i+1, why))
		}
	}
	p.WriteString("\n")
	for _, c := range causes {
		p.item(c)
	}
	if len(causes) > 0 {
		p.WriteString("\n")
	}
	return nil
}

// fill puts the run's values into a row's text, and returns the kinds of the values.
func (p *page) fill(text string) (filled, kinds string, err error) {
	var all []string
	filled = place.ReplaceAllStringFunc(text, func(s string) string {
		m := place.FindStringSubmatch(s)
		v, ok := p.result.Values[m[1]]
		if !ok {
			err = fmt.Errorf("%w: the run has no value %s: run `make reproduce` again", errDocument, m[1])
			return ""
		}
		p.used[m[1]] = true
		for kind := range strings.SplitSeq(string(v.Kind), ", ") {
			if !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
		return format(v.Value, m[2])
	})
	return filled, strings.Join(all, ", "), err
}

// format writes a value: as si, as pct, or as package fmt does; without a format with three digits.
func format(v float64, how string) string {
	switch how {
	case "si":
		return si(v)
	case "pct":
		return fmt.Sprintf("%.1f %%", 100*v)
	case "":
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return fmt.Sprintf(how, v)
}

// si writes a value with three digits and k, M or G.
func si(v float64) string {
	for _, unit := range []string{"", " k", " M", " G"} {
		if v < 999.5 || unit == " G" {
			return fmt.Sprintf("%.3g%s", v, unit)
		}
		v /= 1000
	}
	return ""
}

// paragraph writes a text in lines.
func (p *page) paragraph(text string) {
	if text = strings.TrimSpace(text); text != "" {
		p.WriteString(strings.Join(lines(text, lineLength), "\n") + "\n\n")
	}
}

// item writes a line of a list.
func (p *page) item(text string) {
	p.WriteString("- " + strings.Join(lines(text, lineLength-2), "\n  ") + "\n")
}

// lines breaks a text between words.
func lines(text string, most int) []string {
	var broken []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= most:
			line += " " + word
		default:
			broken, line = append(broken, line), word
		}
	}
	return append(broken, line)
}
