package engine

import (
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/chain"
	"github.com/millrace/millrace/fpga/operator/kernels"
	"github.com/millrace/millrace/fpga/program"
)

// graphPlan is the compiled form of a graph. The columns are read side by side, a block of rows at a time (mapReader).
// graphValues holds the values of some rows of a block, and the ids of keys go the way of a map's (tensors.Staging).
//
// Values are numbered: the columns and the features of maps, and then the steps.
type graphPlan struct {
	columnGroup
	columns   []program.ValueType  // the values that are columns or features of maps
	sources   []program.GraphValue // Each is a column.
	leafParts []program.Part       // There is one for each leaf of the group.
	maps      []graphMap
	steps     []graphStep
	sinks     []graphSink
	passes    []graphPass // They read text.
}

// graphStep is one step made ready.
type graphStep struct {
	inputs   []int // numbers of values
	operator program.Combiner
	combine  block.Combiner // The operator made ready; nil if there is none.
	chain    chain.Chain
	list     bool // the value is a list
	leaf     int  // a column that the value is made of, for errors
}

// graphSink is a sink and the value that it takes.
type graphSink struct {
	sink
	value, leaf int
	scored      bool // the scores of the ids become weights
}

// graphPass is the sinks of one pass over rows of text, and the steps that they need. There is one pass, unless several
// keys have lengths: all values of a key lie behind those of the key before.
type graphPass struct {
	sinks  []int
	needed []bool // by step
}

// compileGraph makes a graph ready.
func compileGraph(g *program.Graph, columns []program.Column,
	tables *block.Tables) (*graphPlan, error) {
	p := &graphPlan{columnGroup: columnGroup{leaves: len(columns)}}
	var types []program.ValueType
	var leaves []int
	p.sources = program.GraphValues(columns)
	for i := range p.sources {
		types, leaves = append(types, p.sources[i].Type), append(leaves, p.sources[i].Column)
	}
	p.columns = types[:len(types):len(types)]
	p.addMaps(columns)
	for i := range g.Steps {
		s, of, err := p.compileStep(g, i, types, tables)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		s.leaf = leaves[g.Steps[i].Inputs[0]]
		p.steps, types, leaves = append(p.steps, s), append(types, of), append(leaves, s.leaf)
	}
	for i := range g.Sinks {
		from := g.Sinks[i].Value
		s, err := compileSink(&g.Sinks[i].Sink, types[from].Kind, int(from) < len(p.columns), tables)
		if err != nil {
			return nil, fmt.Errorf("sink %d: %w", i, err)
		}
		p.keys.AddPlace(&s.Place)
		p.sinks = append(p.sinks, graphSink{s, int(from), leaves[from], g.Sinks[i].Scored})
	}
	p.dividePasses()
	return p, nil
}

// compileStep makes a step ready, whose inputs have the given types, and returns the type of its value. A null that a
// step made need not hold 0, as a decoded one does.
func (p *graphPlan) compileStep(g *program.Graph, i int, types []program.ValueType,
	tables *block.Tables) (graphStep, program.ValueType, error) {
	from := &g.Steps[i]
	of := types[from.Inputs[0]]
	var s graphStep
	var err error
	ofStep := int(from.Inputs[0]) >= len(p.columns)
	if from.Combine != nil {
		var inputs []program.ValueType
		for _, n := range from.Inputs {
			inputs = append(inputs, types[n])
		}
		of, _ = from.Combine.Yield(inputs)
		ofStep, s.operator = true, from.Combine
		if s.combine, err = kernels.CompileCombiner(from.Combine, tables); err != nil {
			return s, of, err
		}
	}
	for _, n := range from.Inputs {
		s.inputs = append(s.inputs, int(n))
	}
	if s.chain, err = chain.Compile(from.Ops, of.Kind, !ofStep, tables); err != nil {
		return s, of, err
	}
	for _, op := range from.Ops {
		of.Kind = op.Out(of.Kind)
	}
	s.list = of.List
	return s, of, nil
}

// dividePasses divides the sinks into passes over rows of text.
func (p *graphPlan) dividePasses() {
	keys := 0
	for i := range p.sinks {
		if p.sinks[i].Tensor == program.ToSparse {
			keys++
		}
		if at := max(keys, 1); at > len(p.passes) {
			p.passes = append(p.passes, graphPass{})
		}
		at := 0
		if p.sinks[i].Tensor == program.ToSparse {
			at = keys - 1
		}
		p.passes[at].sinks = append(p.passes[at].sinks, i)
	}
	for i := range p.passes {
		pass := &p.passes[i]
		pass.needed = make([]bool, len(p.steps))
		need := func(value int) {
			if k := value - len(p.columns); k >= 0 {
				pass.needed[k] = true
			}
		}
		for _, s := range pass.sinks {
			need(p.sinks[s].value)
		}
		for k := len(p.steps) - 1; k >= 0; k-- {
			for _, n := range p.steps[k].inputs {
				if pass.needed[k] {
					need(n)
				}
			}
		}
	}
}

// blockSize implements groupPlan.
func (p *graphPlan) blockSize(x *executor) (values, maxRows int) {
	maxRows = x.engine.blockRows
	for i := range p.maps {
		maxRows = min(maxRows, max(1, mapBlockPlaces/max(1, p.maps[i].distinctKeys)))
	}
	return graphLeafValues, maxRows
}
