package decoder

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// nestedLevels are a batch's levels of lists in a map as questions answered, beside those of levelBatch: there a row begins at
// starts, and listed are the value slots.
type nestedLevels struct {
	lists  bitmap // a list begins, or a row without one
	there  bitmap // an entry of a map: of the others, a null or an empty map has one level
	window nestedWindow
}

// nestedWindow holds repetition levels, of which there are 0, 1 and 2: for each whether it goes on with its row, and whether with
// its list. They are read once, as repWindow's are.
type nestedWindow struct {
	inRow, inList []uint64
	n, at         int // levels in it, and of them used
	answers       [2]bitmap
}

// fill reads the next levels, of which there are left.
func (w *nestedWindow) fill(r *runs, left int) error {
	w.n, w.at = min(left, windowLevels), 0
	words := (w.n + 63) / 64
	if cap(w.inRow) < words {
		w.inRow, w.inList = make([]uint64, words), make([]uint64, words)
	}
	w.inRow, w.inList = w.inRow[:words], w.inList[:words]
	for at := 0; at < w.n; at += levelBatchSize {
		if err := w.ask(r, min(w.n-at, levelBatchSize)); err != nil {
			return err
		}
		copy(w.inRow[at/64:], w.answers[0][:])
		copy(w.inList[at/64:], w.answers[1][:])
	}
	return nil
}

func (w *nestedWindow) ask(r *runs, n int) error {
	return r.ask(n, []question{{1, &w.answers[0]}, {2, &w.answers[1]}})
}

// countNested counts the rows that begin in a page of lists in a map.
func (d *Decoder) countNested(n int) error {
	w := &d.nested.window
	err := w.fill(&d.rep, n)
	rest := d.rep // a copy: decoding goes on behind the window
	inRow := 0
	for _, x := range w.inRow {
		inRow += bits.OnesCount64(x)
	}
	for left := n - w.n; left > 0 && err == nil; left -= levelBatchSize {
		k := min(left, levelBatchSize)
		if err = w.ask(&rest, k); err == nil {
			inRow += w.answers[0].count(0, k)
		}
	}
	if err != nil {
		return fmt.Errorf("repetition levels: %w", err)
	}
	d.rows, d.inRow = n-inRow, w.inRow[0]&1 == 1
	return nil
}

// fillNested is fillLevels for lists in a map.
func (d *Decoder) fillNested() (bool, error) {
	l, e := &d.list, &d.nested
	n := min(d.levels, levelBatchSize)
	if n == 0 {
		return false, nil
	}
	words := (n + 63) / 64
	w := &e.window
	if w.at == w.n {
		if err := w.fill(&d.rep, d.levels); err != nil {
			return false, fmt.Errorf("repetition levels: %w", err)
		}
	}
	for i := range words {
		l.starts[i], e.lists[i] = ^w.inRow[w.at/64+i], ^w.inList[w.at/64+i]
	}
	w.at += n
	questions := [3]question{{uint32(d.ct.EntryDef), &e.there}, {uint32(d.ct.RepDef), &l.listed}, {uint32(d.ct.MaxDef), &l.present}}
	asked := 2
	if d.ct.NullableValues() {
		asked = 3
	}
	if err := d.def.ask(n, questions[:asked]); err != nil {
		return false, fmt.Errorf("definition levels: %w", err)
	}
	l.pos, l.end = 0, n
	d.levels -= n
	return true, nil
}

