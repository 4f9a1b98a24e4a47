package decoder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Decoder decodes one unpacked data page, whole rows at a time. The zero value waits for Reset; a Decoder is large
// and meant to be kept and Reset for page after page.
type Decoder struct {
	ct                     format.ColumnType
	repetition, definition runs
	values                 valueReader
	rows                   int   // rows that begin in this page and are left
	levels                 int   // levels not yet taken from repetition and definition
	size                   int   // The page has as many bytes.
	midRow                 bool  // the page's first levels belong to the row before it, and are not taken yet
	err                    error // why decoding ended
	batch                  levelBatch
	repetitionWindow       repetitionWindow
	mapBatch               mapBatch
}

var errNoPage = errors.New("parquet: decoder has no page")

// Reset begins a page. ct must be valid for the page's column; page is the result of Unpack; dict is the chunk's
// dictionary, nil if it has none. page and dict's memory are read, not copied, until the next Reset.
//
// It checks what can be known before values are decoded: that the page's sections lie inside it, that a list's rows
// are as many as the header says, that a required column of fixed width has all its bytes.
func (d *Decoder) Reset(ct *format.ColumnType, h *format.PageHeader, page []byte, dict *Dictionary) error {
	d.ct, d.rows, d.levels, d.midRow, d.err, d.size = *ct, 0, 0, false, errNoPage, len(page)
	d.batch.reset()
	if err := ct.Validate(); err != nil {
		return err
	}
	if err := h.CheckSizes(); err != nil {
		return err
	}
	var rest []byte
	var err error
	switch h.Type {
	case format.DataPage:
		rest, err = d.findLevelsV1(h, page)
	case format.DataPageV2:
		rest, err = d.findLevelsV2(h, page)
	default:
		return &format.UnsupportedError{What: "page type", Name: h.Type.String()}
	}
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	if err := d.countRows(h, n); err != nil {
		return err
	}
	if err := d.values.reset(ct, h, rest, dict); err != nil {
		return err
	}
	if ct.MaxDef == 0 {
		if err := d.values.checkCount(n); err != nil {
			return err
		}
	}
	d.levels, d.err = n, nil
	return nil
}

// findLevelsV1 finds the levels of a v1 page and returns the bytes behind them.
func (d *Decoder) findLevelsV1(h *format.PageHeader, page []byte) ([]byte, error) {
	var err error
	if d.ct.MaxRep > 0 {
		if d.repetition, page, err = readLevelSection(page, h.RepEncoding, int(h.NumValues), d.ct.MaxRep); err != nil {
			return nil, fmt.Errorf("repetition levels: %w", err)
		}
	}
	if d.ct.MaxDef > 0 {
		if d.definition, page, err = readLevelSection(page, h.DefEncoding, int(h.NumValues), d.ct.MaxDef); err != nil {
			return nil, fmt.Errorf("definition levels: %w", err)
		}
	}
	return page, nil
}

// readLevelSection finds n levels at the beginning of b and returns the bytes behind them.
func readLevelSection(b []byte, e format.Encoding, n int, greatest uint8) (runs, []byte, error) {
	width := levelWidth(greatest)
	switch e {
	case format.RLE:
		if len(b) < 4 {
			return runs{}, nil, format.Corrupt("page ends before their length")
		}
		size := int64(binary.LittleEndian.Uint32(b))
		if size > int64(len(b)-4) {
			return runs{}, nil, format.Corrupt("%d bytes in a page with %d left", size, len(b)-4)
		}
		return newRuns(b[4:4+size], width, uint32(greatest)), b[4+size:], nil
	case format.BitPacked:
		size := (n*int(width) + 7) / 8
		if size > len(b) {
			return runs{}, nil, format.Corrupt("%d bytes in a page with %d left", size, len(b))
		}
		return newBitPacked(b[:size], n, width, uint32(greatest)), b[size:], nil
	}
	return runs{}, nil, &format.UnsupportedError{What: "encoding", Name: e.String() + " of levels"}
}

// findLevelsV2 finds the levels of a v2 page, whose lengths are in the header, and returns the bytes behind them.
func (d *Decoder) findLevelsV2(h *format.PageHeader, page []byte) ([]byte, error) {
	rep, def := int(h.RepBytes), int(h.DefBytes)
	if rep+def > len(page) {
		return nil, format.Corrupt("%d bytes of levels in a page of %d", rep+def, len(page))
	}
	d.repetition = newRuns(page[:rep], levelWidth(d.ct.MaxRep), uint32(d.ct.MaxRep))
	d.definition = newRuns(page[rep:rep+def], levelWidth(d.ct.MaxDef), uint32(d.ct.MaxDef))
	return page[rep+def:], nil
}

