package program

import "fmt"

// A graph makes values of several columns. Its columns follow each other in Program.Columns, from one of part
// GraphFirst on, have no sinks of their own, and are read side by side: a row of each beside the same row of the
// others. The n-th graph of Program.Graphs belongs to the n-th column of part GraphFirst. A section of its own holds
// the graphs, so that the bytes of a program without graphs do not change.

// Limits of graphs.
const (
	MaxGraphColumns = 256     // columns of a graph
	MaxSteps        = 1 << 12 // steps of a graph
	MaxInputs       = 8       // inputs of a step
)

// Graph is the steps that take the values of some columns, and the sinks of what the steps make.
type Graph struct {
	Steps []Step // each takes columns and earlier steps
	Sinks []GraphSink
}

// Step makes one value of one or several values. Values are numbered: first those that GraphValues returns of the
// columns, in their order, and then the steps.
type Step struct {
	Inputs  []uint32 // numbers of values, all lower than the step's own
	Combine Combiner // takes the inputs together; nil if there is one input
	Ops     []Op     // the chain behind
}

// GraphSink is the chain of operators from a value of a graph to one place in the output.
type GraphSink struct {
	Value uint32 // number of the value
	Sink  Sink
	// Scored: the scores of the value's ids become their weights. Otherwise every id weighs 1.
	Scored bool
}

// ValueType is the type of a value: one element a row, a list of elements, or a list of ids with scores.
type ValueType struct {
	Kind   Kind
	List   bool
	Scored bool // each element, an Int64, has a score, which is a Float32; of lists only
}

// GraphAt returns the graph whose columns begin at column i, or nil if none does.
func (p *Program) GraphAt(i int) *Graph {
	if p.Columns[i].Part != GraphFirst {
		return nil
	}
	n := 0
	for k := range i {
		if p.Columns[k].Part == GraphFirst {
			n++
		}
	}
	if n >= len(p.Graphs) {
		return nil
	}
	return &p.Graphs[n]
}

// validateGraph checks the graph g of columns. It checks that no value is unused, and adds the graph's sinks to those
// that were seen.
func (g *Graph) validateGraph(columns []Column, seen *coverage) error {
	switch {
	case len(columns) > MaxGraphColumns:
		return fmt.Errorf("%d columns of a graph, want at most %d", len(columns), MaxGraphColumns)
	case len(g.Steps) > MaxSteps:
		return fmt.Errorf("%d steps of a graph, want at most %d", len(g.Steps), MaxSteps)
	case len(g.Sinks) == 0:
		return fmt.Errorf("a graph without sinks")
	}
	if err := validateMapLeaves(columns); err != nil {
		return err
	}
	sources := GraphValues(columns)
	values := make([]ValueType, 0, len(sources)+len(g.Steps))
	for i := range sources {
		values = append(values, sources[i].Type)
	}
	used := make([]bool, cap(values))
	for i := range g.Steps {
		v, err := g.Steps[i].validateStep(values, used, seen)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		values = append(values, v)
	}
	before := seen.keys
	for i := range g.Sinks {
		s := &g.Sinks[i]
		if uint64(s.Value) >= uint64(len(values)) {
			return fmt.Errorf("sink %d takes value %d of %d", i, s.Value, len(values))
		}
		used[s.Value] = true
		from := values[s.Value]
		c := Column{Kind: from.Kind, List: from.List, Part: GraphFirst}
		err := seen.addSink(&c, &s.Sink)
		if err == nil {
			err = s.Sink.validateOps(&c, seen.tables)
		}
		if err == nil && s.Scored {
			err = s.checkScored(from, seen.out)
		}
		if err != nil {
			return fmt.Errorf("sink %d (%v %d): %w", i, s.Sink.To, s.Sink.Index, err)
		}
	}
	for i, u := range used {
		switch {
		case u:
		case i < len(sources):
			if c := &columns[sources[i].Column]; c.MapLeaf != NoPart {
				return fmt.Errorf("nothing takes key %s of column %q of the graph",
					sources[i].Pick.keyString(columns[sources[i].Column-1].Kind), c.Name)
			}
			return fmt.Errorf("nothing takes column %q of the graph", columns[sources[i].Column].Name)
		default:
			return fmt.Errorf("nothing takes step %d", i-len(sources))
		}
	}
	return seen.noteKeys(before)
}

