package pipeline

import (
	"math"

	"github.com/millrace/millrace/fpga/program"
)

func checkCartesian(p *problems, o *Op, a location) {
	if n, ok := o.arg("max_length"); ok && n.Value.(Number).Int > program.MaxCartesian {
		p.add(a.key("max_length", firstPos(n.Pos, a.pos)), ErrValue, "%s, want at most %d", n.Value, program.MaxCartesian)
	}
}

// overflowRules are the meanings of cartesian's words.
var overflowRules = map[string]program.Overflow{"cut": program.OverflowCut, "fail": program.OverflowFail}

func combineIDListTransform(c *combination, o *Op, _ location) {
	if c.requireIDs(o) {
		c.yield(program.IDListTransform{}, c.inputs[0].ids, c.inputs[0].bounded)
	}
}

func combineCartesian(c *combination, o *Op, _ location) {
	if c.requireIDs(o) {
		c.yield(program.Cartesian{MaxLength: c.number(o, "max_length").Int, Overflow: overflowRules[c.word(o, "overflow")]},
			idRange{math.MinInt64, math.MaxInt64}, false)
	}
}
