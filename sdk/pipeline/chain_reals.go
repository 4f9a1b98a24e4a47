package pipeline

import "github.com/millrace/millrace/fpga/program"

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

func checkLogit(p *problems, o *Op, a location) {
	if eps, ok := o.arg("eps"); ok && eps.Value.(Number).float32() > 0.5 {
		p.add(a.key("eps", eps.Pos), ErrValue, "%s, want at most 0.5", eps.Value)
	}
}

func applyLogit(c *chain, o *Op, a location) {
	if c.toReals(o, a) {
		c.appendOp(program.Logit{Eps: c.number(o, "eps").float32()})
	}
}

var boxCoxModes = map[string]program.BoxCoxMode{"caffe2": program.BoxCoxCaffe2, "rap": program.BoxCoxRAP}

func checkBoxCox(p *problems, o *Op, a location) {
	mode, hasMode := o.arg("mode")
	shift, hasShift := o.arg("lambda2")
	if hasMode && hasShift && mode.Value == Text("rap") && shift.Value.(Number).float32() != 0 {
		p.add(a.key("lambda2", shift.Pos), ErrValue, "%s with mode rap, which has none; leave it out, or say mode: caffe2",
			shift.Value)
	}
}

func applyBoxCox(c *chain, o *Op, a location) {
	if c.toReals(o, a) {
		c.appendOp(program.BoxCox{
			Lambda1: c.number(o, "lambda1").float32(), Lambda2: c.number(o, "lambda2").float32(),
			Mode: boxCoxModes[c.word(o, "mode")],
		})
	}
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
		c.appendOp(program.Normalize{Mean: c.number(o, "mean").Real(), Deviation: c.number(o, "deviation").Real()})
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
		c.appendOp(program.MinMax{Min: c.number(o, "min").Real(), Max: c.number(o, "max").Real()})
	}
}
