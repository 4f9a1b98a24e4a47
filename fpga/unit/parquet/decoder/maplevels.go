package decoder

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// mapBatch holds the levels of lists in a map or in lists, beside those of levelBatch: there a row begins at starts,
// and a list's values or nulls are elements.
type mapBatch struct {
	lists   bitmap // an innermost list begins, or there is none
	entries bitmap // the level is of an entry; a null or an empty map has one level without
	window  mapWindow
}

// mapWindow holds repetition levels of lists in a map or in lists: for each level whether it continues its row, and
// whether it continues its innermost list. They are read once, as those of repetitionWindow are.
type mapWindow struct {
	inRow, inList []uint64
	count, used   int // levels read, and how many of them are used
	answers       [2]bitmap
}

// fill reads the next levels, of which there are left.
func (w *mapWindow) fill(r *runs, left int) error {
	w.count, w.used = min(left, windowLevels), 0
	words := (w.count + 63) / 64
	if cap(w.inRow) < words {
		w.inRow, w.inList = make([]uint64, words), make([]uint64, words)
	}
	w.inRow, w.inList = w.inRow[:words], w.inList[:words]
	for at := 0; at < w.count; at += levelBatchSize {
		if err := w.readBatch(r, min(w.count-at, levelBatchSize)); err != nil {
			return err
		}
		copy(w.inRow[at/64:], w.answers[0][:])
		copy(w.inList[at/64:], w.answers[1][:])
	}
	return nil
}

// readBatch reads n levels into answers.
func (w *mapWindow) readBatch(r *runs, n int) error {
	return r.answer(n, []levelQuestion{{1, &w.answers[0]}, {r.limit, &w.answers[1]}})
}

// countMapRows counts the rows that begin in a page of lists in a map or in lists.
func (d *Decoder) countMapRows(n int) error {
	w := &d.mapBatch.window
	err := w.fill(&d.repetition, n)
	rest := d.repetition // a copy: decoding continues behind the window
	inRow := 0
	for _, x := range w.inRow {
		inRow += bits.OnesCount64(x)
	}
	for left := n - w.count; left > 0 && err == nil; left -= levelBatchSize {
		k := min(left, levelBatchSize)
		if err = w.readBatch(&rest, k); err == nil {
			inRow += w.answers[0].countRange(0, k)
		}
	}
	if err != nil {
		return fmt.Errorf("repetition levels: %w", err)
	}
	d.rows, d.midRow = n-inRow, w.inRow[0]&1 == 1
	return nil
}

// readMapLevels reads a batch of n levels of lists in a map or in lists.
func (d *Decoder) readMapLevels(n int) error {
	l, e := &d.batch, &d.mapBatch
	goesOn := lastLevel{entry: true, element: true} // at the beginning of a page there is nothing to compare with
	if l.end > 0 {
		goesOn = lastLevel{e.entries.isSet(l.end - 1), l.elements.isSet(l.end - 1)}
	}
	words := (n + 63) / 64
	w := &e.window
	if w.used == w.count {
		if err := w.fill(&d.repetition, d.levels); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
	}
	for i := range words {
		l.starts[i], e.lists[i] = ^w.inRow[w.used/64+i], ^w.inList[w.used/64+i]
	}
	w.used += n
	questions := [3]levelQuestion{{uint32(d.ct.EntryDef), &e.entries}, {uint32(d.ct.RepDef), &l.elements},
		{uint32(d.ct.MaxDef), &l.present}}
	asked := 2
	if d.ct.NullableValues() {
		asked = 3
	}
	if err := d.definition.answer(n, questions[:asked]); err != nil {
		return fmt.Errorf("definition levels: %w", err)
	}
	if !goesOn.entry && !l.starts.isSet(0) || !goesOn.element && !e.lists.isSet(0) {
		return errListGoesOn
	}
	return nil
}

// lastLevel says of the last level of a batch whether it is of an entry, and whether of an element.
type lastLevel struct{ entry, element bool }

// errListGoesOn says that levels follow an empty or null list that would belong to the list.
var errListGoesOn = format.Corrupt("an empty or null list goes on")

