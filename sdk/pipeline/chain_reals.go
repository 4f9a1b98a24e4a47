package pipeline

import (
	"github.com/millrace/millrace/fpga/operator/minmax"
	"github.com/millrace/millrace/fpga/operator/normalize"
	"github.com/millrace/millrace/fpga/program"
)

// toReals converts the values to float32 for an operator of real numbers, and reports whether it takes them.
func (c *chain) toReals(o *Op, a location) bool {
	if c.column.List && !c.denseList {
		c.refuse(a, ErrColumnType, "%s of a list: no tensor holds lists of real numbers", o.Name)
		return false
	}
	if !c.requireNumbers(o, a) {
		return false
	}
	c.convert(program.Float32)
	return true
}

// checkNormalRange refuses constants that are neither 0 nor in the range of normal float32 numbers.
func checkNormalRange(p *problems, o *Op, a location) {
	for _, v := range o.Args {
		if x, ok := v.Value.(Number); ok && !program.InNormalRange(x.Real()) {
			p.add(a.key(v.Name, firstPos(v.Pos, a.pos)), ErrValue, "%s, want 0 or a number of 1.2e-38 to 3.4e38, or its "+
				"negative", x)
		}
	}
}

func checkNormalize(p *problems, o *Op, a location) {
	if !checkConstants(p, o, a, "mean", "deviation") {
		return
	}
	checkNormalRange(p, o, a)
	if d, ok := o.arg("deviation"); ok && d.Value.(Number).Real() < 0 {
		p.add(a.key("deviation", firstPos(d.Pos, a.pos)), ErrValue, "%s, want at least 0", d.Value)
	}
}

func applyNormalize(c *chain, o *Op, a location) {
	if o.statisticsName() != "" {
		applyMeanOf(c, o, a)
	} else if c.toReals(o, a) {
		c.appendOp(normalize.Op{Mean: c.number(o, "mean").Real(), Deviation: c.number(o, "deviation").Real()})
	}
}

func checkMinMax(p *problems, o *Op, a location) {
	if !checkConstants(p, o, a, "min", "max") {
		return
	}
	checkNormalRange(p, o, a)
	low, hasLow := o.arg("min")
	high, hasHigh := o.arg("max")
	if hasLow && hasHigh && high.Value.(Number).Real() < low.Value.(Number).Real() {
		p.add(a, ErrValue, "min %s > max %s", low.Value, high.Value)
	}
}

func applyMinMax(c *chain, o *Op, a location) {
	if o.statisticsName() != "" {
		applyRangeOf(c, o, a)
	} else if c.toReals(o, a) {
		c.appendOp(minmax.Op{Min: c.number(o, "min").Real(), Max: c.number(o, "max").Real()})
	}
}
