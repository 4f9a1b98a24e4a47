package cosim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/shared"
)

// textPolicies are what a malformed row can lead to. A case of unit text_decoder says what each makes of its sections.
var textPolicies = []text.Policy{text.Fail, text.Drop, text.Null}

// textFields is the number of fields of a line with a label.
const textFields = 1 + text.Dense + text.Sparse

// lineCases decode lines: good and spoiled ones, hard cells at every place of a transfer, separators alone, short
// texts, characters at random, and lines around the greatest length.
func lineCases(draw *rand.Rand, count int) []unitCase {
	var cases []unitCase
	many, places, lines := count > 1000, everyPlace, 1+count/128
	for _, labelAbsent := range []bool{false, true} {
		for _, begins := range []bool{true, false} {
			if !many {
				places = []int{draw.IntN(4)}
			}
			add := func(name string, sections ...[]byte) {
				cases = append(cases, lineCase(fmt.Sprintf("text_decoder %s: label absent %v, begins %v", name, labelAbsent,
					begins), labelAbsent, begins, sections))
			}
			if many {
				add("hard cells", atPlaces(hardLines(labelAbsent), places)...)
				add("short texts", shortTexts("1\t\n\r", 5)...)
				add("spoiled lines", atPlaces(drawText(draw, count/32, 1, labelAbsent), places)...)
			} else {
				add("short texts", shortTexts("1\t\n\r", 1)...)
			}
			add("good lines", atPlaces(drawText(draw, lines, 0, labelAbsent), places)...)
			add("no line end", atPlaces(bytes.TrimRight(drawText(draw, 1, 0, labelAbsent), "\r\n"), places)...)
			add("some spoiled lines", atPlaces(drawText(draw, lines, 4, labelAbsent), places)...)
			add("separators", append(atPlaces(bytes.Repeat([]byte("\t"), 38+draw.IntN(3)), places),
				bytes.Repeat([]byte("\n"), 9), bytes.Repeat([]byte("\r\n"), 9))...)
			add("characters", drawCharacters(draw, count)...)
		}
	}
	if many {
		cases = append(cases, lineCase("text_decoder long lines", false, true, longLines()))
	}
	return cases
}

// lineCase returns the case of sections of text.
func lineCase(name string, labelAbsent, begins bool, sections [][]byte) unitCase {
	at := text.Position{}
	if !begins {
		at = text.Position{Offset: 1000, Line: 7}
	}
	c := unitCase{name: name, setup: rtl.TextDecoder(labelAbsent, begins)}
	for _, section := range sections {
		words := rtl.TextTransfers(section)
		if held := len(section) % 4; held > 0 || len(section) == 0 { // what lies behind must not matter
			behind := binary.LittleEndian.Uint32([]byte{0xef, '\t', 0xbf, '\n'})
			words[len(words)-1] |= uint64(behind >> (8 * held) << (8 * held))
		}
		c.stream.Words = append(c.stream.Words, words...)
		c.cycles += len(section)/4 + 1 // the end has a place behind the last byte
	}
	each := func(say func(section []byte, o text.Options, at text.Position) []uint64) []uint64 {
		var said []uint64
		for _, section := range sections {
			for _, policy := range textPolicies {
				said = append(said, say(section, text.Options{Policy: policy, LabelAbsent: labelAbsent}, at)...)
			}
		}
		return said
	}
	c.kernel = func(t *testing.T, _ Stream) []uint64 {
		return each(func(section []byte, o text.Options, at text.Position) []uint64 {
			return lineKernel(t, section, o, at)
		})
	}
	c.reference = func(Stream) []uint64 { return each(lineReference) }
	c.read = eachSection("text_decoder", func(results []uint64) ([]uint64, error) {
		if err := untidyLines(results, labelAbsent, begins); err != nil {
			return nil, err
		}
		var said []uint64
		for _, policy := range textPolicies {
			rows, counts, err := rtl.TextRows(results, text.Options{Policy: policy, LabelAbsent: labelAbsent}, at)
			said = append(said, saidOfText(rows, counts, err)...)
		}
		return said, nil
	})
	return c
}

// saidOfText returns rows, counts and the place of an error as words.
func saidOfText(rows []text.Row, counts text.Counts, err error) []uint64 {
	said := []uint64{uint64(len(rows)), uint64(counts.Blank), uint64(counts.Dropped), uint64(counts.Nulled)}
	for i := range rows {
		for _, cell := range rows[i] {
			said = append(said, uint64(cell.Value), one(cell.Valid))
		}
	}
	var bad *text.RowError
	if !errors.As(err, &bad) {
		return append(said, one(err != nil))
	}
	kinds := []error{text.ErrLabel, text.ErrDecimal, text.ErrHex, text.ErrFieldCount, text.ErrLineTooLong}
	return append(said, 2, uint64(bad.Line), uint64(bad.Offset), uint64(bad.Field), uint64(slices.Index(kinds, bad.Err)))
}

// lineKernel returns what the drive's decoder makes of a section.
func lineKernel(t *testing.T, section []byte, o text.Options, at text.Position) []uint64 {
	d, err := text.NewDecoder(o)
	require.NoError(t, err)
	d.Reset(at)
	columns := text.NewColumns(bytes.Count(section, []byte("\n")) + 1)
	result, err := d.Decode(columns, 0, len(columns.Label), section, true)
	rows := make([]text.Row, result.Rows)
	for r := range rows {
		rows[r][0] = text.Cell{Value: columns.Label[r], Valid: columns.LabelValid[r] == 1}
		for i := range text.Dense {
			rows[r][1+i] = text.Cell{Value: columns.Dense[i][r], Valid: columns.DenseValid[i][r] == 1}
		}
		for i := range text.Sparse {
			rows[r][1+text.Dense+i] = text.Cell{Value: columns.Sparse[i][r], Valid: columns.SparseValid[i][r] == 1}
		}
	}
	return saidOfText(rows, result.Counts, err)
}

