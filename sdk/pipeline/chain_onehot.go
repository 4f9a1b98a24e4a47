package pipeline

import "github.com/millrace/millrace/fpga/program"

func checkOneHot(p *problems, o *Op, a location) {
	if n, ok := o.arg("classes"); ok && n.Value.(Number).Int > program.MaxOneHot {
		p.add(a.key("classes", firstPos(n.Pos, a.pos)), ErrValue, "%s, want at most %d", n.Value, program.MaxOneHot)
	}
	lower, hasLower := o.arg("lower")
	upper, hasUpper := o.arg("upper")
	switch {
	case hasLower && !hasUpper:
		p.add(a, ErrMissing, "upper: the end of the range that begins at lower")
	case hasUpper && !hasLower:
		p.add(a, ErrMissing, "lower: the beginning of the range that ends at upper")
	case hasLower && !lower.Value.(Number).less(upper.Value.(Number)):
		p.add(a, ErrValue, "lower %s, upper %s: want an upper bound above the lower", lower.Value, upper.Value)
	}
}

func applyOneHot(c *chain, o *Op, a location) {
	switch {
	case c.column.List:
		c.refuse(a, ErrColumnType, "onehot takes one value a row, and this column has lists")
		return
	case !c.requireNumbers(o, a):
		return
	}
	hot := program.OneHot{Classes: uint32(c.number(o, "classes").Int)}
	if lower, ok := o.arg("lower"); ok {
		c.convert(program.Float32)
		upper, _ := o.arg("upper")
		hot.Ranges, hot.Lower = true, float32(c.realNumber(o, lower.Value.(Number), "lower", a))
		hot.Upper = float32(c.realNumber(o, upper.Value.(Number), "upper", a))
		if step := (hot.Upper - hot.Lower) / float32(hot.Classes); !c.failed && !(step > 0 && step-step == 0) {
			c.refuse(a, ErrValue, "lower %s, upper %s: %d classes between them have no width in float32", lower.Value,
				upper.Value, hot.Classes)
			return
		}
	} else if !c.requireIntegers(o, a) {
		return
	}
	c.appendOp(hot)
	c.kind, c.nulls = program.Float32, nullness{fills: true} // a null is of no class
}

// endsInClasses reports whether operators end in onehot, behind which nothing can follow.
func endsInClasses(ops []program.Op) bool {
	if len(ops) == 0 {
		return false
	}
	_, ok := ops[len(ops)-1].(program.OneHot)
	return ok
}
