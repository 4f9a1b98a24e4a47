package decoder

import (
	"fmt"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// levelBatch holds the levels of a list, as questions answered: those from pos to end are not used yet.
type levelBatch struct {
	starts   bitmap // a row begins
	listed   bitmap // a value slot: of the others, a null or an empty list has one level
	present  bitmap // a value; if slots can be null
	rowThere bitmap // a list, not a null; if rows can be null
	pos, end int
}

// repWindow holds repetition levels, of which there are 0 and 1: a bit each, of as many as it can hold. They are read once, for the
// rows in a page to be counted and for their decoding.
type repWindow struct {
	words []uint64
	n, at int // levels in it, and of them used
}

// windowLevels is a multiple of levelBatchSize.
const windowLevels = 1 << 17

// fill reads the next levels, of which there are left.
func (w *repWindow) fill(r *runs, left int) error {
	w.n, w.at = min(left, windowLevels), 0
	words := (w.n + 63) / 64
	if cap(w.words) < words {
		w.words = make([]uint64, words)
	}
	w.words = w.words[:words]
	return r.oneBit(w.words, w.n)
}

func (l *levelBatch) reset() { l.pos, l.end = 0, 0 }

// fillLevels reads the next batch; false at the page's end.
func (d *Decoder) fillLevels() (bool, error) {
	l := &d.list
	if l.pos < l.end {
		return true, nil
	}
	if d.ct.MaxRep == 2 {
		return d.fillNested()
	}
	n := min(d.levels, levelBatchSize)
	if n == 0 {
		return false, nil
	}
	words := (n + 63) / 64
	if d.window.at == d.window.n {
		if err := d.window.fill(&d.rep, d.levels); err != nil {
			return false, fmt.Errorf("repetition levels: %w", err)
		}
	}
	for w, x := range d.window.words[d.window.at/64:][:words] {
		l.starts[w] = ^x
	}
	d.window.at += n
	if err := d.listLevels(n); err != nil {
		return false, fmt.Errorf("definition levels: %w", err)
	}
	l.pos, l.end = 0, n
	d.levels -= n
	return true, nil
}

// listLevels reads the definition levels of a batch.
func (d *Decoder) listLevels(n int) error {
	l, ct := &d.list, &d.ct
	questions := [3]question{{uint32(ct.RepDef), &l.listed}}
	asked := 1
	if ct.NullableValues() {
		questions[asked] = question{uint32(ct.MaxDef), &l.present}
		asked++
	}
	if ct.NullableRows() {
		questions[asked] = question{uint32(ct.RepDef - 1), &l.rowThere}
		asked++
	}
	return d.def.ask(n, questions[:asked])
}

// nextList appends n rows, or with n = 0 the values up to the next row's beginning, which belong to the block's last
// row.
func (d *Decoder) nextList(b *Block, n int) error {
	l := &d.list
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
		end := l.starts.nth(n, l.pos, l.end)
		if err := d.wellFormed(end); err != nil {
			return err
		}
		rows, err := d.lengths(b, end)
		if err != nil {
			return err
		}
		if err := d.slots(b, end); err != nil {
			return err
		}
		n -= rows
		l.pos = end
		if end < l.end {
			return nil // the next row begins here
		}
	}
}

// wellFormed checks that the levels up to end nest as lists do: what is no value slot is a whole row.
func (d *Decoder) wellFormed(end int) error {
	l := &d.list
	for w := l.pos >> 6; w<<6 < end; w++ {
		not := rangeOf(w, l.pos, end) &^ l.listed[w]
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
			next |= 1 << (last & 63) // whether a row follows, the next batch tells
		}
		if not&^next != 0 {
			return format.Corrupt("an empty or null list goes on")
		}
	}
	return nil
}

// lengths adds the rows that begin before end, and what goes on of the last one before them. It returns how many begin.
func (d *Decoder) lengths(b *Block, end int) (rows int, err error) {
	l := &d.list
	first := l.starts.nth(0, l.pos, end)
	if goesOn := first - l.pos; goesOn > 0 {
		if b.Lengths[len(b.Lengths)-1] == 0 {
			return 0, format.Corrupt("an empty or null list goes on")
		}
		if err := b.addLength(goesOn); err != nil {
			return 0, err
		}
	}
	if first == end {
		return 0, nil
	}
	rows = l.starts.count(first, end)
	at := len(b.Lengths)
	b.Lengths = extend(b.Lengths, rows+placesSlack)
	places(b.Lengths[at:], &l.starts, first, end)
	b.Lengths = b.Lengths[:at+rows]
	lengths := b.Lengths[at:]
	for i := range lengths[1:] {
		lengths[i] = lengths[i+1] - lengths[i]
	}
	lengths[rows-1] = int32(end) - lengths[rows-1]
	d.emptyRows(b, lengths, first, end)
	return rows, nil
}

// emptyRows tells empty and null lists, which have a level and no slot, from lists of one: among the rows that begin in [first, end).
func (d *Decoder) emptyRows(b *Block, lengths []int32, first, end int) {
	l := &d.list
	var valid []byte
	if d.ct.NullableRows() {
		at := len(b.RowValid)
		b.RowValid = extend(b.RowValid, len(lengths))
		valid = b.RowValid[at:]
		fillBytes(valid, 1)
	}
	row := 0
	for w := first >> 6; w<<6 < end; w++ {
		starts := l.starts[w] & rangeOf(w, first, end)
		for none := starts &^ l.listed[w]; none != 0; none &= none - 1 {
			one := none & -none
			k := row + bits.OnesCount64(starts&(one-1))
			lengths[k] = 0
			if valid != nil && l.rowThere[w]&one == 0 {
				valid[k] = 0
				b.NullRows++
			}
		}
		row += bits.OnesCount64(starts)
	}
}

// slots decodes the value slots up to end.
func (d *Decoder) slots(b *Block, end int) error {
	l := &d.list
	slots := l.listed.count(l.pos, end)
	there := slots
	if err := b.room(slots); err != nil {
		return err
	}
	at := len(b.Valid)
	if d.ct.NullableValues() {
		b.Valid = extend(b.Valid, slots)
		valid := b.Valid[at:]
		fillBytes(valid, 1)
		there -= l.nullSlots(valid, end)
	}
	if err := d.vals.append(b, there); err != nil {
		return err
	}
	if there < slots {
		b.spread(b.Valid[at:], there)
		b.Nulls += slots - there
	}
	return nil
}

// nullSlots sets valid to 0 for the slots up to end that are null, and returns how many.
func (l *levelBatch) nullSlots(valid []byte, end int) int {
	slot, nulls := 0, 0
	for w := l.pos >> 6; w<<6 < end; w++ {
		slots := l.listed[w] & rangeOf(w, l.pos, end)
		for none := slots &^ l.present[w]; none != 0; none &= none - 1 {
			valid[slot+bits.OnesCount64(slots&(none&-none-1))] = 0
			nulls++
		}
		slot += bits.OnesCount64(slots)
	}
	return nulls
}

// skipList moves past the rest of the row before the page and n rows.
func (d *Decoder) skipList(n int) error {
	l := &d.list
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
		end := l.starts.nth(n, l.pos, l.end)
		n -= l.starts.count(l.pos, end)
		present := &l.listed
		if d.ct.NullableValues() {
			present = &l.present
		}
		there := present.count(l.pos, end)
		l.pos = end
		if err := d.vals.skip(there); err != nil {
			return err
		}
		if end < l.end {
			return nil
		}
	}
}