// nextNested appends n rows of lists in a map, or with n = 0 what belongs to the block's last row.
func (d *Decoder) nextNested(b *Block, n int) error {
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
		if err := d.wellNested(end); err != nil {
			return err
		}
		rows, err := d.entries(b, end)
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

// wellNested checks that the levels up to end nest as lists in maps do: what is no entry is a whole row, what is an entry and no
// value slot is a whole list.
func (d *Decoder) wellNested(end int) error {
	l, e := &d.list, &d.nested
	for w := l.pos >> 6; w<<6 < end; w++ {
		m := rangeOf(w, l.pos, end)
		noSlot, noEntry := m&^l.listed[w], m&^e.there[w]
		if noSlot == 0 && noEntry == 0 {
			continue
		}
		if noSlot&^e.lists[w] != 0 || noEntry&^l.starts[w] != 0 {
			return format.Corrupt("an empty or null list inside a list")
		}
		list, row := e.lists[w]>>1, l.starts[w]>>1
		if w+1 < levelWords {
			list, row = list|e.lists[w+1]<<63, row|l.starts[w+1]<<63
		}
		if last := l.end - 1; last>>6 == w {
			list, row = list|1<<(last&63), row|1<<(last&63) // what follows, the next batch tells
		}
		if noSlot&^list != 0 || noEntry&^row != 0 {
			return format.Corrupt("an empty or null list goes on")
		}
	}
	return nil
}

// entries adds the lists and rows that begin before end, and what goes on of the last ones before them. It returns how many
// rows begin.
func (d *Decoder) entries(b *Block, end int) (rows int, err error) {
	l, e := &d.list, &d.nested
	list, row := e.lists.nth(0, l.pos, end), l.starts.nth(0, l.pos, end)
	if list < row || l.pos < list {
		more := e.lists.count(list, row) // entries that go on with the last row
		if len(b.Inner) == 0 || len(b.Lengths) == 0 || b.Lengths[len(b.Lengths)-1] == 0 {
			return 0, format.Corrupt("an empty or null map goes on")
		}
		if goesOn := list - l.pos; goesOn > 0 {
			last := &b.Inner[len(b.Inner)-1]
			if *last == 0 {
				return 0, format.Corrupt("an empty or null list goes on")
			}
			if goesOn > math.MaxInt32-int(*last) {
				return 0, fmt.Errorf("%w: a list of more than %d values", format.ErrLimit, math.MaxInt32)
			}
			*last += int32(goesOn)
		}
		if err := b.addLength(more); err != nil {
			return 0, err
		}
	}
	if list == end {
		return 0, nil
	}
	if err := d.innerLengths(b, list, end); err != nil || row == end {
		return 0, err
	}
	return d.outerLengths(b, row, end), nil
}

// innerLengths adds the lengths of the lists that begin in [first, end), of which there is one, or a row without any.
func (d *Decoder) innerLengths(b *Block, first, end int) error {
	l, e := &d.list, &d.nested
	n, none := e.lists.count(first, end), 0
	for w := first >> 6; w<<6 < end; w++ {
		none += bits.OnesCount64(e.lists[w] & rangeOf(w, first, end) &^ e.there[w])
	}
	if n-none > b.maxValues()-len(b.Inner) {
		return fmt.Errorf("%w: more than %d lists", format.ErrLimit, b.maxValues())
	}
	at := len(b.Inner)
	b.Inner = extend(b.Inner, n+placesSlack)
	places(b.Inner[at:], &e.lists, first, end)
	b.Inner = b.Inner[:at+n]
	lengths := b.Inner[at:]
	for i := range lengths[1:] {
		lengths[i] = lengths[i+1] - lengths[i]
	}
	lengths[n-1] = int32(end) - lengths[n-1]
	k := 0
	for w := first >> 6; w<<6 < end; w++ {
		lists := e.lists[w] & rangeOf(w, first, end)
		for x := lists &^ l.listed[w]; x != 0; x &= x - 1 {
			one := x & -x
			length := int32(0)
			if e.there[w]&one == 0 {
				length = -1 // no list at all
			}
			lengths[k+bits.OnesCount64(lists&(one-1))] = length
		}
		k += bits.OnesCount64(lists)
	}
	if none > 0 {
		kept := lengths[:0]
		for _, x := range lengths {
			if x >= 0 {
				kept = append(kept, x)
			}
		}
		b.Inner = b.Inner[:at+len(kept)]
	}
	return nil
}

// outerLengths adds the entries of the rows that begin in [first, end), of which there is one, and returns how many.
func (d *Decoder) outerLengths(b *Block, first, end int) (rows int) {
	l, e := &d.list, &d.nested
	rows = l.starts.count(first, end)
	at := len(b.Lengths)
	b.Lengths = extend(b.Lengths, rows)
	lengths := b.Lengths[at:]
	k, entries := 0, 0
	for w := first >> 6; w<<6 < end; w++ {
		m := rangeOf(w, first, end)
		here := e.lists[w] & e.there[w] & m
		for x := l.starts[w] & m; x != 0; x &= x - 1 {
			lengths[k] = int32(entries + bits.OnesCount64(here&(x&-x-1)))
			k++
		}
		entries += bits.OnesCount64(here)
	}
	for i := range lengths[1:] {
		lengths[i] = lengths[i+1] - lengths[i]
	}
	lengths[rows-1] = int32(entries) - lengths[rows-1]
	return rows
}
