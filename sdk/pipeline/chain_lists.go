package pipeline

import (
	"math"
	"slices"

	"github.com/millrace/millrace/fpga/program"
)

func checkNGram(p *problems, o *Op, a location) {
	if n, ok := o.arg("n"); ok && n.Value.(Number).Int > program.MaxNGram {
		p.add(a.key("n", firstPos(n.Pos, a.pos)), ErrValue, "%s, want at most %d", n.Value, program.MaxNGram)
	}
}

// ngramModes are the modes of ngram by name.
var ngramModes = map[string]program.NGramMode{"fold": program.NGramFold, "rap": program.NGramRAP}

// listsWindows reports whether an operator lists the ids of windows.
func listsWindows(op program.Op) bool {
	windows, ok := op.(program.NGram)
	return ok && windows.Mode == program.NGramRAP
}

func applyNGram(c *chain, o *Op, a location) {
	if !c.column.List {
		c.refuse(a, ErrColumnType, "ngram takes lists, and this column has one value a row")
		return
	}
	if !c.requireIntegers(o, a) {
		return
	}
	windows := program.NGram{N: c.number(o, "n").Int, Mode: ngramModes[c.word(o, "mode")]}
	if windows.Mode == program.NGramFold {
		c.ids, c.bounded = idRange{math.MinInt64, math.MaxInt64}, false
	} else if slices.ContainsFunc(c.ops, listsWindows) {
		c.refuse(a, ErrValue, "mode rap a second time in a chain; say it once")
		return
	}
	c.appendOp(windows)
}

func applyListSlice(c *chain, o *Op, a location) {
	if !c.column.List {
		c.refuse(a, ErrColumnType, "list_slice takes lists, and this column has one value a row")
		return
	}
	if !c.requireNumbers(o, a) {
		return
	}
	slice := program.ListSlice{Start: c.number(o, "start").Int, End: program.NoEnd}
	if end, ok := o.arg("end"); ok {
		slice.End = end.Value.(Number).Int
	}
	if pad, ok := o.arg("pad"); ok {
		slice.Padded = true
		if n := pad.Value.(Number); c.kind == program.Int64 {
			slice.PadInt = c.wholeNumber(o, n, "pad", a)
			c.ids = idRange{min(c.ids.lo, slice.PadInt), max(c.ids.hi, slice.PadInt)}
		} else {
			slice.PadFloat = c.realNumber(o, n, "pad", a)
		}
		length, err := slice.Length()
		if err != nil {
			c.refuse(a, ErrValue, "pad: %v; lists are filled up to at most %d elements, as of start 0 and end 10, or of "+
				"start -10", err, program.MaxListLength)
		}
		if length > 1 && c.column.Source > program.Parquet {
			c.refuse(a, ErrColumnType, "pad: a row of text makes at most one id a key, and this fills lists up to %d; "+
				"leave pad out, or import the rows as Parquet (millrace dataset import)", length)
		}
	}
	c.appendOp(slice)
}

// movesIDs returns the name of an operator of the feature that makes ids of several ids with scores, which would belong
// to no id, or leaves out others than the last ids of a list; empty: none.
func (f *Feature) movesIDs() string {
	if f.scored() {
		return movesIDs(f.Ops)
	}
	return ""
}

// movesIDs returns the name of the first of such operators; empty: none.
func movesIDs(ops []program.Op) string {
	for _, op := range ops {
		switch op.Unit() {
		case program.UnitNGram, program.UnitListSlice:
			return op.Unit().String()
		}
	}
	return ""
}
