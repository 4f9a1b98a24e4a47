package papers

import (
	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/fpga/timing/exploration"
)

// unitCount is how many of a unit of fpga/rtl a part of a design has.
type unitCount struct {
	unit  string
	count int
}

// areaOf returns the area of units of fpga/rtl.
func areaOf(s rtl.Synthesis, units []unitCount) (a exploration.Area, err error) {
	for _, u := range units {
		r, err := s.Named(u.unit)
		if err != nil {
			return a, err
		}
		a.LUT += u.count * (r.LUT + r.SRL + r.LUTRAM)
		a.BRAM18 += u.count * r.BRAM18
		a.URAM += u.count * r.URAM
		a.DSP += u.count * r.DSP
	}
	return a, nil
}

// prestoUnits are the parts of Table II, made of the units of fpga/rtl for eight values a cycle. The decoder has what
// pages of RM1 to RM5 want: PLAIN values, 4 a cycle; indices, 8 a cycle, and their dictionary, 4 a cycle; repetition
// and definition levels, 8 a cycle, and the lengths of lists. Nulls are filled and dense values clamped before the
// operators, as the pipelines do.
func prestoUnits() map[string][]unitCount {
	const eight = timing.TableIIElements
	return map[string][]unitCount{
		"decode":      {{"plain_decoder", 2}, {"dictionary_gather", 2}, {"hybrid_decoder", 3}, {"list_lengths", 1}},
		"bucketize":   {{"bucketize", eight}},
		"sigrid_hash": {{"sigrid_hash", eight}},
		"log":         {{"log", eight}},
		"between":     {{"fill_null", 3 * eight}, {"clamp", eight}},
	}
}

// tableII sets the shares of the SmartSSD's FPGA that the units of fpga/rtl take.
func tableII(r *Result) error {
	synthesis, err := rtl.ReadSynthesis()
	if err != nil {
		return err
	}
	board := exploration.SmartSSD()
	var total exploration.Area
	set := func(name string, a exploration.Area) {
		for _, v := range []struct {
			resource              string
			used, whole, platform int
		}{{"lut", a.LUT, board.FPGA.LUT, board.Platform.LUT}, {"bram", a.BRAM18, board.FPGA.BRAM18, board.Platform.BRAM18},
			{"uram", a.URAM, board.FPGA.URAM, board.Platform.URAM}, {"dsp", a.DSP, board.FPGA.DSP, board.Platform.DSP}} {
			r.set(Modelled, "table2."+name+"."+v.resource, "share", float64(v.used)/float64(v.whole-v.platform))
		}
	}
	for name, units := range prestoUnits() {
		a, err := areaOf(synthesis, units)
		if err != nil {
			return err
		}
		set(name, a)
		total = exploration.Area{LUT: total.LUT + a.LUT, BRAM18: total.BRAM18 + a.BRAM18, URAM: total.URAM + a.URAM,
			DSP: total.DSP + a.DSP}
	}
	set("total", total)
	return nil
}
