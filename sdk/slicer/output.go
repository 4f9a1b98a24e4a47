package slicer

import (
	"fmt"
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/target"
)

// output is the buffer of the mini-batch in the making, and the content of the buffer.
type output struct {
	columns     *columns
	batch       *miniBatch
	arena       *arena
	ringBuffers int // buffers of a whole ring

	buffer        *Buffer
	valuesWritten uint64 // written so far
	valuesWanted  uint64 // values that the engine asked room for; 0 if it did not
	bufferWritten bool   // something was written to the buffer
	singleBuffer  bool   // memory is short: one output buffer, as small as can be

	// movedFrom is the place where the mini-batch still lies after it got another buffer; nil if it lies in its buffer.
	movedFrom *target.Span
	moves     []target.Move
}

const (
	shortRing   = 3         // buffers of a ring where half the memory does not hold a whole one
	largeMemory = 128 << 20 // bytes of a memory whose quarter is enough for the windows beside a short ring
)

// ringLength returns how many buffers of size bytes the ring is to have: a whole ring where half the memory holds it,
// a short one where three quarters of a large memory do, else one.
func (o *output) ringLength(size uint64) int {
	memory := o.arena.workspace.span.Len
	switch n := o.ringBuffers; {
	case n > 1 && size <= memory/2/uint64(n):
		return n
	case n > shortRing && memory >= largeMemory && size <= memory/4*3/shortRing:
		return shortRing
	}
	return 1
}

// outputSection returns the program's output section.
func (o *output) outputSection() *program.Output { return &o.columns.program.Output }

// beginMiniBatch forgets the previous mini-batch.
func (o *output) beginMiniBatch() {
	o.buffer, o.valuesWritten, o.valuesWanted, o.bufferWritten, o.movedFrom = nil, 0, 0, false, nil
}

// acquireBuffer gets a buffer for a mini-batch. batchRows are the rows of a whole one: a short first or last one does
// not shrink the ring.
func (o *output) acquireBuffer(batchRows uint32) error {
	workspace := o.arena.workspace
	size := o.bufferSizeFor(batchRows, o.guessValues(batchRows))
	switch {
	case o.singleBuffer:
		return o.resizeRing(1, o.leastBufferSize())
	case roundUpToGrain(size) > workspace.bufferSize && !o.makeBufferRing(size):
		o.singleBuffer = true
		return o.resizeRing(1, o.leastBufferSize())
	}
	return o.takeFreeBuffer()
}

// takeFreeBuffer takes a buffer of the ring.
func (o *output) takeFreeBuffer() error {
	if o.buffer = o.arena.workspace.acquireBuffer(); o.buffer == nil {
		return fmt.Errorf("%s: %w: no output buffer is free", o.columns.partition.Name, target.ErrEngine)
	}
	return nil
}

// makeBufferRing makes output buffers of size bytes each, as many as ringLength says or else one. It reports whether
// one fits.
func (o *output) makeBufferRing(size uint64) bool {
	workspace := o.arena.workspace
	o.arena.dropAllChunks(o.columns)
	if n := o.ringLength(size); n > 1 && workspace.makeRingOf(n, size) {
		return true
	}
	return workspace.makeRingOf(1, size)
}

// resizeRing makes the ring n buffers of size bytes each and moves the mini-batch in the making to one of them.
func (o *output) resizeRing(n int, size uint64) error {
	workspace := o.arena.workspace
	if workspace.hasRingOf(n, size) && o.buffer != nil {
		return nil
	}
	if o.buffer != nil {
		if o.bufferWritten && o.movedFrom == nil {
			from := o.buffer.Span
			o.movedFrom = &from
		}
		workspace.Release(o.buffer)
		o.buffer = nil
	}
	if !workspace.hasRingOf(n, size) {
		o.arena.dropAllChunks(o.columns)
		if !workspace.makeRingOf(n, size) {
			return o.memoryError(nil, 0)
		}
	}
	return o.takeFreeBuffer()
}

// shrinkToOneBuffer replaces the ring by one output buffer that holds the mini-batch and no more.
func (o *output) shrinkToOneBuffer() error {
	o.singleBuffer = true
	return o.resizeRing(1, o.leastBufferSize())
}

// mustGrowBuffer reports whether the engine asked for more values than the buffer holds.
func (o *output) mustGrowBuffer() bool {
	return !o.outputSection().Fixed && o.valuesWanted > o.valueCapacity()
}

// growBuffer makes the buffer as large as the engine's request.
func (o *output) growBuffer() error {
	if o.singleBuffer {
		return o.resizeRing(1, o.leastBufferSize())
	}
	size := max(o.leastBufferSize(), o.buffer.Span.Len+o.buffer.Span.Len/2)
	half := o.arena.workspace.span.Len / 2
	switch n := o.ringLength(size); {
	case n > 1:
		if o.ringWouldFit(n, size) {
			return o.resizeRing(n, size)
		}
	case size <= half:
		return o.resizeRing(1, size)
	}
	return o.shrinkToOneBuffer()
}

