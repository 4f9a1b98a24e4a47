package rtl

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/unit/text"
)

// textResultWords are the words of a result of unit text_decoder.
const textResultWords = 3

// textRows makes rows of the results of unit text_decoder: the rows of package text, with its counts and errors. The
// unit says of each line what is wrong with it; the policy is applied here.
type textRows struct {
	options text.Options
	rows    []text.Row
	counts  text.Counts

	row       text.Row // The line goes on.
	malformed int      // the line's first malformed field; -1: none
	start     int64    // the line's first byte in the partition
	line      int64    // lines before it
}

// TextRows returns the rows in the results of unit text_decoder of one section, which begins at a position of its
// partition. Rows, counts and errors are those of a text.Decoder: a malformed row is a *text.RowError under text.Fail,
// and a line that is too long under every policy. The rows before it are returned.
func TextRows(results []uint64, o text.Options, at text.Position) ([]text.Row, text.Counts, error) {
	t := textRows{options: o, malformed: -1, start: at.Offset, line: at.Line}
	offset := at.Offset
	for words := range slices.Chunk(results, textResultWords) {
		result := TextCells(words)
		if result.Skipped {
			t.start = offset + 3
		}
		for i, cell := range result.Cells {
			if !cell.Kept {
				continue
			}
			if err := t.add(cell, offset+int64(i)); err != nil {
				return t.rows, t.counts, err
			}
		}
		offset += textBytes
	}
	return t.rows, t.counts, nil
}

// add adds the cell that ends before the byte at an offset of the partition.
func (t *textRows) add(cell TextCell, offset int64) error {
	if cell.Field < textFields {
		t.row[cell.Field] = text.Cell{Value: int64(cell.Value), Valid: cell.Present}
		if cell.Field <= text.Dense {
			t.row[cell.Field].Value = int64(int32(cell.Value))
		}
		if cell.Malformed && t.malformed < 0 {
			t.malformed = cell.Field
		}
	}
	if cell.End == TextLineGoesOn {
		return nil
	}
	if err := t.endLine(cell.End); err != nil {
		return err
	}
	t.row, t.malformed, t.start, t.line = text.Row{}, -1, offset+1, t.line+1
	return nil
}

// endLine applies the policy to a line.
func (t *textRows) endLine(end TextLineEnd) error {
	switch end {
	case TextLineGood:
		t.rows = append(t.rows, t.row)
		return nil
	case TextLineEmpty:
		t.counts.Blank++
		return nil
	case TextLineTooLong:
		return t.rowError(-1, text.ErrLineTooLong)
	case TextLineFieldCount:
		t.row, t.malformed = text.Row{}, -1
	case TextLineMalformedCell:
	default:
		return fmt.Errorf("unit text_decoder ends a line with %d, which it never does", end)
	}
	switch t.options.Policy {
	case text.Drop:
		t.counts.Dropped++
		return nil
	case text.Null:
		t.counts.Nulled++
		t.rows = append(t.rows, t.row)
		return nil
	}
	switch {
	case end == TextLineFieldCount:
		return t.rowError(-1, text.ErrFieldCount)
	case t.malformed == 0:
		return t.rowError(0, text.ErrLabel)
	case t.malformed <= text.Dense:
		return t.rowError(t.malformed, text.ErrDecimal)
	}
	return t.rowError(t.malformed, text.ErrHex)
}

// rowError names the line, and one of its fields or -1.
func (t *textRows) rowError(field int, kind error) error {
	e := &text.RowError{Line: t.line + 1, Offset: t.start, Field: field, Err: kind}
	if field >= 0 {
		e.Name = text.FieldName(field)
		if t.options.LabelAbsent {
			e.Field--
		}
	}
	return e
}
