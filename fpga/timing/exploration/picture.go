package exploration

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Places of the picture, in its units.
const (
	pictureWidth, pictureHeight = 760, 460
	plotLeft, plotRight         = 90, 730
	plotTop, plotBottom         = 60, 390
	ticks                       = 5
)

// Picture draws rows/s over the largest share of a resource as SVG: the frontier as a line, the best design, PreSto's,
// and PreSto's counts. The bytes follow from the report alone.
func (r Report) Picture(title string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" `+
		`font-size="12" role="img">`+"\n", pictureWidth, pictureHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, pictureHeight)
	text(&b, plotLeft, 28, "start", "15", title)
	mostShare, mostRows := r.scales()
	x := func(share float64) float64 { return plotLeft + (plotRight-plotLeft)*share/mostShare }
	y := func(rows float64) float64 { return plotBottom - (plotBottom-plotTop)*rows/mostRows }
	for i := range ticks + 1 {
		share, rows := mostShare*float64(i)/ticks, mostRows*float64(i)/ticks
		fmt.Fprintf(&b, `<path d="M%.1f %dV%dM%d %.1fH%d" stroke="#dddddd"/>`+"\n", x(share), plotTop, plotBottom, plotLeft,
			y(rows), plotRight)
		text(&b, x(share), plotBottom+18, "middle", "12", fmt.Sprintf("%.3g %%", 100*share))
		text(&b, plotLeft-8, y(rows)+4, "end", "12", shortRate(rows))
	}
	text(&b, (plotLeft+plotRight)/2, plotBottom+38, "middle", "12",
		"largest share of a resource (LUT, block RAM, UltraRAM or DSP) that the platform leaves")
	text(&b, plotLeft, plotTop-10, "start", "12", "rows/s of the model")
	var line []string
	for i := range r.Frontier {
		d := &r.Frontier[i]
		line = append(line, fmt.Sprintf("%.1f,%.1f", x(d.LargestShare), y(d.RowsPerSecond)))
	}
	fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="#3b6ea8" stroke-width="2"/>`+"\n", strings.Join(line, " "))
	for _, m := range []struct {
		d      *Design
		colour string
		dy     float64
	}{{&r.PreSto, "#a83b3b", -10}, {&r.Counted, "#9a6a1c", 18}, {&r.Best, "#2f7d46", -10}} {
		px, py := x(m.d.LargestShare), y(m.d.RowsPerSecond)
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>`+"\n", px, py, m.colour)
		anchor := "start"
		if px > (plotLeft+plotRight)/2 {
			anchor = "end"
		}
		text(&b, px, py+m.dy, anchor, "12", fmt.Sprintf("%s: bound by %s", m.d.Name, m.d.Bottleneck))
	}
	text(&b, plotLeft, pictureHeight-10, "start", "11", "A model: no board ran. PreSto's area is its Table II's, with "+
		"memory ports; other areas have none, and clocks are requested.")
	b.WriteString("</svg>\n")
	return b.String()
}

// scales returns the ends of the axes.
func (r Report) scales() (share, rows float64) {
	for _, d := range append([]Design{r.PreSto, r.Counted}, r.Frontier...) {
		share, rows = max(share, d.LargestShare), max(rows, d.RowsPerSecond)
	}
	return roundUp(share), roundUp(1.1 * rows)
}

// roundUp returns the next number above that is 1, 2 or 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if v <= n*power {
			return n * power
		}
	}
	return 10 * power
}

// shortRate writes a rate as people do.
func shortRate(rows float64) string {
	switch {
	case rows >= 1e6:
		return fmt.Sprintf("%.3g M", rows/1e6)
	case rows >= 1e3:
		return fmt.Sprintf("%.3g k", rows/1e3)
	}
	return fmt.Sprintf("%.3g", rows)
}

// text writes a line of text.
func text(b *strings.Builder, x, y float64, anchor, size, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%s" fill="#222222">%s</text>`+"\n", x, y, anchor,
		size, escape(s))
}

// escape writes a text so that XML reads it.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
