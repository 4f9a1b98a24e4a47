package terminal

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// leastWidth is the narrowest terminal that tables are folded for. On a narrower one lines run over.
const leastWidth = 20

// Width returns how many columns a terminal has, and 0 where w is not a terminal. COLUMNS, which shells set, overrides
// the terminal's own answer.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width := columns(f)
	if width == 0 {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	}
	return max(width, leastWidth)
}

// Colours reports whether text written to w may be coloured.
func Colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	return columns(f) > 0
}

// Colour is the beginning of a coloured text, as a terminal's control sequence.
type Colour string

// The colours that Paint uses, and the end of each.
const (
	Red    Colour = "\x1b[31m"
	Yellow Colour = "\x1b[33m"
	reset         = "\x1b[0m"
)

// Text puts a text into a colour.
func (c Colour) Text(s string) string { return string(c) + s + reset }

// alarms are the words that Paint colours where they stand alone in a cell or begin it.
var alarms = []struct {
	word   string
	colour Colour
}{
	{"failed", Red}, {"dead", Red}, {"critical", Red}, {"missing", Red}, {"revoked", Red}, {"expired", Red},
	{"untrusted", Red},
	{"abandoned", Red}, {"stuck", Red},
	{"waiting", Yellow}, {"draining", Yellow}, {"drained", Yellow}, {"degraded", Yellow}, {"suspect", Yellow},
	{"warning", Yellow},
}

// Paint colours the cells of a laid out table that begin with a word of alarm. A cell begins a line or stands behind
// two spaces, and the word ends at a space, a colon, a comma or the line's end.
func Paint(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i := 0; i < len(line); {
			if i == 0 || i >= 2 && line[i-2:i] == "  " {
				if word, colour := alarm(line[i:]); word > 0 {
					b.WriteString(colour.Text(line[i : i+word]))
					i += word
					continue
				}
			}
			b.WriteByte(line[i])
			i++
		}
	}
	return b.String()
}

// alarm returns the length and the colour of the word of alarm that s begins with, 0 where it begins with none.
func alarm(s string) (int, Colour) {
	for _, a := range alarms {
		rest, ok := strings.CutPrefix(s, a.word)
		if ok && (rest == "" || strings.ContainsRune(" :,;\n", rune(rest[0]))) {
			return len(a.word), a.colour
		}
	}
	return 0, ""
}