// ringWouldFit reports whether n buffers of size bytes fit above the result block once the mini-batch's own buffer is
// given back.
func (o *output) ringWouldFit(n int, size uint64) bool {
	workspace := o.arena.workspace
	if workspace.hasRingOf(n, size) {
		return true
	}
	low := workspace.span.End()
	for _, s := range workspace.ring {
		if s.busy && s != o.buffer {
			low = min(low, s.Span.Addr)
		}
	}
	for _, s := range workspace.strays {
		if s != o.buffer {
			low = min(low, s.Span.Addr)
		}
	}
	begin := workspace.result.End()
	return low >= begin && (low-begin)/uint64(n) >= roundUpToGrain(size)
}

// relocationMoves returns the moves that bring the mini-batch to its buffer from where it lies.
func (o *output) relocationMoves() []target.Move {
	from, to := *o.movedFrom, o.buffer.Span
	o.movedFrom = nil
	before, _ := o.outputSection().LayoutIn(o.batch.rows, from.Len)
	after, _ := o.outputSection().LayoutIn(o.batch.rows, to.Len)
	made := o.packedValues()
	n := min(before.Values+made*o.outputSection().IDs.Bytes(), from.Len)
	o.moves = append(o.moves[:0], target.Move{Source: target.FromMemory, From: from.Addr, Len: n, To: to.Addr})
	if o.outputSection().Weights && made > 0 {
		o.moves = append(o.moves, target.Move{
			Source: target.FromMemory, From: from.Addr + before.Weights, Len: 4 * made, To: to.Addr + after.Weights,
		})
	}
	return o.moves
}

// releaseBuffer gives the buffer back.
func (o *output) releaseBuffer() {
	if o.buffer != nil {
		o.arena.workspace.Release(o.buffer)
		o.buffer = nil
	}
}

// bufferSizeFor returns the size of a mini-batch's output.
func (o *output) bufferSizeFor(rows uint32, values uint64) uint64 {
	return max(o.outputSection().Size(rows, values), grain)
}

// leastBufferSize returns the smallest buffer that can hold the mini-batch as far as is known.
func (o *output) leastBufferSize() uint64 {
	return o.bufferSizeFor(o.batch.rows, max(o.packedValues(), o.valuesWanted))
}

// packedValues returns how many values lie in the buffer, one behind the other. With fixed lengths every value has its
// place from the beginning.
func (o *output) packedValues() uint64 {
	if out := o.outputSection(); out.Fixed {
		return uint64(out.Keys) * uint64(o.batch.rows)
	}
	return o.valuesWritten
}

// outputLayout returns where the mini-batch's tensors lie in the buffer, and how many values it holds.
func (o *output) outputLayout() (program.OutputLayout, uint64) {
	return o.outputSection().LayoutIn(o.batch.rows, o.buffer.Span.Len)
}

// valueCapacity returns how many values the buffer holds.
func (o *output) valueCapacity() uint64 {
	_, values := o.outputLayout()
	return values
}

// guessValues bounds or guesses the values of a mini-batch.
func (o *output) guessValues(rows uint32) uint64 {
	cs, out := o.columns, o.outputSection()
	n := uint64(out.Keys) * uint64(rows)
	if out.Fixed || cs.isTextSource() {
		return n
	}
	groups := cs.partition.RowGroups()
	g := min(cs.partition.RowGroupOf(o.batch.firstRow), len(groups)-1)
	for i, leaf := range cs.leaves {
		if graph := cs.program.GraphAt(i); graph != nil {
			n += o.guessGraphValues(graph, i, g, rows)
		}
		if leaf == nil || !leaf.List || cs.program.Columns[i].Part == program.NoPart && !feedsKey(&cs.program.Columns[i]) {
			continue
		}
		if cs.program.Columns[i].Part != program.NoPart {
			n += o.guessMapValues(i, g, rows)
			continue
		}
		mean := o.guessListLength(leaf, g)
		if most, ok := keptElements(&cs.program.Columns[i]); ok {
			mean = min(mean, most)
		}
		n += uint64(rows) * (mean - min(mean, 1))
	}
	return n
}

// guessListLength guesses the mean length of a column's lists in a row group, from above.
func (o *output) guessListLength(leaf *format.Leaf, group int) uint64 {
	p := o.columns.partition
	values, held := uint64(p.File.RowGroups[group].Columns[leaf.Index].NumValues), uint64(max(p.RowGroups()[group].Rows,
		1))
	mean := values/held + 1
	return min(mean+mean/4+1, 1<<31)
}

