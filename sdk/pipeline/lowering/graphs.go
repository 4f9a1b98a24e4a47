package lowering

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// graphBuilder gathers the columns and steps of one graph. Steps refer to columns and steps by places in its lists:
// only at the end is it known how many columns there are, and so which numbers the steps have.
type graphBuilder struct {
	groups  []graphColumns
	sources []graphSource
	byName  map[string]int // Places in sources.
	nodes   []graphNode
	byForm  map[string]int // Places in nodes.
	sinks   []nodeSink
}

// graphColumns is a column, or the columns of a map.
type graphColumns struct {
	columns []program.Column
}

// graphSource is a column or a feature of a map.
type graphSource struct{ group, pick int }

// nodeRef is a place in a graphBuilder's sources or nodes.
type nodeRef struct {
	column bool
	at     int
}

// graphNode is a step of the program: an operator of several inputs, or a chain that several steps or sinks take.
type graphNode struct {
	inputs  []nodeRef
	combine program.Combiner
	ops     []program.Op
}

// nodeSink is a sink and what it takes.
type nodeSink struct {
	from   nodeRef
	sink   program.Sink
	scored bool // the scores of the ids become weights
}

// addStepFeature adds a feature that several columns make to a graph that makes one of its steps already, if the
// feature may join it, or to a new graph. A graph makes dense features, and keys that follow its last key.
func (l *lowering) addStepFeature(f *resolve.Feature, s program.Sink) {
	joins := func(i int) bool { return l.graphs[i] != nil && l.graphs[i].wouldShare(l, f.Step) }
	at := -1
	if s.To == program.ToSparse {
		if last := len(l.out.Columns) - 1; last >= 0 && joins(last) {
			at = last
		}
	} else {
		for i := range l.out.Columns {
			if at < 0 && joins(i) {
				at = i
			}
		}
	}
	if at < 0 {
		at = len(l.out.Columns)
		l.out.Columns = append(l.out.Columns, program.Column{Part: program.GraphFirst}) // see insertGraphs
		l.graphs[at] = &graphBuilder{byName: make(map[string]int), byForm: make(map[string]int)}
	}
	g := l.graphs[at]
	from := g.addStep(l, f.Step)
	if f.Shared > 0 {
		from = g.addChain(l, from, f.Step.Yields, f.Ops[:f.Shared])
		if s.Ops = f.Ops[f.Shared:]; len(s.Ops) == 0 {
			s.Ops = nil // as a program that is read has it
		}
	}
	g.sinks = append(g.sinks, nodeSink{from, s, f.Scored()})
}

// wouldShare reports whether a graph makes a step, or one that the step takes, and has room for the rest.
func (g *graphBuilder) wouldShare(l *lowering, s *resolve.Step) bool {
	columns, steps, found := 0, 0, false
	seen := make(map[int]bool)
	var visit func(s *resolve.Step)
	visit = func(s *resolve.Step) {
		form := l.forms.Number(s)
		if seen[form] {
			return
		}
		seen[form] = true
		if _, ok := g.byForm[stepForm(form)]; ok {
			found = true
			return
		}
		steps += 1 + len(s.Inputs)
		for i := range s.Inputs {
			if in := &s.Inputs[i]; in.Step != nil {
				visit(in.Step)
			} else if _, ok := g.byName[sourceName(in, s.Combine)]; !ok {
				columns++
				if in.OfMap() {
					columns += 2
				}
			}
		}
	}
	visit(s)
	return found && g.columnCount()+columns <= program.MaxGraphColumns && len(g.nodes)+steps <= program.MaxSteps &&
		len(g.sources)+columns <= program.MaxGraphPicks
}

// addStep adds a step and all that it takes.
func (g *graphBuilder) addStep(l *lowering, s *resolve.Step) nodeRef {
	form := stepForm(l.forms.Number(s))
	if at, ok := g.byForm[form]; ok {
		return nodeRef{at: at}
	}
	n := graphNode{combine: s.Combine}
	for i := range s.Inputs {
		in := &s.Inputs[i]
		var from nodeRef
		if in.Step != nil {
			from = g.addStep(l, in.Step)
		} else {
			from = g.addSource(in, s.Combine)
		}
		n.inputs = append(n.inputs, g.addChain(l, from, program.ValueType{Kind: in.Column.Kind, List: in.Column.List},
			in.Ops))
	}
	return g.addNode(form, n)
}

func (g *graphBuilder) addNode(form string, n graphNode) nodeRef {
	at := len(g.nodes)
	g.nodes, g.byForm[form] = append(g.nodes, n), at
	return nodeRef{at: at}
}

// addChain adds a chain of operators behind a column or step.
func (g *graphBuilder) addChain(l *lowering, from nodeRef, of program.ValueType, ops []program.Op) nodeRef {
	if len(ops) == 0 {
		return from
	}
	form := fmt.Sprint("chain ", from, l.forms.Chain(of, ops))
	if at, ok := g.byForm[form]; ok {
		return nodeRef{at: at}
	}
	return g.addNode(form, graphNode{inputs: []nodeRef{from}, ops: ops})
}

// stepForm names a step in a graphBuilder.
func stepForm(number int) string { return fmt.Sprint("step ", number) }

// insertGraphs puts the graphs in place of the columns that stand for them.
func (l *lowering) insertGraphs() {
	if len(l.graphs) == 0 {
		return
	}
	var columns []program.Column
	for i := range l.out.Columns {
		g := l.graphs[i]
		if g == nil {
			columns = append(columns, l.out.Columns[i])
			continue
		}
		first := len(columns)
		for k := range g.groups {
			columns = append(columns, g.groups[k].columns...)
		}
		columns[first].Part = program.GraphFirst
		l.out.Graphs = append(l.out.Graphs, g.graph())
	}
	l.out.Columns = columns
}

// graph returns the graph with the numbers of its values. The chain of a step of several inputs that nothing else takes
// becomes part of the step.
func (g *graphBuilder) graph() program.Graph {
	uses := make([]int, len(g.nodes))
	for i := range g.nodes {
		for _, n := range g.nodes[i].inputs {
			if !n.column {
				uses[n.at]++
			}
		}
	}
	for i := range g.sinks {
		if n := g.sinks[i].from; !n.column {
			uses[n.at]++
		}
	}
	var out program.Graph
	numbers := make([]uint32, len(g.nodes))
	sources := g.sourceNumbers()
	number := func(n nodeRef) uint32 {
		if n.column {
			return sources[n.at]
		}
		return numbers[n.at]
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		if from := n.inputs[0]; n.combine == nil && !from.column && uses[from.at] == 1 {
			s := &out.Steps[numbers[from.at]-uint32(len(g.sources))]
			if len(s.Ops)+len(n.ops) <= program.MaxOps {
				s.Ops = slices.Concat(s.Ops, n.ops)
				numbers[i] = numbers[from.at]
				continue
			}
		}
		s := program.Step{Combine: n.combine, Ops: n.ops}
		for _, in := range n.inputs {
			s.Inputs = append(s.Inputs, number(in))
		}
		numbers[i] = uint32(len(g.sources) + len(out.Steps))
		out.Steps = append(out.Steps, s)
	}
	for i := range g.sinks {
		out.Sinks = append(out.Sinks, program.GraphSink{Value: number(g.sinks[i].from), Sink: g.sinks[i].sink,
			Scored: g.sinks[i].scored})
	}
	return out
}
