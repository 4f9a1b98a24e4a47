package slicer

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/target"
)

// output is the slot of the mini-batch in the making, and the content of the slot.
type output struct {
	columns   *columns
	batch     *miniBatch
	arena     *arena
	ringSlots int // slots of a ring where half the memory holds them

	slot          *Slot
	valuesWritten uint64 // written so far
	valuesWanted  uint64 // values that the engine asked room for; 0 if it did not
	slotWritten   bool   // something was written to the slot
	singleSlot    bool   // memory is short: one output slot, as small as can be

	// movedFrom is where the mini-batch still lies that was given another slot; nil where it lies in its slot.
	movedFrom *target.Span
	moves     []target.Move
}

// outputSection returns the program's output section.
func (o *output) outputSection() *program.Output { return &o.columns.program.Output }

// beginMiniBatch forgets the mini-batch before.
func (o *output) beginMiniBatch() {
	o.slot, o.valuesWritten, o.valuesWanted, o.slotWritten, o.movedFrom = nil, 0, 0, false, nil
}

// acquireSlot gets a slot for a mini-batch. batchRows are the rows of a whole one: a short last one does not shrink the
// ring.
func (o *output) acquireSlot(batchRows uint32) error {
	workspace := o.arena.workspace
	size := o.slotSizeFor(batchRows, o.guessValues(batchRows))
	switch {
	case o.singleSlot:
		return o.resizeRing(1, o.leastSlotSize())
	case roundUpToGrain(size) > workspace.slotSize && !o.makeSlotRing(size):
		o.singleSlot = true
		return o.resizeRing(1, o.leastSlotSize())
	}
	return o.takeFreeSlot()
}

// takeFreeSlot takes a slot of the ring.
func (o *output) takeFreeSlot() error {
	if o.slot = o.arena.workspace.acquireSlot(); o.slot == nil {
		return fmt.Errorf("%s: %w: no output slot is free", o.columns.partition.Name, target.ErrEngine)
	}
	return nil
}

// makeSlotRing makes output slots of size bytes each: a whole ring where half the memory holds it, else one. It reports
// whether one fits.
func (o *output) makeSlotRing(size uint64) bool {
	workspace := o.arena.workspace
	o.arena.dropAllChunks(o.columns)
	if o.ringSlots > 1 && size <= workspace.span.Len/2/uint64(o.ringSlots) && workspace.makeRingOf(o.ringSlots, size) {
		return true
	}
	return workspace.makeRingOf(1, size)
}

// resizeRing makes the ring n slots of size bytes each and moves the mini-batch in the making to one of them.
func (o *output) resizeRing(n int, size uint64) error {
	workspace := o.arena.workspace
	if workspace.hasRingOf(n, size) && o.slot != nil {
		return nil
	}
	if o.slot != nil {
		if o.slotWritten && o.movedFrom == nil {
			from := o.slot.Span
			o.movedFrom = &from
		}
		workspace.Release(o.slot)
		o.slot = nil
	}
	if !workspace.hasRingOf(n, size) {
		o.arena.dropAllChunks(o.columns)
		if !workspace.makeRingOf(n, size) {
			return o.memoryError(nil, 0)
		}
	}
	return o.takeFreeSlot()
}

// shrinkToOneSlot makes do with one output slot that holds the mini-batch and no more.
func (o *output) shrinkToOneSlot() error {
	o.singleSlot = true
	return o.resizeRing(1, o.leastSlotSize())
}

// mustGrowSlot reports whether the engine asked for more values than the slot holds.
func (o *output) mustGrowSlot() bool {
	return !o.outputSection().Fixed && o.valuesWanted > o.valueCapacity()
}

// growSlot makes the slot as large as the engine's request.
func (o *output) growSlot() error {
	if o.singleSlot {
		return o.resizeRing(1, o.leastSlotSize())
	}
	size := max(o.leastSlotSize(), o.slot.Span.Len+o.slot.Span.Len/2)
	half := o.arena.workspace.span.Len / 2
	switch n := o.ringSlots; {
	case n > 1 && size <= half/uint64(n):
		if o.ringWouldFit(n, size) {
			return o.resizeRing(n, size)
		}
	case size <= half:
		return o.resizeRing(1, size)
	}
	return o.shrinkToOneSlot()
}