// validateStep checks a step that may take the values before it, marks those that it takes, and returns the type of
// the value that it makes.
func (s *Step) validateStep(values []ValueType, used []bool, seen *coverage) (ValueType, error) {
	if len(s.Inputs) == 0 || len(s.Inputs) > MaxInputs {
		return ValueType{}, fmt.Errorf("%d inputs, want 1 to %d", len(s.Inputs), MaxInputs)
	}
	inputs := make([]ValueType, len(s.Inputs))
	for i, n := range s.Inputs {
		if uint64(n) >= uint64(len(values)) {
			return ValueType{}, fmt.Errorf("takes value %d, want one before it (below %d)", n, len(values))
		}
		used[n], inputs[i] = true, values[n]
	}
	v := inputs[0]
	switch {
	case s.Combine == nil && len(inputs) > 1:
		return v, fmt.Errorf("%d inputs and no operator that takes them together", len(inputs))
	case s.Combine == nil && len(s.Ops) == 0:
		return v, fmt.Errorf("does nothing")
	case s.Combine != nil:
		var ok bool
		if v, ok = s.Combine.Yield(inputs); !ok {
			return v, fmt.Errorf("%v does not take %v", s.Combine.Unit(), inputs)
		}
		if err := s.Combine.Check(); err != nil {
			return v, fmt.Errorf("%v: %w", s.Combine.Unit(), err)
		}
	}
	for _, op := range s.Ops {
		if _, ok := op.(denseEnd); ok {
			return v, fmt.Errorf("%v in a step: it makes dense columns", op.Unit())
		}
		if v.Scored && movesIDs(op) {
			return v, fmt.Errorf("%v of scored ids", op.Unit())
		}
	}
	kind, err := validateChain(s.Ops, v.Kind, v.List, seen.tables)
	if err == nil && v.Scored && kind != Int64 {
		err = fmt.Errorf("scored ids become %v", kind)
	}
	v.Kind = kind
	return v, err
}

// checkScored checks a sink that takes the scores of a value of a type as weights.
func (s *GraphSink) checkScored(from ValueType, out Output) error {
	switch {
	case !from.Scored:
		return fmt.Errorf("takes scores of %v, which has none", from)
	case s.Sink.To != ToSparse || !out.Weights:
		return fmt.Errorf("takes scores, which have no tensor")
	}
	for _, op := range s.Sink.Ops {
		if movesIDs(op) {
			return fmt.Errorf("%v of scored ids", op.Unit())
		}
	}
	return nil
}

// checkTextLists checks a graph over rows of text, whose output has room for one value of a row for each key: no
// operator may fill lists up to more.
func (g *Graph) checkTextLists() error {
	for i := range g.Steps {
		if err := checkTextOps(g.Steps[i].Ops); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	for i := range g.Sinks {
		if err := checkTextOps(g.Sinks[i].Sink.Ops); err != nil {
			return fmt.Errorf("sink %d: %w", i, err)
		}
	}
	return nil
}

func checkTextOps(ops []Op) error {
	for _, op := range ops {
		if f, ok := op.(filler); ok && f.FillsUpTo() > 1 {
			return fmt.Errorf("%v: fills lists up to %d, and a row of text makes at most one value a key", op.Unit(),
				f.FillsUpTo())
		}
	}
	return nil
}

// takesScores reports whether a sink takes scores as weights.
func (g *Graph) takesScores() bool {
	for i := range g.Sinks {
		if g.Sinks[i].Scored {
			return true
		}
	}
	return false
}

// String returns the type as pipelines write it.
func (v ValueType) String() string {
	switch {
	case v.Scored:
		return "list<" + v.Kind.String() + ", score>"
	case v.List:
		return "list<" + v.Kind.String() + ">"
	}
	return v.Kind.String()
}