// lineReference returns the same by the definition. Where the definition finds an error, the place is that of the first
// line that is malformed.
func lineReference(section []byte, o text.Options, at text.Position) []uint64 {
	given := section
	mark := []byte("\xef\xbb\xbf")
	if at.Offset > 0 { // an empty line before keeps the mark
		given = append([]byte("\n"), section...)
	}
	rows, _, counts, err := text.Reference(given, o)
	if at.Offset > 0 {
		counts.Blank--
	}
	if err == nil {
		return saidOfText(rows, counts, nil)
	}
	rest := section
	if at.Offset == 0 {
		rest = bytes.TrimPrefix(section, mark)
		at.Offset += int64(len(section) - len(rest))
	}
	for line, ended := []byte(nil), false; len(rest) > 0; at.Line++ {
		line, rest, ended = bytes.Cut(rest, []byte("\n"))
		field, kind := malformedField(line, ended, o)
		if kind != nil && (o.Policy == text.Fail || errors.Is(kind, text.ErrLineTooLong)) {
			err = &text.RowError{Line: at.Line + 1, Offset: at.Offset, Field: field, Err: kind}
			break
		}
		at.Offset += int64(len(line)) + 1
	}
	return saidOfText(rows, counts, err)
}

var (
	decimalCell = regexp.MustCompile(`\A-?\d{1,10}\z`)
	hexCell     = regexp.MustCompile(`(?i)\A[0-9a-f]{1,8}\z`)
)

// malformedField returns the first malformed field of a line, or -1 where the line as a whole is, and how.
func malformedField(line []byte, ended bool, o text.Options) (field int, kind error) {
	if len(line) > text.MaxLine {
		return -1, text.ErrLineTooLong
	}
	if ended {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	if len(line) == 0 {
		return 0, nil
	}
	first := 0
	if o.LabelAbsent {
		first = 1
	}
	cells := strings.Split(string(line), "\t")
	if len(cells) != textFields-first {
		return -1, text.ErrFieldCount
	}
	for i, cell := range cells {
		number := i + first
		_, notInt32 := strconv.ParseInt(cell, 10, 32)
		decimal := decimalCell.MatchString(cell) && notInt32 == nil
		switch {
		case number == 0 && !decimal:
			return i, text.ErrLabel
		case cell == "":
		case number <= text.Dense && !decimal:
			return i, text.ErrDecimal
		case number > text.Dense && !hexCell.MatchString(cell):
			return i, text.ErrHex
		}
	}
	return 0, nil
}

// untidyLines returns an error if the results of a section contradict themselves, or hold anything where no cell ends.
func untidyLines(results []uint64, labelAbsent, begins bool) error {
	const words = 3
	first, field := 0, 0
	if labelAbsent {
		first = 1
	}
	field = first
	for at := 0; at < len(results); at += words {
		result := rtl.TextCells(results[at : at+words])
		switch {
		case result.Last != (at+words == len(results)):
			return fmt.Errorf("result %d of %d: last is %v", at/words, len(results)/words, result.Last)
		case result.Skipped && (at > 0 || !begins):
			return fmt.Errorf("result %d: a byte order mark is skipped", at/words)
		}
		for i, cell := range result.Cells {
			switch {
			case !cell.Kept && cell != (rtl.TextCell{}):
				return fmt.Errorf("result %d, byte %d: %+v ends no cell", at/words, i, cell)
			case !cell.Kept:
				continue
			case cell.Field != min(field, textFields):
				return fmt.Errorf("result %d, byte %d: field %d, and not %d", at/words, i, cell.Field, field)
			case cell.Present && (cell.Malformed || cell.Field == textFields) || !cell.Present && cell.Value != 0:
				return fmt.Errorf("result %d, byte %d: %+v holds a value", at/words, i, cell)
			}
			if field++; cell.End != rtl.TextLineGoesOn {
				field = first
			}
		}
	}
	return nil
}

// TestRealLines decodes real rows of Criteo by simulation, from every byte of a transfer on. 4 bytes take a cycle.
func TestRealLines(t *testing.T) {
	data, err := os.ReadFile(shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv"))
	require.NoError(t, err)
	unit, simulator := start(t, "text_decoder")
	c := lineCase("real lines", false, true, atPlaces(data, everyPlace))
	require.NoError(t, simulator.Configure(c.setup))
	results, cycles, err := simulator.Run(c.stream)
	require.NoError(t, err)
	requireResults(t, c, unit, c.kernel(t, c.stream), c.said(t, results), "unit")
	require.EqualValues(t, cyclesOf(c, unit), cycles)
	rows, _, err := rtl.TextRows(splitSections(unit, results)[0], text.Options{}, text.Position{})
	require.NoError(t, err)
	require.Len(t, rows, 3000)

	alone, cycles, err := simulator.Run(Stream{Words: rtl.TextTransfers(data)})
	require.NoError(t, err)
	require.Len(t, alone, 3*(len(data)/4+1))
	require.EqualValues(t, len(data)/4+1+unit.Latency, cycles)
	t.Logf("%d bytes and %d rows in %d cycles: %.4f bytes and %.6f rows a cycle", len(data), len(rows), cycles,
		float64(len(data))/float64(cycles), float64(len(rows))/float64(cycles))
}
