package engine

import (
	"bytes"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/computescore"
	"github.com/millrace/millrace/fpga/unit/idlisttransform"
	"github.com/millrace/millrace/fpga/unit/ngram"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

const (
	// graphLeafValues is how many values a column of a graph should have in a block.
	graphLeafValues = 8192
	// graphStepValues is how many values all columns and steps of a graph should have together for the rows that are
	// computed together, so that they stay in the second-level cache.
	graphStepValues = 1 << 15
	// maxRowLists bounds the values that the columns and steps of a graph have for one row, in longest lists.
	maxRowLists = 4
)

// maxListInputs is the most inputs of an operator that takes lists.
const maxListInputs = 4

// graphValues holds the values of a graph for the rows that are computed together.
type graphValues struct {
	columns []chainValues // of all rows of the block
	values  []graphValue  // of the rows that are computed together
	// sinkLists holds the scores that the chain of a sink kept.
	sinkLists graphValue
	starts    []int // by column: the first element of the rows that come next
	maps      []graphMapValues
	lengths   []int64 // of one row, by value
	row       []int64 // of one row, by input of a step
	inputs    []*chainValues
}

// graphValue is one value of a graph. The memory of int64s to lengths is the value's own; view may lie there, or in the
// block of a column.
type graphValue struct {
	view     chainValues
	int64s   []int64
	float32s []float32
	float64s []float64
	valid    []byte
	lengths  []int32

	// Lists of ids with scores: the scores that an operator made, those that a chain kept of other scores, and the lengths
	// before the chain.
	scores, keptScores []float32
	originalLengths    []int32

	// Inputs of a step of several inputs whose lists held nulls, and hold none any more, by their number.
	emptied []graphValue

	// Inputs that are scalars and become lists, by their number.
	listLengths [maxListInputs][]int32
	listIDs     [maxListInputs][]int64
	listScores  [maxListInputs][]float32

	intersection idlisttransform.Intersection
	scorer       computescore.Scorer
}

// bufferBytes returns the size of the buffers that grow with the data.
func (g *graphValues) bufferBytes() (n int) {
	n = g.sinkLists.bufferBytes()
	for i := range g.maps {
		n += g.maps[i].bufferBytes()
	}
	for i := range g.values {
		n += g.values[i].bufferBytes()
	}
	return n
}

// bufferBytes returns the size of the buffers that grow with the data.
func (g *graphValue) bufferBytes() int {
	n := 8*(cap(g.int64s)+cap(g.float64s)) + cap(g.valid) + 4*(cap(g.float32s)+cap(g.lengths)+cap(g.scores)+
		cap(g.keptScores)+cap(g.originalLengths))
	for k := range maxListInputs {
		n += 8*cap(g.listIDs[k]) + 4*(cap(g.listScores[k])+cap(g.listLengths[k]))
	}
	for i := range g.emptied {
		n += g.emptied[i].bufferBytes()
	}
	return n
}

// releaseMemory drops the references to the blocks of columns.
func (g *graphValues) releaseMemory() {
	clear(g.columns[:cap(g.columns)])
	for i := range g.values {
		g.values[i].releaseMemory()
	}
	clear(g.inputs[:cap(g.inputs)])
	for i := range g.maps {
		g.maps[i].scores = nil
	}
}

// releaseMemory drops the references to the blocks of columns.
func (g *graphValue) releaseMemory() {
	g.view = chainValues{}
	for i := range g.emptied {
		g.emptied[i].releaseMemory()
	}
}

// beginBlock makes room for the columns of a block and the values of a plan.
func (g *graphValues) beginBlock(p *graphPlan) {
	g.columns = resize(&g.columns, len(p.columns))
	g.starts = resize(&g.starts, len(p.columns))
	clear(g.starts)
	n := len(p.columns) + len(p.steps)
	if cap(g.values) < n {
		g.values = append(g.values[:cap(g.values)], make([]graphValue, n-cap(g.values))...)
	}
	g.values, g.lengths = g.values[:n], resize(&g.lengths, n)
}

// writeBlock implements groupPlan.
func (p *graphPlan) writeBlock(x *executor, row uint64, n int, valuesStart uint64) (ok bool, leaf int, err error) {
	g, reader := &x.graphValues, &x.mapReader
	g.beginBlock(p)
	if leaf, err := x.pickFeatures(p, n); err != nil {
		return false, leaf, reader.scans[leaf].errorAtPage(&reader.scans[leaf].cursor, err)
	}
	for i := range p.columns {
		if p.leafParts[p.sources[i].Column] != program.NoPart {
			continue // pickFeatures has made it
		}
		b := &reader.leaves[p.sources[i].Column].block
		v := chainValues{kind: p.columns[i].Kind, count: b.Values(), int64s: b.I64, float32s: b.F32, float64s: b.F64,
			offsets: b.Offsets, data: b.Data, list: p.columns[i].List}
		if b.Nulls > 0 {
			v.valid = b.Valid
		}
		if v.list {
			v.lengths = b.Lengths
		}
		g.columns[i] = v
	}
	written, bytesWritten := x.output.written, x.output.bytesWritten
	for from := 0; from < n; {
		rows, err := p.rowsTogether(x, from, n)
		if err == nil {
			leaf, err = p.computeRows(x, from, rows, nil)
		}
		if err == nil {
			ok, leaf, err = p.writeRows(x, row+uint64(from), rows, valuesStart)
		}
		if err != nil {
			first := row + uint64(from)
			err = fmt.Errorf("rows %d to %d of the mini-batch: %w", first, first+uint64(max(rows, 1))-1, err)
			return false, leaf, reader.scans[leaf].errorAtPage(&reader.scans[leaf].cursor, err)
		}
		if !ok { // the block's rows are written again
			x.output.written, x.output.bytesWritten = written, bytesWritten
			return false, 0, nil
		}
		from += rows
	}
	return true, 0, nil
}

// rowsTogether returns how many of the block's rows, from row from on, are computed together. It returns an error if
// one row has more values than an engine takes.
func (p *graphPlan) rowsTogether(x *executor, from, end int) (rows int, err error) {
	g, total := &x.graphValues, int64(0)
	for r := from; r < end; r++ {
		sum := int64(0)
		for i := range g.lengths {
			l := int64(1)
			switch k := i - len(p.columns); {
			case k < 0:
				if p.columns[i].List {
					l = int64(g.columns[i].lengths[r])
				}
			case p.steps[k].combine == nil:
				l = p.steps[k].mostAfterChain(g.lengths[p.steps[k].inputs[0]])
			case p.steps[k].list:
				g.row = g.row[:0]
				for _, n := range p.steps[k].inputs {
					g.row = append(g.row, g.lengths[n])
				}
				l = p.steps[k].mostAfterChain(p.steps[k].combine.mostElements(g.row))
			}
			g.lengths[i] = l
			sum += l
		}
		if most := maxRowLists * int64(x.engine.maxList); sum > most {
			if r == from {
				return 0, fmt.Errorf("%w: a row of a graph with %d values, want at most %d", format.ErrLimit, sum, most)
			}
			break
		}
		if total += sum; total > graphStepValues && r > from {
			break
		}
		rows++
	}
	return rows, nil
}

// mostAfterChain returns how many elements the chain of a step makes of n elements at most, if it makes more of them.
func (s *graphStep) mostAfterChain(n int64) int64 {
	for i := range s.ops {
		if s.ops[i].listsWindows {
			n = min(n*s.ops[i].ngramSize, ngram.MaxListed)
		}
	}
	return n
}

// computeRows computes the values of some rows of the block, which follow those that were computed before. needed says
// which steps are wanted; nil means all. leaf is the column that an error is about.
func (p *graphPlan) computeRows(x *executor, from, rows int, needed []bool) (leaf int, err error) {
	g := &x.graphValues
	for i := range p.columns {
		g.values[i].view = g.columns[i].rowsFrom(from, rows, &g.starts[i])
	}
	for i := range p.steps {
		if needed != nil && !needed[i] {
			continue
		}
		if err := p.computeStep(x, i, rows); err != nil {
			return p.steps[i].leaf, err
		}
	}
	return 0, nil
}

// computeStep computes the value of one step.
func (p *graphPlan) computeStep(x *executor, i, rows int) error {
	g, s := &x.graphValues, &p.steps[i]
	to := &g.values[len(p.columns)+i]
	v := g.values[s.inputs[0]].view
	if s.combine != nil {
		g.inputs = g.inputs[:0]
		for k, n := range s.inputs {
			in := &g.values[n].view
			if in.list && in.valid != nil {
				in = to.emptyNullLists(&x.buffers, k, in)
			}
			g.inputs = append(g.inputs, in)
		}
		start := x.readClock()
		if err := s.combine.combine(to, g.inputs, rows); err != nil {
			return fmt.Errorf("%v: %w", s.unit, err)
		}
		v = to.view
		x.recordRun(s.unit, start, v.count)
	}
	x.buffers.chainDestination = destination{}
	to.noteLengths(&v)
	if v.scores == nil {
		// What takes the value may fill the nulls of a list.
		if err := x.runSteps(s.ops, &v); err != nil {
			return err
		}
	} else if err := x.runChain(s.ops, &v); err != nil {
		return err
	}
	to.cutScores(&v)
	to.keepView(&v)
	return nil
}

// emptyNullLists returns lists with length 0 for every list of v that holds a null, as an operator of several inputs
// takes its input number k. v is left as it is.
func (g *graphValue) emptyNullLists(b *buffers, k int, v *chainValues) *chainValues {
	for len(g.emptied) <= k {
		g.emptied = append(g.emptied, graphValue{})
	}
	to, lists := &g.emptied[k], *v
	to.noteLengths(&lists)
	b.emptyNullLists(&lists)
	to.cutScores(&lists)
	to.keepView(&lists)
	return &to.view
}

// keepView makes v the value. What lies in the buffers of chains is copied to memory of the value.
func (g *graphValue) keepView(v *chainValues) {
	if v.ownsValues {
		switch v.kind {
		case program.Int64:
			g.int64s = append(g.int64s[:0], v.int64s[:v.count]...)
			v.int64s = g.int64s
		case program.Float32:
			g.float32s = append(g.float32s[:0], v.float32s[:v.count]...)
			v.float32s = g.float32s
		case program.Float64:
			g.float64s = append(g.float64s[:0], v.float64s[:v.count]...)
			v.float64s = g.float64s
		}
	}
	if v.valid != nil {
		g.valid = append(g.valid[:0], v.valid[:v.count]...)
		v.valid = g.valid
	}
	if v.ownsLengths {
		g.lengths = append(g.lengths[:0], v.lengths...)
		v.lengths = g.lengths
	}
	v.ownsValues, v.ownsValid, v.ownsLengths = false, false, false // several steps and sinks read it
	g.view = *v
}

// rowsFrom returns the values of some rows of a block. *start is the first element of these rows, and is moved behind
// their last.
func (v *chainValues) rowsFrom(from, rows int, start *int) chainValues {
	part := *v
	part.count = rows
	if v.list {
		part.lengths, part.count = v.lengths[from:][:rows], 0
		for _, l := range part.lengths {
			part.count += int(l)
		}
	}
	at, end := *start, *start+part.count
	*start = end
	switch v.kind {
	case program.Int64:
		part.int64s = v.int64s[at:end]
	case program.Float32:
		part.float32s = v.float32s[at:end]
	case program.Float64:
		part.float64s = v.float64s[at:end]
	default:
		part.offsets = v.offsets[min(at, len(v.offsets)):min(end+1, len(v.offsets))]
	}
	if v.scores != nil {
		part.scores = v.scores[at:end]
	}
	if v.valid != nil {
		if part.valid = v.valid[at:end]; bytes.IndexByte(part.valid, 0) < 0 {
			part.valid = nil
		}
	}
	return part
}

// writeRows writes the sinks of the rows that were computed, as rows row, row+1, ... of the mini-batch. ok is false if
// the output lacks room.
func (p *graphPlan) writeRows(x *executor, row uint64, rows int, valuesStart uint64) (ok bool, leaf int, err error) {
	features := &x.mapReader.mapFeatures
	features.ids, features.weights, features.counts = features.ids[:0], features.weights[:0], features.counts[:0]
	for i := range p.sinks {
		s := &p.sinks[i]
		v, err := x.runGraphSink(s, row, rows)
		if err != nil {
			return false, s.leaf, err
		}
		if s.tensor != program.ToSparse || x.output.fixed {
			if err := x.output.storeScalars(&s.sink, row, &v); err != nil {
				return false, s.leaf, err
			}
			continue
		}
		if v.list {
			features.ids = append(features.ids, v.int64s[:v.count]...)
			features.counts = append(features.counts, v.lengths...)
			if s.scored {
				features.weights = append(features.weights, v.scores...)
			}
			features.addUnitWeights(len(x.output.weights) > 0)
		} else {
			features.addScalars(&v, len(x.output.weights) > 0)
		}
		// Ids that the output has no room for are not made.
		if need := x.output.written + uint64(len(features.ids)); need > x.output.capacity {
			x.mapReader.scans[0].stopEarly(program.MoreOutput, need)
			return false, 0, nil
		}
	}
	if p.keys.count == 0 || x.output.fixed {
		return true, 0, nil
	}
	ok, err = x.stageRows(&p.columnGroup, row, rows, valuesStart)
	return ok, 0, err
}

// runGraphSink runs a value through the chain of a sink.
func (x *executor) runGraphSink(s *graphSink, row uint64, rows int) (chainValues, error) {
	v := x.graphValues.values[s.value].view
	x.buffers.chainDestination = destination{}
	switch {
	case s.tensor == program.ToDense:
		x.buffers.chainDestination.dense = x.output.denseDestination(uint64(s.index), row, rows)
	case s.tensor == program.ToSparse && x.output.fixed:
		x.buffers.chainDestination = x.output.idDestination(x.output.scalarIndex(uint64(s.index), row), rows)
	}
	lists := &x.graphValues.sinkLists // other sinks and steps read the scores of the value
	lists.noteLengths(&v)
	err := x.runChain(s.steps, &v)
	locateAbsentKey(err, &s.sink, row)
	if err == nil && s.scored {
		lists.cutScores(&v)
	}
	return v, err
}

// transformGraph runs the decoded rows of text through a graph, as rows row, row+1, ... of the mini-batch. columns are
// those of the graph.
func (x *executor) transformGraph(p *graphPlan, columns []column, row uint64, rows int) error {
	g := &x.graphValues
	if x.output.fixed || p.keys.count == 0 {
		return x.transformGraphPass(p, columns, nil, row, rows)
	}
	for i := range p.passes {
		if err := x.transformGraphPass(p, columns, &p.passes[i], row, rows); err != nil {
			return err
		}
	}
	g.releaseMemory()
	return nil
}

// transformGraphPass runs rows of text through the sinks of a pass; nil means all sinks.
func (x *executor) transformGraphPass(p *graphPlan, columns []column, pass *graphPass, row uint64, rows int) error {
	g := &x.graphValues
	g.beginBlock(p)
	for i := range columns {
		values, valid := x.fieldColumn(columns[i].field)
		v := chainValues{kind: program.Int64, count: rows, int64s: (*values)[:rows]}
		if *valid != nil {
			v.valid = (*valid)[:rows]
		}
		g.columns[i] = v
	}
	for from := 0; from < rows; {
		n, err := p.rowsTogether(x, from, min(rows, from+x.engine.blockRows))
		if err != nil {
			return err
		}
		var needed []bool
		if pass != nil {
			needed = pass.needed
		}
		if _, err := p.computeRows(x, from, n, needed); err != nil {
			return err
		}
		for i := range p.sinks {
			if pass == nil || pass.hasSink(i) {
				if err := x.storeGraphSink(&p.sinks[i], row+uint64(from), n); err != nil {
					return err
				}
			}
		}
		from += n
	}
	return nil
}

// hasSink reports whether a sink belongs to the pass.
func (p *graphPass) hasSink(sink int) bool {
	for _, i := range p.sinks {
		if i == sink {
			return true
		}
	}
	return false
}

// storeGraphSink runs rows of text through one sink and writes them.
func (x *executor) storeGraphSink(s *graphSink, row uint64, rows int) error {
	v, err := x.runGraphSink(s, row, rows)
	if err != nil {
		return fmt.Errorf("rows %d to %d of the mini-batch: %w", row, row+uint64(rows)-1, err)
	}
	if !v.list {
		if s.tensor == program.ToSparse && v.valid != nil {
			x.buffers.ownValues(&v) // storeSparse removes nulls in place
		}
		return x.output.storeScalars(&s.sink, row, &v)
	}
	var weights []float32
	if s.scored {
		weights = v.scores
	}
	stored, need, err := x.output.storeLists(uint64(s.index), row, &v, weights)
	if err == nil && stored < rows {
		err = sliceError("%d values in an output for %d: a row of text makes at most one a key", need, x.output.capacity)
	}
	return err
}