// ringWouldFit reports whether n slots of size bytes fit above the result block once the mini-batch's own slot is given
// back.
func (o *output) ringWouldFit(n int, size uint64) bool {
	workspace := o.arena.workspace
	if workspace.hasRingOf(n, size) {
		return true
	}
	low := workspace.span.End()
	for _, s := range workspace.ring {
		if s.busy && s != o.slot {
			low = min(low, s.Span.Addr)
		}
	}
	for _, s := range workspace.strays {
		if s != o.slot {
			low = min(low, s.Span.Addr)
		}
	}
	begin := workspace.result.End()
	return low >= begin && (low-begin)/uint64(n) >= roundUpToGrain(size)
}

// relocationMoves returns the moves that bring the mini-batch to its slot from where it lies.
func (o *output) relocationMoves() []target.Move {
	from, to := *o.movedFrom, o.slot.Span
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

// releaseSlot gives the slot back.
func (o *output) releaseSlot() {
	if o.slot != nil {
		o.arena.workspace.Release(o.slot)
		o.slot = nil
	}
}

// slotSizeFor returns the size of a mini-batch's output.
func (o *output) slotSizeFor(rows uint32, values uint64) uint64 {
	return max(o.outputSection().Size(rows, values), grain)
}

// leastSlotSize returns the smallest slot that can hold the mini-batch as far as is known.
func (o *output) leastSlotSize() uint64 {
	return o.slotSizeFor(o.batch.rows, max(o.packedValues(), o.valuesWanted))
}

// packedValues returns how many values lie in the slot, one behind the other. With fixed lengths every value has its
// place from the beginning.
func (o *output) packedValues() uint64 {
	if out := o.outputSection(); out.Fixed {
		return uint64(out.Keys) * uint64(o.batch.rows)
	}
	return o.valuesWritten
}

// outputLayout returns where the mini-batch's tensors lie in the slot, and how many values it holds.
func (o *output) outputLayout() (program.OutputLayout, uint64) {
	return o.outputSection().LayoutIn(o.batch.rows, o.slot.Span.Len)
}

// valueCapacity returns how many values the slot holds.
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
		if leaf == nil || !leaf.List {
			continue
		}
		if cs.program.Columns[i].Part != program.NoPart {
			n += o.guessMapValues(i, g, rows)
			continue
		}
		values, held := uint64(cs.partition.File.RowGroups[g].Columns[leaf.Index].NumValues), uint64(max(groups[g].Rows, 1))
		mean := values/held + 1
		mean += mean/4 + 1
		if most, ok := keptElements(&cs.program.Columns[i]); ok {
			mean = min(mean, most)
		}
		n += uint64(rows) * (mean - min(mean, 1))
	}
	return n
}

// guessMapValues guesses the values, beyond one a key, that the map whose values are column i makes of a mini-batch,
// and the room that it takes to put them in order. Only the map's rows say which of its lists are long: the engine
// asks for more.
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
		chunks := cs.partition.File.RowGroups[group].Columns
		entries := uint64(chunks[cs.leaves[i-1].Index].NumValues)
		mean += uint64(chunks[cs.leaves[i].Index].NumValues) / max(entries, 1)
		if most, ok := keptElements(col); ok {
			mean = min(mean, max(most, 1))
		}
	}
	if keys > 1 {
		mean *= 2
	}
	return uint64(rows) * keys * (mean - 1)
}

// keptElements returns how many elements the column's lists are cut to. It is not ok if they are not cut.
func keptElements(col *program.Column) (most uint64, ok bool) {
	for _, s := range col.Sinks {
		for _, op := range s.Ops {
			if f, is := op.(program.FirstX); is {
				return uint64(max(f.N, 0)), true
			}
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
		Need: workspace.result.Len + roundUpToGrain(o.leastSlotSize()) + want, Have: workspace.span.Len,
	}
	if c != nil {
		e.Page = int64(c.cursor.Ordinal)
		if !cs.isTextSource() {
			e.RowGroup, e.Column = c.group, cs.columnName(c)
		}
	}
	return e
}
