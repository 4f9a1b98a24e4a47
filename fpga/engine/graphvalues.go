package engine

import (
	"fmt"

	"github.com/millrace/millrace/fpga/block"
	"github.com/millrace/millrace/fpga/engine/failure"
	"github.com/millrace/millrace/fpga/program"
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

// graphValues holds the values of a graph for the rows that are computed together.
type graphValues struct {
	columns []block.Values     // They have all rows of the block.
	values  []block.GraphValue // They have the rows that are computed together.
	// sinkLists holds the scores that the chain of a sink kept.
	sinkLists block.GraphValue
	starts    []int // by column: the first element of the rows that come next
	maps      []graphMapValues
	// The row that is measured: the first element of each column, the extent of each value, and the extents of the inputs
	// of a step.
	places       []int
	extents      []program.Extent
	inputExtents []program.Extent
	inputs       []*block.Values
}

// BufferBytes returns the size of the buffers that grow with the data.
func (g *graphValues) bufferBytes() (n int) {
	n = g.sinkLists.Size()
	for i := range g.maps {
		n += g.maps[i].bufferBytes()
	}
	for i := range g.values {
		n += g.values[i].Size()
	}
	return n
}

// ReleaseMemory drops the references to the blocks of columns.
func (g *graphValues) releaseMemory() {
	clear(g.columns[:cap(g.columns)])
	for i := range g.values {
		g.values[i].Release()
	}
	clear(g.inputs[:cap(g.inputs)])
	for i := range g.maps {
		g.maps[i].scores = nil
	}
}

// beginBlock makes room for the columns of a block and the values of a plan.
func (g *graphValues) beginBlock(p *graphPlan) {
	g.columns = block.Resize(&g.columns, len(p.columns))
	g.starts = block.Resize(&g.starts, len(p.columns))
	clear(g.starts)
	n := len(p.columns) + len(p.steps)
	if cap(g.values) < n {
		g.values = append(g.values[:cap(g.values)], make([]block.GraphValue, n-cap(g.values))...)
	}
	g.values, g.extents = g.values[:n], block.Resize(&g.extents, n)
}

// writeBlock implements groupPlan.
func (p *graphPlan) writeBlock(x *executor, row uint64, n int, valuesStart uint64) (ok bool, leaf int, err error) {
	g, reader := &x.graphValues, &x.mapReader
	g.beginBlock(p)
	if leaf, err := x.pickFeatures(p, n); err != nil {
		return false, leaf, reader.leaves[leaf].ErrorAtCursor(err)
	}
	for i := range p.columns {
		if p.leafParts[p.sources[i].Column] != program.NoPart {
			continue // pickFeatures has made it
		}
		b := &reader.leaves[p.sources[i].Column].Block
		v := block.Values{Kind: p.columns[i].Kind, Count: b.Values(), Int64s: b.I64, Float32s: b.F32, Float64s: b.F64,
			Offsets: b.Offsets, Data: b.Data, List: p.columns[i].List}
		if b.Nulls > 0 {
			v.Valid = b.Valid
		}
		if v.List {
			v.Lengths = b.Lengths
		}
		g.columns[i] = v
	}
	written, bytesWritten := x.output.Written, x.output.BytesWritten
	for from := 0; from < n; {
		rows, err := p.rowsTogether(x, from, n)
		if err == nil {
			leaf, err = p.computeRows(x, from, rows, nil)
		}
		if err == nil {
			ok, leaf, err = p.writeRows(x, row+uint64(from), rows, valuesStart)
		}
		if err != nil {
			err = failure.InRows(row+uint64(from), rows, err)
			return false, leaf, reader.leaves[leaf].ErrorAtCursor(err)
		}
		if !ok { // the block's rows are written again
			x.output.Written, x.output.BytesWritten = written, bytesWritten
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
	g.places = append(g.places[:0], g.starts...)
	for r := from; r < end; r++ {
		sum := int64(0)
		for i := range g.extents {
			if k := i - len(p.columns); k >= 0 {
				g.extents[i] = p.steps[k].mostExtent(g)
			} else {
				g.extents[i] = g.columns[i].RowExtent(r, &g.places[i])
			}
			sum += int64(g.extents[i].Elements)
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

// mostExtent returns the greatest extent of a step's value in the row whose extents are known of the values before.
func (s *graphStep) mostExtent(g *graphValues) program.Extent {
	g.inputExtents = g.inputExtents[:0]
	for _, n := range s.inputs {
		g.inputExtents = append(g.inputExtents, g.extents[n])
	}
	most := program.MostCombined(s.operator, g.inputExtents)
	if !s.list {
		most.Elements = 1
	}
	most.Elements = uint64(s.chain.MostElements(int64(most.Elements)))
	return most
}

// computeRows computes the values of some rows of the block, which follow those that were computed before. needed says
// which steps are wanted; nil means all. leaf is the column that an error is about.
func (p *graphPlan) computeRows(x *executor, from, rows int, needed []bool) (leaf int, err error) {
	g := &x.graphValues
	for i := range p.columns {
		g.values[i].View = g.columns[i].RowsFrom(from, rows, &g.starts[i])
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
	v := &x.values
	if s.combine == nil {
		*v = g.values[s.inputs[0]].View
	} else {
		g.inputs = g.inputs[:0]
		for k, n := range s.inputs {
			in := &g.values[n].View
			if in.List && in.Valid != nil {
				in = to.EmptyNullLists(&x.buffers, k, in)
			}
			g.inputs = append(g.inputs, in)
		}
		start := x.ReadClock()
		if err := s.combine.Combine(to, g.inputs, rows); err != nil {
			return fmt.Errorf("%v: %w", s.operator.Unit(), err)
		}
		*v = to.View
		x.RecordRun(s.operator.Unit(), start, v.Count)
	}
	x.buffers.Final = block.Destination{}
	to.NoteLengths(v)
	if v.Scores == nil {
		// What takes the value may fill the nulls of a list.
		if err := s.chain.RunSteps(&x.buffers, x.Stopwatch, v); err != nil {
			return err
		}
	} else if err := x.runChain(s.chain, v); err != nil {
		return err
	}
	to.CutScores(v)
	to.KeepView(v)
	return nil
}

// writeRows writes the sinks of the rows that were computed, as rows row, row+1, ... of the mini-batch. ok is false if
// the output lacks room.
func (p *graphPlan) writeRows(x *executor, row uint64, rows int, valuesStart uint64) (ok bool, leaf int, err error) {
	x.staged.Begin(x.output.HasWeights())
	for i := range p.sinks {
		s := &p.sinks[i]
		v, err := x.runGraphSink(s, row, rows)
		if err != nil {
			return false, s.leaf, err
		}
		if s.Tensor != program.ToSparse || x.output.Fixed {
			if err := x.output.StoreScalars(&s.Place, row, v); err != nil {
				return false, s.leaf, err
			}
			continue
		}
		switch {
		case !v.List:
			x.staged.AddScalars(v)
		case s.scored:
			x.staged.AddLists(v, v.Scores)
		default:
			x.staged.AddLists(v, nil)
		}
		// Ids that the output has no room for are not made.
		if need := x.output.Written + uint64(len(x.staged.IDs)); need > x.output.Capacity {
			x.mapReader.leaves[0].StopEarly(program.MoreOutput, need)
			return false, 0, nil
		}
	}
	if p.keys.Count == 0 || x.output.Fixed {
		return true, 0, nil
	}
	ok, err = x.stageRows(&p.columnGroup, row, rows, valuesStart)
	return ok, 0, err
}

// runGraphSink runs a value through the chain of a sink. The result holds until the next chain runs.
func (x *executor) runGraphSink(s *graphSink, row uint64, rows int) (*block.Values, error) {
	v := &x.values
	*v = x.graphValues.values[s.value].View
	x.buffers.Final = block.Destination{}
	switch {
	case s.Tensor == program.ToDense && s.Length.Length == 0:
		x.buffers.Final.Dense = x.output.DenseDestination(uint64(s.Index), row, rows)
	case s.Tensor == program.ToSparse && x.output.Fixed:
		x.buffers.Final = x.output.IDDestination(x.output.ScalarIndex(uint64(s.Index), row), rows)
	}
	lists := &x.graphValues.sinkLists // other sinks and steps read the scores of the value
	lists.NoteLengths(v)
	err := x.runChain(s.chain, v)
	s.LocateAbsentKey(err, row)
	if err == nil && s.scored {
		lists.CutScores(v)
	}
	return v, err
}

// transformGraph runs the decoded rows of text through a graph, as rows row, row+1, ... of the mini-batch. columns are
// those of the graph.
func (x *executor) transformGraph(p *graphPlan, columns []column, row uint64, rows int) error {
	g := &x.graphValues
	if x.output.Fixed || p.keys.Count == 0 {
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
		v := block.Values{Kind: program.Int64, Count: rows, Int64s: (*values)[:rows]}
		if *valid != nil {
			v.Valid = (*valid)[:rows]
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
		return failure.InRows(row, rows, err)
	}
	if !v.List || s.Tensor == program.ToDense {
		if s.Tensor == program.ToSparse && v.Valid != nil {
			x.buffers.OwnValues(v) // storeSparse removes nulls in place
		}
		return x.output.StoreScalars(&s.Place, row, v)
	}
	var weights []float32
	if s.scored {
		weights = v.Scores
	}
	stored, need, err := x.output.StoreLists(uint64(s.Index), row, v, weights)
	if err == nil && stored < rows {
		err = failure.Slice("%d values in an output for %d: a row of text makes at most one a key", need, x.output.Capacity)
	}
	return err
}
