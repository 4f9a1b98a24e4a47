package parquet

import (
	"fmt"
	"math/bits"
)

// levelBatch holds the levels of a list, as questions answered: those from pos to end are not used yet.
type levelBatch struct {
	def      planes
	starts   bitmap // a row begins
	listed   bitmap // a value slot: of the others, a null or an empty list has one level
	present  bitmap // a value
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
	if err := d.def.planes(&l.def, n); err != nil {
		return false, fmt.Errorf("definition levels: %w", err)
	}
	l.def.atLeast(&l.listed, uint32(d.ct.RepDef), words)
	if d.ct.NullableValues() {
		l.def.atLeast(&l.present, uint32(d.ct.MaxDef), words)
	} else {
		l.present = l.listed
	}
	if d.ct.NullableRows() {
		l.def.atLeast(&l.rowThere, uint32(d.ct.RepDef-1), words)
	}
	l.pos, l.end = 0, n
	d.levels -= n
	return true, nil
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
				return corrupt("page ends before its rows do")
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
			return corrupt("an empty or null list inside a list")
		}
		next := l.starts[w] >> 1
		if w+1 < levelWords {
			next |= l.starts[w+1] << 63
		}
		if last := l.end - 1; last>>6 == w {
			next |= 1 << (last & 63) // whether a row follows, the next batch tells
		}
		if not&^next != 0 {
			return corrupt("an empty or null list goes on")
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
			return 0, corrupt("an empty or null list goes on")
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
	b.Lengths = extend(b.Lengths, rows)
	lengths := b.Lengths[at:]
	k, last := 0, first
	for w := (first + 1) >> 6; w<<6 < end; w++ {
		for x := l.starts[w] & rangeOf(w, first+1, end); x != 0; x &= x - 1 {
			s := w<<6 + bits.TrailingZeros64(x)
			lengths[k] = int32(s - last)
			k, last = k+1, s
		}
	}
	lengths[k] = int32(end - last)
	l.listed.without(&l.starts, first, end, func(rank int) { lengths[rank] = 0 })
	if d.ct.NullableRows() {
		at := len(b.RowValid)
		b.RowValid = extend(b.RowValid, rows)
		valid := b.RowValid[at:]
		fillBytes(valid, 1)
		l.rowThere.without(&l.starts, first, end, func(rank int) {
			valid[rank] = 0
			b.NullRows++
		})
	}
	return rows, nil
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
		l.present.without(&l.listed, l.pos, end, func(rank int) {
			valid[rank] = 0
			there--
		})
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
				return corrupt("page ends before its rows do")
			}
			return nil
		}
		end := l.starts.nth(n, l.pos, l.end)
		n -= l.starts.count(l.pos, end)
		there := l.present.count(l.pos, end)
		l.pos = end
		if err := d.vals.skip(there); err != nil {
			return err
		}
		if end < l.end {
			return nil
		}
	}
}
