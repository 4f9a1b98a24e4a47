package wire

import "github.com/millrace/millrace/fpga/program"

// Sizes of the fixed parts of the section of graphs, in bytes.
const (
	graphSize     = 16
	stepSize      = 16
	graphSinkSize = 8
	inputSize     = 4
)

// appendGraphs appends the section of graphs.
func appendGraphs(p *program.Program, b []byte, tables []program.Table) []byte {
	b = le.AppendUint32(b, uint32(len(p.Graphs)))
	b = append(b, boolBit(weightsOfGraphs(p)), 0, 0, 0)
	n := 0
	for i := range p.Columns {
		if p.Columns[i].Part != program.GraphFirst || n == len(p.Graphs) {
			continue
		}
		g := &p.Graphs[n]
		n++
		b = le.AppendUint32(b, uint32(i))
		b = le.AppendUint32(b, uint32(p.Parts(i)))
		b = le.AppendUint32(b, uint32(len(g.Steps)))
		b = le.AppendUint32(b, uint32(len(g.Sinks)))
		for k := range g.Steps {
			b = appendStep(&g.Steps[k], b, tables)
		}
		for k := range g.Sinks {
			b = le.AppendUint32(b, g.Sinks[k].Value)
			b = append(b, boolBit(g.Sinks[k].Scored), 0, 0, 0)
			b = appendSink(&g.Sinks[k].Sink, b, tables)
		}
	}
	return b
}

func appendStep(s *program.Step, b []byte, tables []program.Table) []byte {
	b = le.AppendUint32(b, uint32(len(s.Inputs)))
	b = le.AppendUint32(b, uint32(len(s.Ops)))
	b = append(b, boolBit(s.Combine != nil), 0, 0, 0, 0, 0, 0, 0)
	start := len(b)
	for _, n := range s.Inputs {
		b = le.AppendUint32(b, n)
	}
	b = padTo8Bytes(b, start)
	if s.Combine != nil {
		b = appendOp(b, s.Combine, nil)
	}
	for _, op := range s.Ops {
		b = appendOp(b, op, tables)
	}
	return b
}

// readGraphs reads the section of graphs, behind that of the columns, and sets the parts of the columns that belong to
// graphs.
func readGraphs(p *program.Program, r *reader, tables *tableSet) {
	head := r.takeBytes(8, "graphs")
	if r.err != nil {
		return
	}
	if weights := r.readBool(head[4], "weights"); weights {
		if p.HasMaps() {
			r.failCorrupt("the section of graphs says that there are weights, and that of maps is the place")
		}
		p.Output.Weights = true
	}
	r.checkZeros(head[5:], "graphs")
	n := r.checkCount(uint64(le.Uint32(head)), program.MaxColumns, graphSize, "graphs")
	if r.err == nil && n == 0 {
		r.failCorrupt("a section of graphs without one")
	}
	p.Graphs = make([]program.Graph, n)
	behind := uint64(0) // the column behind the graphs read so far
	for i := range p.Graphs {
		b := r.takeBytes(graphSize, "graph")
		if r.err != nil {
			return
		}
		first, columns := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:]))
		if first < behind || columns == 0 || first+columns > uint64(len(p.Columns)) {
			r.failCorrupt("a graph of columns %d+%d of %d, behind column %d", first, columns, len(p.Columns), behind)
			return
		}
		behind = first + columns
		for k := first; k < behind; k++ {
			p.Columns[k].MapLeaf, p.Columns[k].Part = p.Columns[k].Part, program.GraphNext
		}
		p.Columns[first].Part = program.GraphFirst
		decodeFrom(&p.Graphs[i], r, uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[12:])), tables)
	}
}

func decodeFrom(g *program.Graph, r *reader, steps, sinks uint64, tables *tableSet) {
	if n := r.checkCount(steps, program.MaxSteps, stepSize, "steps"); n > 0 {
		g.Steps = make([]program.Step, n)
	}
	for i := range g.Steps {
		if decodeStep(&g.Steps[i], r, tables); r.err != nil {
			return
		}
	}
	if n := r.checkCount(sinks, program.MaxSinks, graphSinkSize+sinkSize, "sinks"); n > 0 {
		g.Sinks = make([]program.GraphSink, n)
	}
	for i := range g.Sinks {
		b := r.takeBytes(graphSinkSize, "sink")
		if r.err != nil {
			return
		}
		g.Sinks[i].Value, g.Sinks[i].Scored = le.Uint32(b), r.readBool(b[4], "scored")
		r.checkZeros(b[5:], "sink")
		if decodeSink(&g.Sinks[i].Sink, r, tables); r.err != nil {
			return
		}
	}
}

func decodeStep(s *program.Step, r *reader, tables *tableSet) {
	b := r.takeBytes(stepSize, "step")
	if r.err != nil {
		return
	}
	ops, combined := uint64(le.Uint32(b[4:])), r.readBool(b[8], "combine")
	r.checkZeros(b[9:], "step")
	n := r.checkCount(uint64(le.Uint32(b)), program.MaxInputs, inputSize, "inputs")
	inputs := r.takePadded(uint64(n)*inputSize, "inputs")
	if r.err != nil {
		return
	}
	for i := range n {
		s.Inputs = append(s.Inputs, le.Uint32(inputs[inputSize*i:]))
	}
	if combined {
		s.Combine = readCombiner(r, tables)
	}
	if n = r.checkCount(ops, program.MaxOps, opSize, "operators"); n > 0 {
		s.Ops = make([]program.Op, n)
	}
	for i := range s.Ops {
		if s.Ops[i] = readOp(r, tables); r.err != nil {
			return
		}
	}
}
