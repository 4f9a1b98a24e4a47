package planpage

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// svg is a picture in the making. Its coordinates are pixels from the left upper corner.
type svg struct{ b strings.Builder }

func newSVG(width, height int, label string) *svg {
	s := new(svg)
	fmt.Fprintf(&s.b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, html.EscapeString(label))
	return s
}

func (s *svg) rectangle(x, y, width, height float64, fill string) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, x, y, max(width, 0), height, fill)
}

func (s *svg) line(x1, y1, x2, y2 float64, stroke string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`, x1, y1, x2, y2, stroke)
}

// text writes a text that ends, begins or is centred at x; anchor is start, middle or end.
func (s *svg) text(x, y float64, anchor, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, x, y, anchor, html.EscapeString(text))
}

// path draws a line through points.
func (s *svg) path(xs, ys []float64, stroke, dashes string, width float64) {
	fmt.Fprintf(&s.b, `<polyline fill="none" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s" points="`, stroke,
		width, dashes)
	for i := range xs {
		fmt.Fprintf(&s.b, "%.1f,%.1f ", xs[i], ys[i])
	}
	s.b.WriteString(`"/>`)
}

func (s *svg) finish() string { return s.b.String() + "</svg>" }

// dollars writes an amount in short.
func dollars(v float64) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	for _, unit := range []string{"", " k", " M", " G"} {
		if v < 999.5 || unit == " G" {
			return fmt.Sprintf("%s$%.3g%s", sign, v, unit)
		}
		v /= 1000
	}
	return ""
}

// scale maps values onto pixels.
type scale struct {
	low, high   float64 // values
	from, to    float64 // pixels
	logarithmic bool
}

// at returns the pixel of a value. A range without a width is drawn at its beginning.
func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.logarithmic {
		v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
	}
	if high <= low {
		return s.from
	}
	return s.from + (v-low)/(high-low)*(s.to-s.from)
}
