package slicer

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/target"
)

// output is the slot of the mini-batch in the making, and what lies in it.
type output struct {
	columns   *columns
	batch     *miniBatch
	arena     *arena
	ringSlots int // slots of a ring where half the memory holds them

	slot       *Slot
	values     uint64 // written so far
	wanted     uint64 // values that the engine asked room for; 0 if it did not
	dirty      bool   // something was written to the slot
	singleSlot bool   // memory is short: one output slot, as small as can be

	// movedFrom is where the mini-batch still lies that was given another slot; nil where it lies in its slot.
	movedFrom *target.Span
	moves     []target.Move
}

// layout returns the program's output section.
func (o *output) layout() *program.Output { return &o.columns.program.Output }

// begin forgets the mini-batch before.
func (o *output) begin() {
	o.slot, o.values, o.wanted, o.dirty, o.movedFrom = nil, 0, 0, false, nil
}

// acquireSlot gets a slot for a mini-batch. batchRows are the rows of a whole one: a short last one does not shrink the
// ring.
func (o *output) acquireSlot(batchRows uint32) error {
	region := o.arena.region
	size := o.sizeFor(batchRows, o.guessValues(batchRows))
	switch {
	case o.singleSlot:
		return o.resize(1, o.leastSize())
	case roundUp(size) > region.slotSize && !o.makeRing(size):
		o.singleSlot = true
		return o.resize(1, o.leastSize())
	}
	return o.takeSlot()
}

// takeSlot takes a slot of the ring.
func (o *output) takeSlot() error {
	if o.slot = o.arena.region.acquire(); o.slot == nil {
		return fmt.Errorf("%s: %w: no output slot is free", o.columns.partition.Name, target.ErrEngine)
	}
	return nil
}

// makeRing makes output slots of size bytes each: a whole ring where half the memory holds it, else one. It reports
// whether one fits.
func (o *output) makeRing(size uint64) bool {
	region := o.arena.region
	o.arena.flush(o.columns)
	if o.ringSlots > 1 && size <= region.span.Len/2/uint64(o.ringSlots) && region.makeRing(o.ringSlots, size) {
		return true
	}
	return region.makeRing(1, size)
}

// resize makes the ring n slots of size bytes each and moves the mini-batch in the making to one of them.
func (o *output) resize(n int, size uint64) error {
	region := o.arena.region
	if region.hasRing(n, size) && o.slot != nil {
		return nil
	}
	if o.slot != nil {
		if o.dirty && o.movedFrom == nil {
			from := o.slot.Span
			o.movedFrom = &from
		}
		region.Release(o.slot)
		o.slot = nil
	}
	if !region.hasRing(n, size) {
		o.arena.flush(o.columns)
		if !region.makeRing(n, size) {
			return o.tooSmall(nil, 0)
		}
	}
	return o.takeSlot()
}

// shrinkToOneSlot makes do with one output slot that holds the mini-batch and no more.
func (o *output) shrinkToOneSlot() error {
	o.singleSlot = true
	return o.resize(1, o.leastSize())
}

// mustGrow reports whether the engine asked for more values than the slot holds.
func (o *output) mustGrow() bool { return !o.layout().Fixed && o.wanted > o.valueRoom() }

// grow makes the slot hold what the engine asked for.
func (o *output) grow() error {
	if o.singleSlot {
		return o.resize(1, o.leastSize())
	}
	size := max(o.leastSize(), o.slot.Span.Len+o.slot.Span.Len/2)
	half := o.arena.region.span.Len / 2
	switch n := o.ringSlots; {
	case n > 1 && size <= half/uint64(n):
		if o.ringFits(n, size) {
			return o.resize(n, size)
		}
	case size <= half:
		return o.resize(1, size)
	}
	return o.shrinkToOneSlot()
}

// ringFits reports whether n slots of size bytes fit above the result block once the mini-batch's own slot is given
// back.
func (o *output) ringFits(n int, size uint64) bool {
	region := o.arena.region
	if region.hasRing(n, size) {
		return true
	}
	low := region.span.End()
	for _, s := range region.ring {
		if s.busy && s != o.slot {
			low = min(low, s.Span.Addr)
		}
	}
	for _, s := range region.strays {
		if s != o.slot {
			low = min(low, s.Span.Addr)
		}
	}
	begin := region.result.End()
	return low >= begin && (low-begin)/uint64(n) >= roundUp(size)
}

