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

func applyNGram(c *chain, o *Op, a location) {
	if !c.column.List {
		c.refuse(a, ErrColumnType, "ngram takes lists, and this column has one value a row")
		return
	}
	if c.requireIntegers(o, a) {
		c.appendOp(program.NGram{N: c.number(o, "n").Int})
		c.ids, c.bounded = idRange{math.MinInt64, math.MaxInt64}, false
	}
}

// mixesScores reports whether an operator of the feature makes ids of several, whose scores would belong to no id.
func (f *Feature) mixesScores() bool {
	return f.scored() && slices.ContainsFunc(f.Ops, func(op program.Op) bool { return op.Unit() == program.UnitNGram })
}
