package papers

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// Places of a picture, in its units.
const (
	barHeight, barGap   = 18, 8
	barLeft, barRight   = 330, 700
	pictureWidth        = 800
	pictureTop          = 52
	ourFill, theirsFill = "#3b6ea8", "#a83b3b"
)

// pictureName is the name of a paper's picture, beside the page.
func pictureName(p *Paper) string { return "reproduction-" + p.Name + ".svg" }

// pictureOf draws a paper's bars as SVG. The bytes follow from the document and the result alone.
func pictureOf(p *Paper, r *Result) (string, error) {
	b := p.Picture
	values := make([]float64, len(b.Bars))
	most := 0.0
	for i, bar := range b.Bars {
		values[i] = bar.Paper
		if bar.Ours != "" {
			v, ok := r.Values[bar.Ours]
			if !ok {
				return "", fmt.Errorf("%w: the run has no value %s: run `make reproduce` again", errDocument, bar.Ours)
			}
			values[i] = v.Value
		}
		most = max(most, values[i])
	}
	height := pictureTop + len(b.Bars)*(barHeight+barGap) + 30
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" `+
		`font-size="12" role="img">`+"\n", pictureWidth, height)
	fmt.Fprintf(&s, "<title>%s</title>\n", escape(b.Title))
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	label(&s, 20, 26, "start", b.Title+", "+b.Unit)
	for i, bar := range b.Bars {
		y := pictureTop + i*(barHeight+barGap)
		fill := ourFill
		if bar.Ours == "" {
			fill = theirsFill
		}
		width := 0.0
		if most > 0 {
			width = values[i] / most * (barRight - barLeft)
		}
		label(&s, barLeft-8, y+barHeight-5, "end", bar.Label)
		fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", barLeft, y, width, barHeight, fill)
		label(&s, barLeft+int(width)+6, y+barHeight-5, "start", si(values[i]))
	}
	label(&s, 20, height-10, "start", "Blue: here, as the page says. Red: printed by the paper.")
	s.WriteString("</svg>\n")
	return s.String(), nil
}

// label writes a text.
func label(s *strings.Builder, x, y int, anchor, text string) {
	fmt.Fprintf(s, `<text x="%d" y="%d" text-anchor="%s" fill="#222222">%s</text>`+"\n", x, y, anchor, escape(text))
}

// escape writes a text as XML.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a strings.Builder returns no error
	return b.String()
}