// countRows counts the rows that begin in the page: its values, or for a list the zeros among the repetition levels.
func (d *Decoder) countRows(h *format.PageHeader, n int) error {
	d.rows = n
	if d.ct.MaxRep > 1 && n > 0 {
		if err := d.countMapRows(n); err != nil {
			return err
		}
	} else if d.ct.List && n > 0 {
		if err := d.repetitionWindow.fill(&d.repetition, n); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
		rest := d.repetition // a copy: decoding continues behind the window
		ones, err := rest.countOnes(n - d.repetitionWindow.count)
		if err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
		for _, w := range d.repetitionWindow.words {
			ones += bits.OnesCount64(w)
		}
		d.rows = n - ones
		d.midRow = d.repetitionWindow.words[0]&1 == 1
	}
	if h.Type == format.DataPageV2 && !h.MayContinue(&d.ct) && (d.rows != int(h.NumRows) || d.midRow) {
		return format.Corrupt("page has %d rows, its header says %d", d.rows, h.NumRows)
	}
	return nil
}

// Rows is how many of the rows that begin in this page are left.
func (d *Decoder) Rows() int { return d.rows }

// Continues reports whether the page begins inside a list row of the page before it, with values still to be taken by
// Continue or dropped by Skip. Only pages that MayContinue a row do; a chunk's first page must not.
func (d *Decoder) Continues() bool { return d.midRow }

// Continue appends the values that belong to the row before the page to the block's last row. The page may end before
// that row does, in which case Rows is 0 and the next page continues too.
func (d *Decoder) Continue(b *Block) error {
	if d.err != nil || !d.midRow {
		return d.err
	}
	if b.Kind != d.ct.Kind() || len(b.Lengths) == 0 || len(b.Lengths) != b.Rows {
		return fmt.Errorf("%w: the block does not hold that row", format.ErrContinues)
	}
	m := b.mark()
	if err := d.nextLists(b, 0); err != nil {
		b.rollback(m)
		d.err = err
		return err
	}
	d.midRow = false
	return nil
}

// Skip drops the values that Continue would take, and then n rows. To skip more rows than are left is an error.
func (d *Decoder) Skip(n int) error {
	if d.err != nil {
		return d.err
	}
	if n < 0 || n > d.rows {
		return fmt.Errorf("parquet: skip %d rows of the page's %d", n, d.rows)
	}
	if !d.ct.List {
		d.err = d.skipFlat(n)
	} else {
		d.err = d.skipLists(n)
	}
	d.rows -= n
	d.midRow = false
	return d.err
}

// ValueAt returns the byte of the page at which the next row's value lies, or the next one's that is not null, in a
// page whose values must be read to find others: PLAIN byte arrays of a column without lists. In other pages it returns
// 0, and so it does where no rows are left.
func (d *Decoder) ValueAt() int {
	if d.rows == 0 || !d.hasPlaces() {
		return 0
	}
	return d.size - len(d.values.src)
}

// hasPlaces reports whether values must be read to find others.
func (d *Decoder) hasPlaces() bool { return d.err == nil && !d.ct.List && d.values.source == fromBytes }

// SkipTo is Skip of n rows for a caller that knows ValueAt behind them, of the same page. In pages without such places
// it is Skip. A place before the decoder's or behind the page is an error; another wrong one leads to wrong values, or
// to an error that they cause.
func (d *Decoder) SkipTo(n, valueAt int) error {
	if !d.hasPlaces() || n < 0 || n > d.rows {
		return d.Skip(n)
	}
	at := d.size - len(d.values.src)
	if valueAt < at || valueAt > d.size {
		return fmt.Errorf("parquet: a value at byte %d of the page: want %d to %d", valueAt, at, d.size)
	}
	if d.ct.MaxDef > 0 {
		if _, d.err = d.skipLevels(n); d.err != nil {
			d.err = fmt.Errorf("definition levels: %w", d.err)
			return d.err
		}
	}
	d.values.src = d.values.src[valueAt-at:]
	d.rows -= n
	return nil
}

