package cosim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/unit/text"
)

// hardDecimals and hardHexes are cells at the ends of what a field may hold, and behind them.
func hardDecimals() []string {
	return []string{"", "0", "9", "-0", "-1", "-", "--1", "1-", "-1-", "+1", " 1", "1 ", "0000000000", "00000000000",
		"-0000000001", "-00000000001", "2147483647", "2147483648", "-2147483647", "-2147483648", "-2147483649",
		"2199999999", "2200000000", "-2200000000", "4294967295", "4294967296", "9999999999", "-9999999999",
		"12345678901234567", "0123456789", "99999999", "100000000", "-99999999", "999999", "65536", "1a", "a", "0x1", "1\r",
		"\r", "\r1", "1\r\r", "\r\r", "1.5", "1\x00", "\xef\xbb\xbf1", "1e3", "12", "123", "-12", "12345", "1234567"}
}

func hardHexes() []string {
	return []string{"", "0", "f", "F", "ffffffff", "FFFFFFFF", "00000000", "80000000", "123456789", "0123456789abcdef0",
		"0x1a", "1_0", "-1", "-", "g", "G", "@", "`", "/", ":", "abcdefabc", "aB", "abC", "abcD", "1abcde", "1abcdef", "1\r",
		"\r", "\ra", "a\r\r", " a", "a ", "\xc3\xa9", "0000000g", "g0000000", "\x7f", "12345678\r", "12345678\ra"}
}

// textRow is a line of cells without its end.
type textRow []string

// drawRow draws a good line.
func drawRow(draw *rand.Rand, labelAbsent bool) textRow {
	row := textRow{[]string{"0", "1", "01", "-1", "0001"}[draw.IntN(5)]}
	if labelAbsent {
		row = nil
	}
	for range text.Dense {
		value := fmt.Sprint(int32(draw.Uint32()) >> draw.IntN(32))
		if draw.IntN(4) == 0 {
			value = ""
		}
		row = append(row, value)
	}
	for range text.Sparse {
		value := fmt.Sprintf([]string{"%08x", "%08X", "%x"}[draw.IntN(3)], draw.Uint32()>>draw.IntN(32))
		if draw.IntN(4) == 0 {
			value = ""
		}
		row = append(row, value)
	}
	return row
}

// spoil changes a line in one of the ways in which lines are malformed, or in which they look so.
func (row textRow) spoil(draw *rand.Rand, labelAbsent bool) textRow {
	first := 0
	if labelAbsent {
		first = 1
	}
	at := draw.IntN(len(row))
	switch draw.IntN(6) {
	case 0:
		return row[:at]
	case 1:
		return append(row, make(textRow, draw.IntN(12))...)
	case 2:
		row[0] = ""
	case 3:
		row[at] += string(rune(draw.IntN(256)))
	default:
		hard := hardHexes()
		if at+first <= text.Dense {
			hard = hardDecimals()
		}
		row[at] = hard[draw.IntN(len(hard))]
	}
	return row
}

// drawText draws lines, of which one in some is spoiled, if any.
func drawText(draw *rand.Rand, lines, spoiled int, labelAbsent bool) []byte {
	var b strings.Builder
	for range lines {
		row := drawRow(draw, labelAbsent)
		if spoiled > 0 && draw.IntN(spoiled) == 0 {
			row = row.spoil(draw, labelAbsent)
		}
		b.WriteString(strings.Join(row, "\t"))
		b.WriteString([]string{"\n", "\n", "\r\n", "\n\n", "\n\r\n\n"}[draw.IntN(5)])
	}
	return []byte(b.String())
}

// hardLines are lines with each hard cell as the label, the first and last decimal, and the first and last hexadecimal
// one, the last before each end of a line.
func hardLines(labelAbsent bool) []byte {
	var b strings.Builder
	first := 0
	if labelAbsent {
		first = 1
	}
	write := func(field int, cell, end string) {
		row := make(textRow, textFields)
		row[0], row[field] = "1", cell
		b.WriteString(strings.Join(row[first:], "\t") + end)
	}
	for _, cell := range hardDecimals() {
		for _, field := range []int{first, 1, 2, text.Dense} {
			write(field, cell, "\n")
		}
	}
	for _, cell := range hardHexes() {
		for _, field := range []int{text.Dense + 1, text.Dense + 2, textFields - 1} {
			write(field, cell, "\n")
		}
		write(textFields-1, cell, "\r\n")
	}
	return []byte(b.String())
}

// longLines are sections with a line around the limit, which begins and ends anywhere in a transfer.
func longLines() [][]byte {
	var sections [][]byte
	for before := range 4 {
		for _, n := range []int{text.MaxLine - 1, text.MaxLine, text.MaxLine + 1, text.MaxLine + 2} {
			b := append(bytes.Repeat([]byte("\n"), before), bytes.Repeat([]byte("5"), n-1)...)
			b = append(b, "\r\n1"...)
			b = append(b, strings.Repeat("\t", textFields-1)...)
			sections = append(sections, append(b, "7\n"...))
		}
	}
	marked := append([]byte("\xef\xbb\xbf"), bytes.Repeat([]byte("\t"), text.MaxLine)...)
	return append(sections, marked, append(slices.Clone(marked), '\n'), append(slices.Clone(marked), '\t'),
		bytes.Repeat([]byte("\t"), 3*text.MaxLine))
}

// everyPlace are the bytes of a transfer.
var everyPlace = []int{0, 1, 2, 3}

// atPlaces returns sections of the same text, which begins at some bytes of a transfer, behind empty lines.
func atPlaces(b []byte, places []int) [][]byte {
	var sections [][]byte
	for _, before := range places {
		sections = append(sections, append(bytes.Repeat([]byte("\n"), before), b...))
	}
	return sections
}

// shortTexts are all texts of up to some bytes of a few characters, the same behind a byte order mark, and parts of
// the mark.
func shortTexts(characters string, most int) [][]byte {
	texts := [][]byte{{}}
	for from, length := 0, 1; length <= most; length++ {
		end := len(texts)
		for _, b := range texts[from:end] {
			for _, c := range []byte(characters) {
				texts = append(texts, append(slices.Clone(b), c))
			}
		}
		from = end
	}
	for _, b := range slices.Clone(texts) {
		texts = append(texts, append([]byte("\xef\xbb\xbf"), b...))
	}
	return append(texts, []byte("\xef"), []byte("\xef\xbb"))
}

// drawCharacters draws sections of the characters that mean something.
func drawCharacters(draw *rand.Rand, count int) [][]byte {
	var sections [][]byte
	for range 2 + count/64 {
		b := make([]byte, draw.IntN(8+count/8))
		for i := range b {
			b[i] = "\t\t\t\t\t\t\n\r-0123456789afAFg\xef\xbb\xbf"[draw.IntN(26)]
		}
		sections = append(sections, b)
	}
	return sections
}
