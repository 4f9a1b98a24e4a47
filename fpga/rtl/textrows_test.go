package rtl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
)

// TestTextRows checks what rows, counts and errors the ends of lines become under each policy. Package cosim compares
// rows of simulated results with those of package text.
func TestTextRows(t *testing.T) {
	result := func(cells ...TextCell) []uint64 {
		words := make([]uint64, 3)
		for i, cell := range cells {
			words[i/2] |= uint64(cell.Value) << (32 * (i % 2))
			words[2] |= 1<<i | uint64(cell.Field)<<(12+6*i) | uint64(cell.End)<<(36+3*i)
			if cell.Present {
				words[2] |= 1 << (4 + i)
			}
			if cell.Malformed {
				words[2] |= 1 << (8 + i)
			}
		}
		return words
	}
	negative := TextCell{Field: 1, Value: 1<<32 - 5, Present: true}
	id := TextCell{Field: 39, Value: 1<<32 - 5, Present: true, End: TextLineGood}
	row := text.Row{1: {Value: -5, Valid: true}, 39: {Value: 1<<32 - 5, Valid: true}}
	good := result(negative, id)
	ofCell := func(field int, label bool) []uint64 {
		cells := []TextCell{negative, {Field: field, Malformed: true},
			{Field: 39, Malformed: true, End: TextLineMalformedCell}}
		if !label {
			cells = cells[1:]
		}
		return result(cells...)
	}
	at := text.Position{Offset: 100, Line: 9}
	for name, c := range map[string]struct {
		results []uint64
		o       text.Options
		rows    []text.Row
		counts  text.Counts
		err     *text.RowError
	}{
		"good": {results: good, rows: []text.Row{row}},
		"empty": {results: append(result(TextCell{End: TextLineEmpty}), good...), rows: []text.Row{row},
			counts: text.Counts{Blank: 1}},
		"label": {results: append(good, ofCell(0, true)...), rows: []text.Row{row}, err: &text.RowError{Line: 11,
			Offset: 102, Field: 0, Name: "label", Err: text.ErrLabel}},
		"decimal": {results: ofCell(13, true), err: &text.RowError{Line: 10, Offset: 100, Field: 13, Name: "int_12",
			Err: text.ErrDecimal}},
		"hexadecimal": {results: ofCell(14, false), o: text.Options{LabelAbsent: true}, err: &text.RowError{Line: 10,
			Offset: 100, Field: 13, Name: "cat_0", Err: text.ErrHex}},
		"fields": {results: result(TextCell{Field: 40, End: TextLineFieldCount}), err: &text.RowError{Line: 10,
			Offset: 100, Field: -1, Err: text.ErrFieldCount}},
		"long, drop": {results: append(good, result(TextCell{End: TextLineTooLong})...), o: text.Options{Policy: text.Drop},
			rows: []text.Row{row}, err: &text.RowError{Line: 11, Offset: 102, Field: -1, Err: text.ErrLineTooLong}},
		"cell, drop": {results: append(ofCell(3, true), good...), o: text.Options{Policy: text.Drop}, rows: []text.Row{row},
			counts: text.Counts{Dropped: 1}},
		"cell, null": {results: ofCell(3, true), o: text.Options{Policy: text.Null},
			rows: []text.Row{{1: {Value: -5, Valid: true}}}, counts: text.Counts{Nulled: 1}},
		"fields, null": {results: result(negative, TextCell{Field: 40, End: TextLineFieldCount}),
			o: text.Options{Policy: text.Null}, rows: []text.Row{{}}, counts: text.Counts{Nulled: 1}},
	} {
		rows, counts, err := TextRows(c.results, c.o, at)
		require.Equal(t, c.rows, rows, name)
		require.Equal(t, c.counts, counts, name)
		if c.err == nil {
			require.NoError(t, err, name)
		} else {
			require.Equal(t, c.err, err, name)
		}
	}
	marked := result(TextCell{}, TextCell{}, TextCell{}, TextCell{End: TextLineFieldCount})
	marked[2] = marked[2]&^7 | 1<<48
	_, _, err := TextRows(marked, text.Options{}, text.Position{})
	require.Equal(t, &text.RowError{Line: 1, Offset: 3, Field: -1, Err: text.ErrFieldCount}, err)
	_, _, err = TextRows(result(TextCell{End: 6}), text.Options{}, at)
	require.ErrorContains(t, err, "ends a line with 6")
}