// relocation returns the moves that bring the mini-batch to its slot from where it lies.
func (o *output) relocation() []target.Move {
	from, to := *o.movedFrom, o.slot.Span
	o.movedFrom = nil
	before, _ := o.layout().PlaceIn(o.batch.rows, from.Len)
	after, _ := o.layout().PlaceIn(o.batch.rows, to.Len)
	made := o.made()
	n := min(before.Values+made*o.layout().IDs.Bytes(), from.Len)
	o.moves = append(o.moves[:0], target.Move{Source: target.FromMemory, From: from.Addr, Len: n, To: to.Addr})
	if o.layout().Weights && made > 0 {
		o.moves = append(o.moves, target.Move{
			Source: target.FromMemory, From: from.Addr + before.Weights, Len: 4 * made, To: to.Addr + after.Weights,
		})
	}
	return o.moves
}

// abandon gives the slot back.
func (o *output) abandon() {
	if o.slot != nil {
		o.arena.region.Release(o.slot)
		o.slot = nil
	}
}

// sizeFor returns the size of a mini-batch's output.
func (o *output) sizeFor(rows uint32, values uint64) uint64 {
	return max(o.layout().Size(rows, values), grain)
}

// leastSize returns the smallest slot that can hold the mini-batch as far as is known.
func (o *output) leastSize() uint64 { return o.sizeFor(o.batch.rows, max(o.made(), o.wanted)) }

// made returns how many values lie in the slot, one behind the other. With fixed lengths every value has its place from
// the beginning.
func (o *output) made() uint64 {
	if out := o.layout(); out.Fixed {
		return uint64(out.Keys) * uint64(o.batch.rows)
	}
	return o.values
}

// placement returns where the mini-batch's tensors lie in the slot, and how many values it holds.
func (o *output) placement() (program.Placement, uint64) {
	return o.layout().PlaceIn(o.batch.rows, o.slot.Span.Len)
}

// valueRoom returns how many values the slot holds.
func (o *output) valueRoom() uint64 {
	_, values := o.placement()
	return values
}

// guessValues bounds or guesses the values of a mini-batch.
func (o *output) guessValues(rows uint32) uint64 {
	cs, out := o.columns, o.layout()
	n := uint64(out.Keys) * uint64(rows)
	if out.Fixed || cs.isText() {
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
		if most, ok := firstElements(&cs.program.Columns[i]); ok {
			mean = min(mean, most)
		}
		n += uint64(rows) * (mean - min(mean, 1))
	}
	return n
}

// guessMapValues guesses the values, beyond one a key, that the map whose values are column i makes of a mini-batch,
// and the room that it takes to put them in order. Which of a map's lists are long, only its rows tell: the engine asks
// for more.
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
		if most, ok := firstElements(col); ok {
			mean = min(mean, max(most, 1))
		}
	}
	if keys > 1 {
		mean *= 2
	}
	return uint64(rows) * keys * (mean - 1)
}

// firstElements returns how many elements the column's lists are cut to. It is not ok if they are not cut.
func firstElements(col *program.Column) (most uint64, ok bool) {
	for _, s := range col.Sinks {
		for _, op := range s.Ops {
			if f, is := op.(program.FirstX); is {
				return uint64(max(f.N, 0)), true
			}
		}
	}
	return 0, false
}

// tooSmall says how much memory would do for a chunk that wants so many bytes of the areas; nil means the output alone.
func (o *output) tooSmall(c *chunk, want uint64) error {
	cs, region := o.columns, o.arena.region
	e := &MemoryError{
		Partition: cs.partition.Name, RowGroup: -1, Streams: 1,
		Need: region.result.Len + roundUp(o.leastSize()) + want, Have: region.span.Len,
	}
	if c != nil {
		e.Page = int64(c.cursor.Ordinal)
		if !cs.isText() {
			e.RowGroup, e.Column = c.group, cs.nameOf(c)
		}
	}
	return e
}