// Next appends up to n whole rows to b, whose Kind must be the column's, and returns how many: n, or the number of
// rows that are left. While Continues is true it fails with ErrContinues; where n rows do not fit the block's bounds,
// with ErrLimit. After any error the block is as it was; after an error of decoding the decoder must be Reset.
//
// The last row of a page of lists is whole only if the next page does not continue it, as a page that MayContinue may.
func (d *Decoder) Next(b *Block, n int) (int, error) {
	switch {
	case d.err != nil:
		return 0, d.err
	case d.midRow:
		return 0, format.ErrContinues
	case b.Kind != d.ct.Kind():
		return 0, fmt.Errorf("parquet: block of %v, column of %v", b.Kind, d.ct.Kind())
	}
	n = min(n, d.rows)
	if n <= 0 {
		return 0, nil
	}
	if limit := b.maxValues(); n > limit-b.Rows {
		return 0, fmt.Errorf("%w: %d rows would pass the block's %d", format.ErrLimit, n, limit)
	}
	m := b.mark()
	var err error
	if d.ct.List {
		err = d.nextLists(b, n)
	} else {
		err = d.nextFlat(b, n)
	}
	if err != nil {
		b.rollback(m)
		d.err = err
		return 0, err
	}
	d.rows -= n
	b.Rows += n
	return n, nil
}

// nextFlat appends n rows of a flat column.
func (d *Decoder) nextFlat(b *Block, n int) error {
	if err := b.checkRoom(n); err != nil {
		return err
	}
	if d.ct.MaxDef == 0 {
		return d.values.appendValues(b, n)
	}
	for n > 0 {
		if err := d.definition.openRun(); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
		k := min(n, d.definition.left)
		at := len(b.Valid)
		b.Valid = growSlice(b.Valid, k)
		valid := b.Valid[at:]
		there := k
		if d.definition.isPacked {
			if err := d.definition.packedLevels(valid); err != nil {
				return err
			}
			there = d.markPresent(valid)
		} else {
			present := uint32(0)
			if d.definition.value == uint32(d.ct.MaxDef) {
				present = 1
			}
			there *= int(present)
			fillBytes(valid, byte(present))
			d.definition.advance(k)
		}
		if err := d.values.appendValues(b, there); err != nil {
			return err
		}
		if there < k {
			b.spreadValues(valid, there)
			b.Nulls += k - there
		}
		n -= k
	}
	return nil
}

// markPresent turns definition levels into 1 where a value is present and 0 where it is null, and counts the ones.
func (d *Decoder) markPresent(levels []byte) int {
	if d.ct.MaxDef > 1 {
		for i, l := range levels {
			var p byte
			if l == d.ct.MaxDef {
				p = 1
			}
			levels[i] = p
		}
	}
	return countOneBytes(levels)
}

// checkRoom checks that n more elements fit the block's limit.
func (b *Block) checkRoom(n int) error {
	if limit := b.maxValues(); n > limit-b.Values() {
		return fmt.Errorf("%w: %d values would pass the block's %d", format.ErrLimit, n, limit)
	}
	return nil
}

// skipFlat moves past n rows of a flat column.
func (d *Decoder) skipFlat(n int) error {
	if d.ct.MaxDef == 0 {
		return d.values.skip(n)
	}
	there, err := d.skipLevels(n)
	if err != nil {
		return fmt.Errorf("definition levels: %w", err)
	}
	return d.values.skip(there)
}

// skipLevels moves past n definition levels and counts the values that are there.
func (d *Decoder) skipLevels(n int) (int, error) {
	if d.ct.MaxDef == 1 {
		return d.definition.countOnes(n)
	}
	there := 0
	for n > 0 {
		k := min(n, levelBatchSize)
		if err := d.definition.answer(k, []levelQuestion{{uint32(d.ct.MaxDef), &d.batch.present}}); err != nil {
			return 0, err
		}
		there += d.batch.present.countRange(0, k)
		n -= k
	}
	return there, nil
}

// extendLastRow adds n elements to the last row.
func (b *Block) extendLastRow(n int) error {
	last := &b.Lengths[len(b.Lengths)-1]
	if n > math.MaxInt32-int(*last) {
		return fmt.Errorf("%w: a list of more than %d values", format.ErrLimit, math.MaxInt32)
	}
	*last += int32(n)
	return nil
}
