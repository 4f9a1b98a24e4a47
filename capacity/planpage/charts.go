package planpage

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/capacity/sizing"
)

const (
	chartWidth = 960
	labelWidth = 250
	barHeight  = 24
	ink        = "#142c48"
	grid       = "#c9d6e4"
	capExFill  = "#1f6fb5"
	opExFill   = "#e08e2b"
	misfitFill = "#a9b4c0"
	labelRoom  = 110 // pixels between the middles of two amounts below the tornado
	lowFill    = "#7aa6d0"
	highFill   = "#1f6fb5"
)

// counted returns the placements that have counts.
func counted(r *sizing.Report) (list []*sizing.Placement) {
	for i := range r.Placements {
		if r.Placements[i].NoFigure == "" {
			list = append(list, &r.Placements[i])
		}
	}
	return list
}

// costs draws a bar of CapEx and OpEx for each placement.
func costs(r *sizing.Report) string {
	list := counted(r)
	height := barHeight*len(list) + 40
	s := newSVG(chartWidth, height, "cost of each placement")
	most := 0.0
	for _, p := range list {
		most = max(most, p.Total)
	}
	x := scale{high: most, from: labelWidth, to: chartWidth - 90}
	for i, p := range list {
		y := float64(barHeight * i)
		capEx, opEx := capExFill, opExFill
		if !p.Fits {
			capEx, opEx = misfitFill, grid
		}
		s.text(labelWidth-8, y+16, "end", p.Name)
		middle, end := x.at(p.CapEx), x.at(p.Total)
		s.rectangle(labelWidth, y+4, middle-labelWidth, barHeight-8, capEx)
		s.rectangle(middle, y+4, end-middle, barHeight-8, opEx)
		s.text(end+6, y+16, "start", dollars(p.Total))
	}
	y := float64(height - 22)
	s.rectangle(labelWidth, y, 12, 12, capExFill)
	s.text(labelWidth+18, y+11, "start", "CapEx")
	s.rectangle(labelWidth+80, y, 12, 12, opExFill)
	s.text(labelWidth+98, y+11, "start", "OpEx")
	return s.finish()
}

// mostBars bounds the tornado; the table below it has every figure.
const mostBars = 15

// tornado draws, for each figure, the answer between the ends of its range.
func tornado(r *sizing.Report) string {
	moves := r.Tornado[:min(len(r.Tornado), mostBars)]
	answer := func(o sizing.Outcome) float64 {
		if o.InStorage == 0 {
			return o.USD
		}
		return o.Margin
	}
	now := answer(r.Answer)
	low, high := now, now
	for _, m := range moves {
		low, high = min(low, answer(m.AtLow), answer(m.AtHigh)), max(high, answer(m.AtLow), answer(m.AtHigh))
	}
	s := newSVG(chartWidth, barHeight*len(moves)+46, "figures that move the answer")
	if len(moves) == 0 {
		s.text(0, 20, "start", "no figure moves the answer")
		return s.finish()
	}
	x := scale{low: low, high: high, from: labelWidth, to: chartWidth - 100}
	bottom := float64(barHeight * len(moves))
	for i, m := range moves {
		y := float64(barHeight * i)
		a, b := x.at(answer(m.AtLow)), x.at(answer(m.AtHigh))
		s.text(labelWidth-8, y+16, "end", m.Figure)
		s.rectangle(min(a, x.at(now)), y+4, math.Abs(x.at(now)-a), barHeight/2-4, lowFill)
		s.rectangle(min(b, x.at(now)), y+barHeight/2, math.Abs(x.at(now)-b), barHeight/2-4, highFill)
	}
	s.line(x.at(now), 0, x.at(now), bottom, grid)
	if low < 0 && high > 0 {
		s.line(x.at(0), 0, x.at(0), bottom+4, ink)
		s.text(x.at(0), bottom+18, "middle", "0")
	}
	s.text(x.at(low), bottom+18, "start", dollars(low))
	s.text(x.at(high), bottom+18, "end", dollars(high))
	if at := x.at(now); at-x.from > labelRoom && x.to-at > labelRoom && math.Abs(at-x.at(0)) > labelRoom {
		s.text(at, bottom+18, "middle", dollars(now)+" now")
	}
	s.rectangle(labelWidth, bottom+28, 12, 12, lowFill)
	s.text(labelWidth+18, bottom+39, "start", "at the low end")
	s.rectangle(labelWidth+180, bottom+28, 12, 12, highFill)
	s.text(labelWidth+198, bottom+39, "start", "at the high end")
	return s.finish()
}

// strokes tell the lines of placements apart, by colour and by dashes where a page is printed in grey.
var strokes = []struct{ colour, dashes string }{
	{"#1f6fb5", "0"}, {"#c0392b", "6 3"}, {"#2e8b57", "2 2"}, {"#8e44ad", "8 3 2 3"}, {"#e08e2b", "0"},
	{"#16a2b8", "6 3"}, {"#7f5539", "2 2"}, {"#d6336c", "8 3 2 3"}, {"#4a5568", "0"}, {"#94a307", "6 3"},
}

// growth draws the cost of each placement by T.
func growth(r *sizing.Report) string {
	list := counted(r)
	plotHeight := 360.0
	s := newSVG(chartWidth, int(plotHeight)+50, "cost of each placement by T")
	if len(r.Sweep) == 0 || len(list) == 0 {
		s.text(0, 20, "start", "no placement has counts")
		return s.finish()
	}
	low, high := math.Inf(1), 0.0
	for _, p := range r.Sweep {
		for _, c := range p.Costs {
			low, high = min(low, c.USD), max(high, c.USD)
		}
	}
	x := scale{low: r.Sweep[0].T, high: r.Sweep[len(r.Sweep)-1].T, from: 70, to: chartWidth - 190, logarithmic: true}
	y := scale{low: low, high: high, from: plotHeight, to: 10, logarithmic: true}
	for e := math.Ceil(math.Log10(low)); e <= math.Log10(high); e++ {
		v := math.Pow(10, e)
		s.line(x.from, y.at(v), x.to, y.at(v), grid)
		s.text(x.from-6, y.at(v)+4, "end", dollars(v))
	}
	for e := math.Ceil(math.Log10(x.low)); e <= math.Log10(x.high); e++ {
		v := math.Pow(10, e)
		s.line(x.at(v), y.from, x.at(v), y.to, grid)
		s.text(x.at(v), plotHeight+18, "middle", fmt.Sprintf("%.0e", v))
	}
	s.text((x.from+x.to)/2, plotHeight+40, "middle", "T, rows a second")
	for i, p := range list {
		var xs, ys []float64
		for _, point := range r.Sweep {
			for _, c := range point.Costs {
				if c.Placement == p.Name && c.Fits {
					xs, ys = append(xs, x.at(point.T)), append(ys, y.at(c.USD))
				}
			}
		}
		if len(xs) == 0 {
			continue // it fits at no T
		}
		k := strokes[i%len(strokes)]
		width := 1.5
		if p.Name == sizing.InStorage {
			width = 3
		}
		s.path(xs, ys, k.colour, k.dashes, width)
		at := 20 + 18*float64(i)
		s.path([]float64{x.to + 14, x.to + 44}, []float64{at - 4, at - 4}, k.colour, k.dashes, width)
		s.text(x.to+50, at, "start", p.Name)
	}
	return s.finish()
}
