package cartesian

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "cartesian", Unit: Unit, Inputs: 2,
	Example: "- cartesian: {max_length: 100}",
	Summary: "Takes two inputs and makes an id of every pair of an id of the first and an id of the second, " +
		"row-major: the hash that `sigrid_hash` computes before its modulus, of the second id with the first as " +
		"its salt.",
	Params: []catalogue.Param{
		{Name: "max_length", Type: catalogue.ParamInteger, Min: 1, Default: catalogue.Int(1024),
			Summary: "most ids of a row, at most 65536"},
		{Name: "overflow", Type: catalogue.ParamChoice, Choices: []string{"cut", "fail"}, Default: catalogue.Text("cut"),
			Summary: "what becomes of a row with more: `cut` keeps the first ids, `fail` refuses the row"},
	},
	Takes:   "two inputs of int64, scalars or lists",
	Yields:  "int64: a scalar if both inputs are scalars, else lists; end with `sigrid_hash` or `positive_modulus`",
	Nulls:   "a null, or a list that holds a null, has no ids, so that the row makes none",
	Lists:   "a scalar is a list of one id",
	Errors:  "an input is not int64; `max_length` is not 1 to 65536; with `overflow: fail`, a row that makes more ids",
	Source:  "DPP Cartesian; no public exact definition: order, hash and bound are ours",
	Check:   checkArguments,
	Combine: combine,
}

func checkArguments(c catalogue.Check) {
	if n, ok := c.Given("max_length"); ok && n.(catalogue.Number).Int > MaxIDs {
		c.Wrong("max_length", catalogue.ErrValue, "%s, want at most %d", n, MaxIDs)
	}
}

func combine(c catalogue.Combination) {
	taken := true
	for i := range c.Inputs() {
		taken = c.Take(i, program.Int64) && taken
	}
	if !taken {
		return
	}
	c.Yield(Op{MaxLength: c.Number("max_length").Int, Overflow: overflows[c.Word("overflow")]},
		catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}, false, false)
}

// overflows are the rules by name.
var overflows = map[string]Overflow{"cut": Cut, "fail": Fail}
