package text

import (
	"bytes"
	"fmt"
	"math"
)

const (
	fields = 1 + Dense + Sparse

	// block is how many rows are parsed before they are dealt out to columns: few enough that they stay in the
	// first-level cache, enough that writing a column is a run.
	blockRows = 64

	// fastRow is how many bytes the fast path may look at: the longest well-formed line (11 bytes of label, 13 x 11,
	// 26 x 8, 39 tabs, CR LF: 403) and an eight-byte load at its end.
	fastRow = 416
)

var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// Decoder decodes windows of one partition of text.
type Decoder struct {
	options    Options
	firstField int // the field that a line begins with: 0, or 1 without a label
	at         Position

	// Parsed rows on their way to the columns: the 32 bits of every cell, and a bit a field that holds a value, a byte
	// a row and group of eight fields.
	cells  [blockRows][fields]uint32
	planes [groups][blockRows]byte

	vectors vectorSet
	index   lineIndex
	targets columnTargets
}

// NewDecoder returns a decoder at the partition's start, or ErrOptions.
func NewDecoder(o Options) (*Decoder, error) {
	if o.Policy > Null {
		return nil, fmt.Errorf("criteo text: policy %d: %w", o.Policy, ErrOptions)
	}
	d := &Decoder{options: o}
	if o.LabelAbsent {
		d.firstField = 1
	}
	return d, nil
}

// Reset moves the decoder to a row boundary of a partition, as Position or an Index named it.
func (d *Decoder) Reset(at Position) { d.at = at }

// Position returns the row boundary that the decoder stands at: after every line of the calls so far.
func (d *Decoder) Position() Position { return d.at }

// Decode decodes up to n rows of window into rows first, first+1, ... of c. window begins at the decoder's position;
// final says that the partition ends with it. A window of MaxLine+4 bytes always gets on.
//
// Rows before an error are decoded, the Result counts them, and the decoder stands at the line that failed. Errors are
// a *RowError, or ErrColumns for buffers that do not hold n rows.
func (d *Decoder) Decode(c *Columns, first, n int, window []byte, final bool) (Result, error) {
	var res Result
	if err := c.check(first, n); err != nil {
		return res, err
	}
	pos, lines := 0, int64(0)
	if d.at.Offset == 0 && bytes.HasPrefix(window, byteOrderMark) {
		pos = len(byteOrderMark)
	}
	held := 0 // rows in the block
	d.index.lines, d.index.indexLines = 0, blockRows
	if d.vectors = vectors(); d.vectors > noVectors {
		d.targets.pointTo(c)
	}
	var failed error
	for res.Rows+held < n {
		if held == blockRows {
			d.writeBlock(c, first+res.Rows, held)
			res.Rows, held = res.Rows+held, 0
		}
		if d.vectors > noVectors && d.index.fillIndex(d.vectors, window, pos, fields-d.firstField, n-res.Rows-held) {
			if done := d.parseIndexed(window, d.index.lines, held); done > 0 {
				pos = d.index.takeLines(done, fields-d.firstField)
				held += done
				lines += int64(done)
				continue
			}
			d.index.takeLines(1, fields-d.firstField) // an odd one, which is taken below
		}
		rest := window[pos:]
		if len(rest) >= fastRow {
			if used, valid := parseFastLine((*[fastRow]byte)(rest), d.firstField, &d.cells[held]); used > 0 {
				d.noteValid(held, valid)
				held++
				pos += used
				lines++
				continue
			}
		}
		if len(rest) == 0 {
			break
		}
		line, next, ok := cutLine(rest, final)
		if !ok {
			if len(rest) > MaxLine {
				failed = d.rowError(pos, lines, -1, ErrLineTooLong)
			}
			break
		}
		kept, err := d.parseCareful(line, held, &res.Counts)
		if err != nil {
			err.Offset, err.Line = d.at.Offset+int64(pos), d.at.Line+lines+1
			failed = err
			break
		}
		if kept {
			held++
		}
		pos += next
		lines++
	}
	d.writeBlock(c, first+res.Rows, held)
	res.Rows += held
	res.Consumed = pos
	res.More = res.Rows < n && !final && failed == nil
	d.at.Offset += int64(pos)
	d.at.Line += lines
	return res, failed
}

