package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Screen draws a text again and again in the same place of a terminal.
type Screen struct {
	w     io.Writer
	width int
	paint bool
	drawn int // lines of the last text
}

// NewScreen returns a screen on a terminal of width columns. Width 0 says that w is not a terminal: then every Draw is
// written behind the last one.
func NewScreen(w io.Writer, width int) *Screen {
	return &Screen{w: w, width: width, paint: Colours(w)}
}

// Draw writes text in the place of the last one. On a terminal, lines that are too long are cut, since a line that runs
// over would put the next text in the wrong place.
func (s *Screen) Draw(text string) error {
	if s.width == 0 {
		_, err := io.WriteString(s.w, text)
		return err
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	b.WriteString("\x1b[J") // clears from here to the screen's end
	s.drawn = 0
	for line := range strings.Lines(text) {
		line = runewidth.Truncate(strings.TrimSuffix(line, "\n"), s.width, "…") + "\n"
		if s.paint {
			line = Paint(line)
		}
		b.WriteString(line)
		s.drawn++
	}
	_, err := io.WriteString(s.w, b.String())
	return err
}
