package decoder

import (
	"fmt"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// levelBatch holds the levels of a list as bitmaps. Levels from pos to end are not used yet.
type levelBatch struct {
	starts      bitmap // a row begins
	elements    bitmap // the level is of an element; a null or an empty list has one level without
	present     bitmap // the element is not null, if elements can be null
	presentRows bitmap // a list that is not null, if rows can be null
	pos, end    int
}

// repetitionWindow holds repetition levels of lists, of which there are 0 and 1, with a bit each. They are read once,
// for counting the rows of a page and for decoding them.
type repetitionWindow struct {
	words       []uint64
	count, used int // levels read, and how many of them are used
}

// windowLevels is a multiple of levelBatchSize.
const windowLevels = 1 << 17

// fill reads the next levels, of which there are left.
func (w *repetitionWindow) fill(r *runs, left int) error {
	w.count, w.used = min(left, windowLevels), 0
	words := (w.count + 63) / 64
	if cap(w.words) < words {
		w.words = make([]uint64, words)
	}
	w.words = w.words[:words]
	return r.readBits(w.words, w.count)
}

func (l *levelBatch) reset() { l.pos, l.end = 0, 0 }

// fillLevels reads the next batch of levels if the last one is used up. It returns false at the page's end.
func (d *Decoder) fillLevels() (bool, error) {
	l := &d.batch
	if l.pos < l.end {
		return true, nil
	}
	n := min(d.levels, levelBatchSize)
	if n == 0 {
		return false, nil
	}
	fill := d.readListLevels
	if d.ct.MaxRep > 1 {
		fill = d.readMapLevels
	}
	if err := fill(n); err != nil {
		return false, err
	}
	l.pos, l.end = 0, n
	d.levels -= n
	return true, nil
}

// readListLevels reads a batch of n levels of lists.
func (d *Decoder) readListLevels(n int) error {
	l := &d.batch
	words := (n + 63) / 64
	if d.repetitionWindow.used == d.repetitionWindow.count {
		if err := d.repetitionWindow.fill(&d.repetition, d.levels); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
	}
	for w, x := range d.repetitionWindow.words[d.repetitionWindow.used/64:][:words] {
		l.starts[w] = ^x
	}
	d.repetitionWindow.used += n
	if err := d.readDefinitions(n); err != nil {
		return fmt.Errorf("definition levels: %w", err)
	}
	return nil
}

// readDefinitions reads the definition levels of a batch of lists.
func (d *Decoder) readDefinitions(n int) error {
	l, ct := &d.batch, &d.ct
	questions := [3]levelQuestion{{uint32(ct.RepDef), &l.elements}}
	asked := 1
	if ct.NullableValues() {
		questions[asked] = levelQuestion{uint32(ct.MaxDef), &l.present}
		asked++
	}
	if ct.NullableRows() {
		questions[asked] = levelQuestion{uint32(ct.RepDef - 1), &l.presentRows}
		asked++
	}
	return d.definition.answer(n, questions[:asked])
}

// walkRows passes over the levels of n rows, or with n = 0 over those of the row that continues from the page before.
// It calls take for the levels up to end, batch after batch; take returns how many rows begin in them.
func (d *Decoder) walkRows(n int, take func(end int) (rows int, err error)) error {
	l := &d.batch
	for {
		more, err := d.fillLevels()
		if err != nil {
			return err
		}
		if !more {
			if n > 0 {
				return format.Corrupt("page ends before its rows do")
			}
			return nil
		}
		end := l.starts.nthSet(n, l.pos, l.end)
		rows, err := take(end)
		if err != nil {
			return err
		}
		n -= rows
		l.pos = end
		if end < l.end {
			return nil // the next row begins here
		}
	}
}

// nextLists appends n rows of lists, of lists in a map or of lists in lists. With n = 0 it appends the values up to the
// next row's beginning, which belong to the block's last row.
func (d *Decoder) nextLists(b *Block, n int) error {
	lengths := d.appendLists
	switch {
	case d.ct.Flattened:
		lengths = d.appendFlattened
	case d.ct.MaxRep > 1:
		lengths = d.appendMaps
	}
	return d.walkRows(n, func(end int) (int, error) {
		rows, err := lengths(b, end)
		if err != nil {
			return 0, err
		}
		return rows, d.appendElements(b, end)
	})
}

// checkListNesting checks that the levels up to end nest as lists do: a level without an element is a whole row.
func (d *Decoder) checkListNesting(end int) error {
	l := &d.batch
	for w := l.pos >> 6; w<<6 < end; w++ {
		not := rangeMask(w, l.pos, end) &^ l.elements[w]
		if not == 0 {
			continue
		}
		if not&^l.starts[w] != 0 {
			return format.Corrupt("an empty or null list inside a list")
		}
		next := l.starts[w] >> 1
		if w+1 < levelWords {
			next |= l.starts[w+1] << 63
		}
		if last := l.end - 1; last>>6 == w {
			next |= 1 << (last & 63) // the next batch shows whether a row follows
		}
		if not&^next != 0 {
			return format.Corrupt("an empty or null list goes on")
		}
	}
	return nil
}

// appendLists adds the rows that begin before end, and the continuation of the last row before them. It returns how
// many begin.
func (d *Decoder) appendLists(b *Block, end int) (rows int, err error) {
	if err := d.checkListNesting(end); err != nil {
		return 0, err
	}
	l := &d.batch
	first := l.starts.nthSet(0, l.pos, end)
	if goesOn := first - l.pos; goesOn > 0 {
		if b.Lengths[len(b.Lengths)-1] == 0 {
			return 0, format.Corrupt("an empty or null list goes on")
		}
		if err := b.extendLastRow(goesOn); err != nil {
			return 0, err
		}
	}
	if first == end {
		return 0, nil
	}
	rows = l.starts.countRange(first, end)
	at := len(b.Lengths)
	b.Lengths = growSlice(b.Lengths, rows+positionSlack)
	setPositions(b.Lengths[at:], &l.starts, first, end)
	b.Lengths = b.Lengths[:at+rows]
	lengths := b.Lengths[at:]
	for i := range lengths[1:] {
		lengths[i] = lengths[i+1] - lengths[i]
	}
	lengths[rows-1] = int32(end) - lengths[rows-1]
	d.markEmptyRows(b, lengths, first, end)
	return rows, nil
}

// markEmptyRows distinguishes empty and null lists, which have a level and no element, from lists of one element, among
// the rows that begin in [first, end).
func (d *Decoder) markEmptyRows(b *Block, lengths []int32, first, end int) {
	l := &d.batch
	var valid []byte
	if d.ct.NullableRows() {
		at := len(b.RowValid)
		b.RowValid = growSlice(b.RowValid, len(lengths))
		valid = b.RowValid[at:]
		fillBytes(valid, 1)
	}
	row := 0
	for w := first >> 6; w<<6 < end; w++ {
		starts := l.starts[w] & rangeMask(w, first, end)
		for none := starts &^ l.elements[w]; none != 0; none &= none - 1 {
			one := none & -none
			k := row + bits.OnesCount64(starts&(one-1))
			lengths[k] = 0
			if valid != nil && l.presentRows[w]&one == 0 {
				valid[k] = 0
				b.NullRows++
			}
		}
		row += bits.OnesCount64(starts)
	}
}

// appendElements decodes the elements up to end.
func (d *Decoder) appendElements(b *Block, end int) error {
	l := &d.batch
	elements := l.elements.countRange(l.pos, end)
	there := elements
	if err := b.checkRoom(elements); err != nil {
		return err
	}
	at := len(b.Valid)
	if d.ct.NullableValues() {
		b.Valid = growSlice(b.Valid, elements)
		valid := b.Valid[at:]
		fillBytes(valid, 1)
		there -= l.markNullElements(valid, end)
	}
	if err := d.values.appendValues(b, there); err != nil {
		return err
	}
	if there < elements {
		b.spreadValues(b.Valid[at:], there)
		b.Nulls += elements - there
	}
	return nil
}

// markNullElements sets valid to 0 for the elements up to end that are null, and returns how many.
func (l *levelBatch) markNullElements(valid []byte, end int) int {
	element, nulls := 0, 0
	for w := l.pos >> 6; w<<6 < end; w++ {
		elements := l.elements[w] & rangeMask(w, l.pos, end)
		for none := elements &^ l.present[w]; none != 0; none &= none - 1 {
			valid[element+bits.OnesCount64(elements&(none&-none-1))] = 0
			nulls++
		}
		element += bits.OnesCount64(elements)
	}
	return nulls
}

// skipLists moves past the rest of the row before the page and n rows.
func (d *Decoder) skipLists(n int) error {
	l := &d.batch
	present := &l.elements
	if d.ct.NullableValues() {
		present = &l.present
	}
	return d.walkRows(n, func(end int) (int, error) {
		return l.starts.countRange(l.pos, end), d.values.skip(present.countRange(l.pos, end))
	})
}
