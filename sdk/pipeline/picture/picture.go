// Package picture draws a pipeline for people: as lines of text, as a graph in Graphviz' language, or as data.
package picture

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/millrace/millrace/sdk/pipeline"
)

// Picture shows a pipeline as it is written: each group of columns on its way through the operators to a tensor, with
// what each step is estimated to cost.
type Picture struct {
	Name  string `json:"name"`
	Batch int    `json:"batch_rows"`
	// EstimatedNanoseconds is the sum over the steps of all groups, for one value of each group.
	EstimatedNanoseconds float64 `json:"estimated_ns"`
	Groups               []Group `json:"groups"`
}

// Group is columns that share a chain.
type Group struct {
	// Tensor is label, dense, sparse or generated, or value: the group makes a value that others take by its name.
	Tensor  string   `json:"tensor"`
	Columns []string `json:"columns"` // columns and values
	// Together: the first operator takes all columns at once, and not each alone.
	Together bool   `json:"together"`
	As       string `json:"as,omitempty"` // how the features are named; empty: as their columns
	Steps    []Step `json:"steps"`
	// EstimatedNanoseconds is the sum over the steps, for one value.
	EstimatedNanoseconds float64 `json:"estimated_ns"`
}

// Step is an operator.
type Step struct {
	Operator   string `json:"operator"`
	Parameters string `json:"parameters,omitempty"` // as a document has them, long ones shortened
	// EstimatedNanoseconds of one core for a value; absent if there is no estimate.
	EstimatedNanoseconds *float64 `json:"estimated_ns,omitempty"`
}

// Draw returns the picture of a checked spec.
func Draw(s *pipeline.Spec) *Picture {
	p := &Picture{Name: s.Name, Batch: s.Batch, Groups: []Group{}}
	if p.Batch == 0 {
		p.Batch = pipeline.DefaultBatch
	}
	for _, chain := range s.Chains() {
		g := Group{Tensor: chain.Section, Columns: []string{}, Together: len(chain.Inputs) > 0, As: chain.As,
			Steps: []Step{}}
		if chain.Section == "values" {
			g.Tensor = "value"
		}
		for _, from := range slices.Concat(chain.Columns, chain.Inputs) {
			g.Columns = append(g.Columns, from.Text)
		}
		for i := range *chain.Ops {
			op := &(*chain.Ops)[i]
			step := Step{Operator: op.Name, Parameters: drawParameters(op)}
			if entry := pipeline.EntryOf(op.Name); entry != nil && entry.Cost != nil {
				cost := entry.Cost(op)
				step.EstimatedNanoseconds = &cost
				g.EstimatedNanoseconds += cost
			}
			g.Steps = append(g.Steps, step)
		}
		p.EstimatedNanoseconds += g.EstimatedNanoseconds
		p.Groups = append(p.Groups, g)
	}
	return p
}

// maxDrawn is the most bytes of a parameter's value in a picture.
const maxDrawn = 40

// drawParameters writes an operator's parameters as a document has them. It shortens tables and borders.
func drawParameters(o *pipeline.Op) string {
	args := make([]string, len(o.Args))
	for i := range o.Args {
		value := pipeline.FormatValue(o.Args[i].Value)
		if len(value) > maxDrawn {
			value = strings.ToValidUTF8(value[:maxDrawn], "") + "..."
		}
		args[i] = o.Args[i].Name + ": " + value
	}
	return strings.Join(args, ", ")
}

// sources names the columns and values that the group takes.
func (g *Group) sources() string {
	between := ", "
	if g.Together {
		between = " with "
	}
	return oneLine(strings.Join(g.Columns, between))
}

// title writes a step for people, with its estimated cost.
func (s *Step) title() string {
	text := s.Operator
	if s.Parameters != "" {
		text += " {" + s.Parameters + "}"
	}
	return text + " " + s.cost()
}

func (s *Step) cost() string {
	if s.EstimatedNanoseconds == nil {
		return "(no estimate)"
	}
	return fmt.Sprintf("(about %.3g ns)", *s.EstimatedNanoseconds)
}

// Text draws the pipeline in lines: a group begins with its tensor and columns, and each step is a line below them.
func (p *Picture) Text() []byte {
	var b strings.Builder
	name := oneLine(p.Name)
	if name == "" {
		name = "without a name"
	}
	fmt.Fprintf(&b, "pipeline %s, mini-batches of %d rows\n", name, p.Batch)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i := range p.Groups {
		g := &p.Groups[i]
		name := ""
		if g.As != "" {
			name = " as " + oneLine(g.As)
		}
		fmt.Fprintf(w, "\n%s%s <- %s\tabout %.3g ns a value\n", g.Tensor, name, g.sources(),
			g.EstimatedNanoseconds)
		for j := range g.Steps {
			s := &g.Steps[j]
			fmt.Fprintf(w, "  %s\t%s\n", oneLine(strings.TrimSuffix(s.title(), " "+s.cost())), s.cost())
		}
	}
	_ = w.Flush() // a Builder takes everything
	b.WriteString("\nCosts are estimates for one core, not measured here.\n")
	return []byte(b.String())
}

// oneLine returns foreign text without characters that would break a line or its columns.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// DOT draws the pipeline as a graph in Graphviz' language: columns, steps and tensors are nodes.
func (p *Picture) DOT() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph pipeline {\n  label=%s;\n  rankdir=LR;\n  node [shape=box];\n", quoteDOT(p.Name))
	tensors := map[string]bool{}
	for i := range p.Groups {
		g := &p.Groups[i]
		fmt.Fprintf(&b, "  g%d [shape=oval, label=%s];\n", i, quoteDOT(g.sources()))
		from := fmt.Sprintf("g%d", i)
		for j := range g.Steps {
			to := fmt.Sprintf("g%d_%d", i, j)
			fmt.Fprintf(&b, "  %s [label=%s];\n  %s -> %s;\n", to, quoteDOT(g.Steps[j].title()), from, to)
			from = to
		}
		tensor := map[string]string{"generated": "sparse"}[g.Tensor]
		switch {
		case g.Tensor == "value":
			tensor = quoteDOT("value " + g.As)
		case tensor == "":
			tensor = g.Tensor
		}
		if !tensors[tensor] {
			tensors[tensor] = true
			fmt.Fprintf(&b, "  %s [shape=folder];\n", tensor)
		}
		fmt.Fprintf(&b, "  %s -> %s [label=%s];\n", from, tensor, quoteDOT(g.As))
	}
	b.WriteString("}\n")
	return []byte(b.String())
}

// quoteDOT writes a string of Graphviz' language.
func quoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(oneLine(s)) + `"`
}
