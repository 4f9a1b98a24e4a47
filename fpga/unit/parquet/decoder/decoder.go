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
	ct       format.ColumnType
	rep, def runs
	vals     values
	rows     int   // that begin in this page and are left
	levels   int   // not yet taken from rep and def
	inRow    bool  // the page's first levels belong to the row before it, and are still here
	err      error // what ended decoding
	list     levelBatch
	window   repWindow
	nested   nestedLevels
}

var errNoPage = errors.New("parquet: decoder has no page")

// Reset begins a page. ct must be valid for the page's column; page is what Unpack returned; dict is the chunk's
// dictionary, nil if it has none. page and dict's memory are read, not copied, until the next Reset.
//
// It checks what can be known before values are decoded: that the page's sections lie inside it, that a list's rows
// are as many as the header says, that a required column of fixed width has all its bytes.
func (d *Decoder) Reset(ct *format.ColumnType, h *format.PageHeader, page []byte, dict *Dictionary) error {
	d.ct, d.rows, d.levels, d.inRow, d.err = *ct, 0, 0, false, errNoPage
	d.list.reset()
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
		rest, err = d.levelsV1(h, page)
	case format.DataPageV2:
		rest, err = d.levelsV2(h, page)
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
	if err := d.vals.reset(ct, h, rest, dict); err != nil {
		return err
	}
	if ct.MaxDef == 0 {
		if err := d.vals.atLeast(n); err != nil {
			return err
		}
	}
	d.levels, d.err = n, nil
	return nil
}

// levelsV1 finds the levels of a v1 page and returns what follows them.
func (d *Decoder) levelsV1(h *format.PageHeader, page []byte) ([]byte, error) {
	var err error
	if d.ct.MaxRep > 0 {
		if d.rep, page, err = levelSection(page, h.RepEncoding, int(h.NumValues), d.ct.MaxRep); err != nil {
			return nil, fmt.Errorf("repetition levels: %w", err)
		}
	}
	if d.ct.MaxDef > 0 {
		if d.def, page, err = levelSection(page, h.DefEncoding, int(h.NumValues), d.ct.MaxDef); err != nil {
			return nil, fmt.Errorf("definition levels: %w", err)
		}
	}
	return page, nil
}

func levelSection(b []byte, e format.Encoding, n int, max uint8) (runs, []byte, error) {
	width := levelWidth(max)
	switch e {
	case format.RLE:
		if len(b) < 4 {
			return runs{}, nil, format.Corrupt("page ends before their length")
		}
		size := int64(binary.LittleEndian.Uint32(b))
		if size > int64(len(b)-4) {
			return runs{}, nil, format.Corrupt("%d bytes in a page with %d left", size, len(b)-4)
		}
		return newRuns(b[4:4+size], width, uint32(max)), b[4+size:], nil
	case format.BitPacked:
		size := (n*int(width) + 7) / 8
		if size > len(b) {
			return runs{}, nil, format.Corrupt("%d bytes in a page with %d left", size, len(b))
		}
		return newBitPacked(b[:size], n, width, uint32(max)), b[size:], nil
	}
	return runs{}, nil, &format.UnsupportedError{What: "encoding", Name: e.String() + " of levels"}
}

// levelsV2 finds the levels of a v2 page, whose lengths are in the header, and returns what follows them.
func (d *Decoder) levelsV2(h *format.PageHeader, page []byte) ([]byte, error) {
	rep, def := int(h.RepBytes), int(h.DefBytes)
	if rep+def > len(page) {
		return nil, format.Corrupt("%d bytes of levels in a page of %d", rep+def, len(page))
	}
	d.rep = newRuns(page[:rep], levelWidth(d.ct.MaxRep), uint32(d.ct.MaxRep))
	d.def = newRuns(page[rep:rep+def], levelWidth(d.ct.MaxDef), uint32(d.ct.MaxDef))
	return page[rep+def:], nil
}

// countRows counts the rows that begin in the page: its values, or for a list the zeros among the repetition levels.
func (d *Decoder) countRows(h *format.PageHeader, n int) error {
	d.rows = n
	if d.ct.MaxRep == 2 && n > 0 {
		if err := d.countNested(n); err != nil {
			return err
		}
	} else if d.ct.List && n > 0 {
		if err := d.window.fill(&d.rep, n); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
		rest := d.rep // a copy: decoding goes on behind the window
		ones, err := rest.countOnes(n - d.window.n)
		if err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
		for _, w := range d.window.words {
			ones += bits.OnesCount64(w)
		}
		d.rows = n - ones
		d.inRow = d.window.words[0]&1 == 1
	}
	if h.Type == format.DataPageV2 && !h.MayContinue(&d.ct) && (d.rows != int(h.NumRows) || d.inRow) {
		return format.Corrupt("page has %d rows, its header says %d", d.rows, h.NumRows)
	}
	return nil
}

