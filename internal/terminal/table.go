package terminal

import (
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mattn/go-runewidth"
)

const (
	gap         = 2  // spaces between columns
	leastColumn = 8  // columns are not folded below this, unless the table has too many of them
	mostLines   = 12 // of one cell; a longer cell ends with an ellipsis
)

// Table lays out lines whose cells are separated by tabs. Columns are as wide as their widest cell. If a table is
// then wider than width, its widest columns are folded. Width 0 folds nothing.
func Table(text string, width int) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, gap, ' ', 0)
	// A strings.Builder does not fail, and so neither does the tabwriter over it.
	_, _ = w.Write([]byte(text))
	_ = w.Flush()
	if width == 0 || fits(b.String(), width) {
		return b.String()
	}
	b.Reset()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		j := i
		for j < len(lines) && strings.Contains(lines[j], "\t") {
			j++
		}
		if j == i { // no table: a line of text
			rest := strings.TrimLeft(lines[i], " ")
			indent := lines[i][:min(len(lines[i])-len(rest), width/2)]
			for _, folded := range fold(rest, width-len(indent)) {
				b.WriteString(indent + folded + "\n")
			}
			i++
			continue
		}
		layOut(&b, lines[i:j], width)
		i = j
	}
	return b.String()
}

// fits reports whether no line is wider than width.
func fits(text string, width int) bool {
	for line := range strings.Lines(text) {
		if runewidth.StringWidth(strings.TrimSuffix(line, "\n")) > width {
			return false
		}
	}
	return true
}

// layOut writes one table whose rows are lines.
func layOut(b *strings.Builder, lines []string, width int) {
	rows := make([][]string, len(lines))
	var natural []int
	for i, line := range lines {
		rows[i] = strings.Split(line, "\t")
		for c, cell := range rows[i] {
			if c == len(natural) {
				natural = append(natural, 0)
			}
			natural[c] = max(natural[c], runewidth.StringWidth(cell))
		}
	}
	widths := narrow(natural, width-gap*(len(natural)-1))
	for _, row := range rows {
		cells := make([][]string, len(row))
		height := 1
		for c, cell := range row {
			cells[c] = fold(cell, widths[c])
			height = max(height, len(cells[c]))
		}
		for l := range height {
			line := ""
			for c := range row {
				part := ""
				if l < len(cells[c]) {
					part = cells[c][l]
				}
				line += part
				if c < len(row)-1 {
					line += strings.Repeat(" ", widths[c]-runewidth.StringWidth(part)+gap)
				}
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
}

// narrow takes columns' natural widths and makes the widest narrower until all together take at most room, but none
// below leastColumn, unless room is too small for that many columns of leastColumn.
func narrow(natural []int, room int) []int {
	widths := slices.Clone(natural)
	least := min(leastColumn, max(1, room/len(widths)))
	total := 0
	for _, w := range widths {
		total += w
	}
	for total > room {
		widest := 0
		for c, w := range widths {
			if w > widths[widest] {
				widest = c
			}
		}
		if widths[widest] <= least {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}

// fold breaks a cell into lines of at most width columns, at spaces where there are any, else behind a "/" or "," in
// the second half of the line, else anywhere. A cell of more than mostLines lines ends with an ellipsis.
func fold(cell string, width int) []string {
	if runewidth.StringWidth(cell) <= width {
		return []string{cell}
	}
	var lines []string
	for cell != "" {
		if len(lines) == mostLines {
			last := lines[mostLines-1]
			lines[mostLines-1] = runewidth.Truncate(last, max(0, width-1), "") + "…"
			break
		}
		head := runewidth.Truncate(cell, width, "")
		if head == "" { // a rune wider than the column
			head = cell[:len(string([]rune(cell)[:1]))]
		}
		if len(head) < len(cell) && cell[len(head)] != ' ' {
			if i := strings.LastIndexByte(head, ' '); i > 0 {
				head = head[:i]
			} else if i := strings.LastIndexAny(head, "/,"); i > len(head)/2 {
				head = head[:i+1]
			}
		}
		lines = append(lines, strings.TrimRight(head, " "))
		cell = strings.TrimLeft(cell[len(head):], " ")
	}
	return lines
}