// noteValid notes which fields of a row of the block hold values.
func (d *Decoder) noteValid(row int, valid uint64) {
	for g := range d.planes {
		d.planes[g][row] = byte(valid >> (8 * g))
	}
}

// cutLine returns the line that rest begins with, without its line end, and where the next line begins. ok is false if
// the line's end is not there, or too far.
func cutLine(rest []byte, final bool) (line []byte, next int, ok bool) {
	end := bytes.IndexByte(rest[:min(len(rest), MaxLine+1)], '\n')
	if end < 0 {
		// The partition's last line may go without LF. A CR at its end belongs to its last cell then.
		return rest, len(rest), final && len(rest) <= MaxLine
	}
	line = rest[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	return line, end + 1, true
}

// parseCareful parses any line into row r of the block, applies the policy and reports whether there is a row.
func (d *Decoder) parseCareful(line []byte, r int, counts *Counts) (kept bool, err *RowError) {
	if len(line) == 0 {
		counts.Blank++
		return false, nil
	}
	row := &d.cells[r]
	valid, field, bad := parseLine(line, d.firstField, row)
	if bad == nil {
		d.noteValid(r, valid)
		return true, nil
	}
	switch d.options.Policy {
	case Drop:
		counts.Dropped++
		return false, nil
	case Null:
		counts.Nulled++
		d.noteValid(r, valid)
		return true, nil
	}
	return false, d.rowError(0, 0, field, bad)
}

// rowError names a line that begins pos bytes and lines lines after the decoder's position, and one of its fields.
func (d *Decoder) rowError(pos int, lines int64, field int, kind error) *RowError {
	e := &RowError{Line: d.at.Line + lines + 1, Offset: d.at.Offset + int64(pos), Field: field, Err: kind}
	if field >= 0 {
		e.Name = FieldName(field)
		e.Field -= d.firstField
	}
	return e
}

// parseLine parses every cell of a line, malformed ones as nulls, and returns the first malformed cell's field (-1 for
// the whole line) and its kind. The field counts the label even where it is absent.
func parseLine(line []byte, first int, row *[fields]uint32) (valid uint64, field int, bad error) {
	*row = [fields]uint32{}
	if bytes.Count(line, []byte{'\t'}) != fields-first-1 {
		return 0, -1, ErrFieldCount
	}
	for f := first; f < fields; f++ {
		cell := line
		if tab := bytes.IndexByte(line, '\t'); tab >= 0 {
			cell, line = line[:tab], line[tab+1:]
		}
		if len(cell) == 0 && f > 0 {
			continue
		}
		var v uint32
		var ok bool
		kind := ErrHex
		if f <= Dense {
			kind = ErrDecimal
			v, ok = parseDecimal(cell)
		} else {
			v, ok = parseHex(cell)
		}
		switch {
		case ok:
			row[f] = v
			valid |= 1 << f
		case bad == nil:
			field, bad = f, kind
			if f == 0 {
				bad = ErrLabel
			}
		}
	}
	return valid, field, bad
}

// parseDecimal parses -?[0-9]{1,10} in int32 and returns its 32 bits.
func parseDecimal(cell []byte) (uint32, bool) {
	digits, limit := cell, int64(math.MaxInt32)
	neg := len(cell) > 0 && cell[0] == '-'
	if neg {
		digits, limit = cell[1:], -math.MinInt32
	}
	if len(digits) < 1 || len(digits) > 10 {
		return 0, false
	}
	var v int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if v > limit {
		return 0, false
	}
	if neg {
		v = -v
	}
	return uint32(v), true
}

// parseHex parses [0-9a-fA-F]{1,8}.
func parseHex(cell []byte) (uint32, bool) {
	if len(cell) < 1 || len(cell) > 8 {
		return 0, false
	}
	var v uint32
	for _, c := range cell {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint32(c)
	}
	return v, true
}

// FieldName returns the name of a field's column: label, int_0 to int_12, cat_0 to cat_25.
func FieldName(field int) string {
	switch {
	case field == 0:
		return "label"
	case field <= Dense:
		return fmt.Sprintf("int_%d", field-1)
	}
	return fmt.Sprintf("cat_%d", field-1-Dense)
}