// Rows is how many of the rows that begin in this page are left.
func (d *Decoder) Rows() int { return d.rows }

// Continues tells whether the page begins inside a list row of the page before it, with values still to be taken by
// Continue or dropped by Skip. Only pages that MayContinue a row do; a chunk's first page must not.
func (d *Decoder) Continues() bool { return d.inRow }

// Continue appends the values that belong to the row before the page to the block's last row. The page may end before
// that row does, in which case Rows is 0 and the next page continues too.
func (d *Decoder) Continue(b *Block) error {
	if d.err != nil || !d.inRow {
		return d.err
	}
	if b.Kind != d.ct.Kind() || len(b.Lengths) == 0 || len(b.Lengths) != b.Rows {
		return fmt.Errorf("%w: the block does not hold that row", format.ErrContinues)
	}
	m := b.mark()
	var err error
	if d.ct.MaxRep == 2 {
		err = d.nextNested(b, 0)
	} else {
		err = d.nextList(b, 0)
	}
	if err != nil {
		b.rollback(m)
		d.err = err
		return err
	}
	d.inRow = false
	return nil
}

// Skip drops what Continues tells of, and then n rows. Skipping more rows than are left is an error.
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
		d.err = d.skipList(n)
	}
	d.rows -= n
	d.inRow = false
	return d.err
}

// Next appends up to n whole rows to b, whose Kind must be the column's, and returns how many: n, or what is left. While
// Continues is true it fails with ErrContinues; where n rows do not fit the block's bounds, with ErrLimit. After any
// error the block is as it was; after an error of decoding the decoder must be Reset.
//
// The last row of a page of lists is whole only if the next page does not continue it, as one that MayContinue may.
func (d *Decoder) Next(b *Block, n int) (int, error) {
	switch {
	case d.err != nil:
		return 0, d.err
	case d.inRow:
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
	switch d.ct.MaxRep {
	case 0:
		err = d.nextFlat(b, n)
	case 1:
		err = d.nextList(b, n)
	default:
		err = d.nextNested(b, n)
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

func (d *Decoder) nextFlat(b *Block, n int) error {
	if err := b.room(n); err != nil {
		return err
	}
	if d.ct.MaxDef == 0 {
		return d.vals.append(b, n)
	}
	for n > 0 {
		if err := d.def.run(); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
		k := min(n, d.def.left)
		at := len(b.Valid)
		b.Valid = extend(b.Valid, k)
		valid := b.Valid[at:]
		there := k
		if d.def.isPacked {
			if err := d.def.packedLevels(valid); err != nil {
				return err
			}
			there = d.presence(valid)
		} else {
			present := uint32(0)
			if d.def.value == uint32(d.ct.MaxDef) {
				present = 1
			}
			there *= int(present)
			fillBytes(valid, byte(present))
			d.def.take(k)
		}
		if err := d.vals.append(b, there); err != nil {
			return err
		}
		if there < k {
			b.spread(valid, there)
			b.Nulls += k - there
		}
		n -= k
	}
	return nil
}

// presence turns definition levels into 1 where a value is there and 0 where not, and counts the ones.
func (d *Decoder) presence(levels []byte) int {
	if d.ct.MaxDef > 1 {
		for i, l := range levels {
			var p byte
			if l == d.ct.MaxDef {
				p = 1
			}
			levels[i] = p
		}
	}
	return onesIn(levels)
}

// room checks that n more value slots fit the block's limit.
func (b *Block) room(n int) error {
	if limit := b.maxValues(); n > limit-b.Values() {
		return fmt.Errorf("%w: %d values would pass the block's %d", format.ErrLimit, n, limit)
	}
	return nil
}

func (d *Decoder) skipFlat(n int) error {
	if d.ct.MaxDef == 0 {
		return d.vals.skip(n)
	}
	there, err := d.skipLevels(n)
	if err != nil {
		return fmt.Errorf("definition levels: %w", err)
	}
	return d.vals.skip(there)
}

// skipLevels moves past n definition levels and counts the values that are there.
func (d *Decoder) skipLevels(n int) (int, error) {
	if d.ct.MaxDef == 1 {
		return d.def.countOnes(n)
	}
	there := 0
	for n > 0 {
		k := min(n, levelBatchSize)
		if err := d.def.ask(k, []question{{uint32(d.ct.MaxDef), &d.list.present}}); err != nil {
			return 0, err
		}
		there += d.list.present.count(0, k)
		n -= k
	}
	return there, nil
}

// addLength adds n value slots to the last row.
func (b *Block) addLength(n int) error {
	last := &b.Lengths[len(b.Lengths)-1]
	if n > math.MaxInt32-int(*last) {
		return fmt.Errorf("%w: a list of more than %d values", format.ErrLimit, math.MaxInt32)
	}
	*last += int32(n)
	return nil
}