// guessGraphValues guesses the values, beyond one a key, that the graph whose columns begin at column i makes of a
// mini-batch, and the room that it takes to put them in order.
func (o *output) guessGraphValues(g *program.Graph, i, group int, rows uint32) (n uint64) {
	cs := o.columns
	var means []program.Extent
	for _, v := range program.GraphValues(cs.program.Columns[i:][:cs.program.Parts(i)]) {
		at, mean := i+v.Column, uint64(1)
		switch leaf := cs.leaves[at]; {
		case leaf == nil || !v.Type.List:
		case cs.program.Columns[at].MapLeaf != program.NoPart:
			mean = o.guessEntryLength(at, group)
		default:
			mean = o.guessListLength(leaf, group)
		}
		extent := program.Extent{Elements: mean}
		if v.Type.Kind == program.Bytes && cs.leaves[at] != nil {
			extent.Bytes = mean * o.guessTextBytes(cs.leaves[at], group)
		}
		means = append(means, extent)
	}
	for k := range g.Steps {
		s := &g.Steps[k]
		inputs := make([]program.Extent, len(s.Inputs))
		for j, v := range s.Inputs {
			inputs[j] = means[v]
		}
		most := program.MostCombined(s.Combine, inputs)
		most.Elements = program.MostElements(s.Ops, most.Elements)
		means = append(means, most)
	}
	keys := 0
	for k := range g.Sinks {
		if s := &g.Sinks[k]; s.Sink.To == program.ToSparse {
			keys++
			mean := program.MostElements(s.Sink.Ops, means[s.Value].Elements)
			n += uint64(rows) * (mean - min(mean, 1))
		}
	}
	if keys > 1 {
		n *= 2
	}
	return n
}

const (
	// leastTextBytes is the least mean length of a column's strings that is guessed, because a chunk with a dictionary
	// has fewer bytes than its strings.
	leastTextBytes = 32
	// bytesOfPart is how many bytes of a text a guess counts as one, because an operator that makes parts of texts has
	// their bytes as its bound, and parts are words.
	bytesOfPart = 8
)

// guessTextBytes guesses the bytes of a column's mean string in a row group by which an operator's parts are bounded.
func (o *output) guessTextBytes(leaf *format.Leaf, group int) uint64 {
	c := &o.columns.partition.File.RowGroups[group].Columns[leaf.Index]
	mean := max(c.Uncompressed, 0) / max(c.NumValues, 1)
	return uint64(min(max(mean, leastTextBytes), 1<<31)) / bytesOfPart
}

// guessMapValues guesses the values, beyond one a key, that the map whose values are column i makes of a mini-batch,
// and the room that it takes to put them in order. Only the map's rows show which of its lists are long: the engine
// then asks for more.
func (o *output) guessMapValues(i, group int, rows uint32) uint64 {
	cs := o.columns
	col := &cs.program.Columns[i]
	keys := uint64(0)
	for _, s := range col.Sinks {
		if s.To == program.ToSparse {
			keys++
		}
	}
	if col.Part != program.MapValues || keys == 0 {
		return 0
	}
	mean := uint64(1)
	if col.List {
		mean = o.guessEntryLength(i, group)
		if most, ok := keptElements(col); ok {
			mean = min(mean, max(most, 1))
		}
	}
	if keys > 1 {
		mean *= 2
	}
	return uint64(rows) * keys * (mean - 1)
}

// guessEntryLength guesses the mean length of the lists of a map, whose values are column i, in a row group, from
// above.
func (o *output) guessEntryLength(i, group int) uint64 {
	cs := o.columns
	chunks := cs.partition.File.RowGroups[group].Columns
	entries := uint64(chunks[cs.leaves[i-1].Index].NumValues)
	return 1 + uint64(chunks[cs.leaves[i].Index].NumValues)/max(entries, 1)
}

// feedsKey reports whether a column makes values of a key.
func feedsKey(col *program.Column) bool {
	return slices.ContainsFunc(col.Sinks, func(s program.Sink) bool { return s.To == program.ToSparse })
}

// keptElements returns the length to which the column's lists are cut. ok is false if they are not cut.
func keptElements(col *program.Column) (most uint64, ok bool) {
	for _, s := range col.Sinks {
		if most = program.MostElements(s.Ops, math.MaxUint32); most < math.MaxUint32 {
			return most, true
		}
	}
	return 0, false
}

// memoryError names the memory that would suffice for a chunk that wants the given bytes of the areas; nil means the
// output alone.
func (o *output) memoryError(c *chunk, want uint64) error {
	cs, workspace := o.columns, o.arena.workspace
	e := &MemoryError{
		Partition: cs.partition.Name, RowGroup: -1, Streams: 1,
		Need: workspace.result.Len + roundUpToGrain(o.leastBufferSize()) + want, Have: workspace.span.Len,
	}
	if c != nil {
		e.Page = int64(c.cursor.Ordinal)
		if !cs.isTextSource() {
			e.RowGroup, e.Column = c.group, cs.columnName(c)
		}
	}
	return e
}