// checkMapNesting checks that the levels up to end nest as lists in maps do: a level without an entry is a whole row,
// and a level with an entry and without an element is a whole list.
func (d *Decoder) checkMapNesting(end int) error {
	l, e := &d.batch, &d.mapBatch
	for w := l.pos >> 6; w<<6 < end; w++ {
		m := rangeMask(w, l.pos, end)
		noElement, noEntry := m&^l.elements[w], m&^e.entries[w]
		if noElement == 0 && noEntry == 0 {
			continue
		}
		if noElement&^e.lists[w] != 0 || noEntry&^l.starts[w] != 0 {
			return format.Corrupt("an empty or null list inside a list")
		}
		list, row := e.lists[w]>>1, l.starts[w]>>1
		if w+1 < levelWords {
			list, row = list|e.lists[w+1]<<63, row|l.starts[w+1]<<63
		}
		if last := l.end - 1; last>>6 == w {
			list, row = list|1<<(last&63), row|1<<(last&63) // the next batch shows how it goes on
		}
		if noElement&^list != 0 || noEntry&^row != 0 {
			return errListGoesOn
		}
	}
	return nil
}

// appendFlattened adds the rows of lists in lists that begin before end, and the continuation of the last row before
// them: a row is the list of the elements of all its lists. It returns how many rows begin.
func (d *Decoder) appendFlattened(b *Block, end int) (rows int, err error) {
	if err := d.checkMapNesting(end); err != nil {
		return 0, err
	}
	l := &d.batch
	row := l.starts.nthSet(0, l.pos, end)
	if more := l.elements.countRange(l.pos, row); more > 0 {
		if err := b.extendLastRow(more); err != nil {
			return 0, err
		}
	}
	if row == end {
		return 0, nil
	}
	return d.appendOuterLengths(b, row, end, &l.elements, &l.elements), nil
}

// appendMaps adds the lists and rows that begin before end, and the continuation of the last list and row before
// them. It returns how many rows begin.
func (d *Decoder) appendMaps(b *Block, end int) (rows int, err error) {
	if err := d.checkMapNesting(end); err != nil {
		return 0, err
	}
	l, e := &d.batch, &d.mapBatch
	list, row := e.lists.nthSet(0, l.pos, end), l.starts.nthSet(0, l.pos, end)
	if list < row || l.pos < list {
		more := e.lists.countRange(list, row) // entries that continue the last row
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
		if err := b.extendLastRow(more); err != nil {
			return 0, err
		}
	}
	if list == end {
		return 0, nil
	}
	if err := d.appendInnerLengths(b, list, end); err != nil || row == end {
		return 0, err
	}
	return d.appendOuterLengths(b, row, end, &e.lists, &e.entries), nil
}

// appendInnerLengths adds the lengths of the lists that begin in [first, end): at least one list, or one row without
// any.
func (d *Decoder) appendInnerLengths(b *Block, first, end int) error {
	l, e := &d.batch, &d.mapBatch
	n, none := e.lists.countRange(first, end), 0
	for w := first >> 6; w<<6 < end; w++ {
		none += bits.OnesCount64(e.lists[w] & rangeMask(w, first, end) &^ e.entries[w])
	}
	if n-none > b.maxValues()-len(b.Inner) {
		return fmt.Errorf("%w: more than %d lists", format.ErrLimit, b.maxValues())
	}
	at := len(b.Inner)
	b.Inner = growSlice(b.Inner, n+positionSlack)
	setPositions(b.Inner[at:], &e.lists, first, end)
	b.Inner = b.Inner[:at+n]
	lengths := b.Inner[at:]
	for i := range lengths[1:] {
		lengths[i] = lengths[i+1] - lengths[i]
	}
	lengths[n-1] = int32(end) - lengths[n-1]
	k := 0
	for w := first >> 6; w<<6 < end; w++ {
		lists := e.lists[w] & rangeMask(w, first, end)
		for x := lists &^ l.elements[w]; x != 0; x &= x - 1 {
			one := x & -x
			length := int32(0)
			if e.entries[w]&one == 0 {
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

// appendOuterLengths adds the lengths of the rows that begin in [first, end), at least one, and returns how many rows.
// A row is as long as it has levels in both of two sets.
func (d *Decoder) appendOuterLengths(b *Block, first, end int, one, other *bitmap) (rows int) {
	l := &d.batch
	rows = l.starts.countRange(first, end)
	at := len(b.Lengths)
	b.Lengths = growSlice(b.Lengths, rows)
	lengths := b.Lengths[at:]
	k, entries := 0, 0
	for w := first >> 6; w<<6 < end; w++ {
		m := rangeMask(w, first, end)
		here := one[w] & other[w] & m
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
