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

func combineHashCross(c *combination, o *Op, _ location) {
	for i := range c.inputs {
		if c.inputs[i].column.List {
			c.refuse(c.places[i], ErrColumnType, "hash_cross takes one value a row, and these are lists; cartesian takes lists")
		}
	}
	if !c.failed && c.requireIDs(o) {
		n := c.number(o, "buckets").Int
		c.yield(program.HashCross{Buckets: n}, idRange{0, n - 1}, true)
	}
}

func applyHashBucket(c *chain, o *Op, a location) {
	if c.requireIntegers(o, a) {
		n := c.number(o, "buckets").Int
		c.appendOp(program.HashBucket{Buckets: n})
		c.ids, c.bounded = idRange{0, n - 1}, true
	}
}
