package cast

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "cast", Unit: Unit,
	Example: "- cast: int64",
	Cost:    catalogue.Costs(0.8),
	Reads:   reads,
	Summary: "Makes numbers of another type. `int64` drops the fraction of a real number, which rounds it towards 0: " +
		"2.9 is 2, and -2.9 is -2. `float32` and `float64` are the nearest number, ties to even; beyond the largest " +
		"float32 that is an infinity. `float64_bits` is the 64 bits of the number as float64, read as an int64, so that " +
		"equal numbers are equal ids: -0 has the bits of 0, and every NaN those of 7ff8000000000000h.",
	Params: []catalogue.Param{
		{Name: "to", Type: catalogue.ParamChoice, Choices: []string{"int64", "float32", "float64", "float64_bits"},
			Alone: true, Summary: "the type"},
		{Name: "overflow", Type: catalogue.ParamChoice, Choices: []string{"fail", "as_null"},
			Default: catalogue.Text("fail"), Summary: "what becomes of a NaN, and of a number that is not an int64 without " +
				"its fraction, for `int64` (-2^63 is one, and 2^63 is not): `fail` fails the split, `as_null` makes a null of it"},
	},
	Takes: "int64, a uint64 up to 2^64 - 1, float32, float64. A DECIMAL is its value, as `decimal` makes it: float32 " +
		"for `float32`, and float64 for the others. Partitions that differ in the type of a number are float64, too",
	Yields: "`to`",
	Nulls:  "stay null; `overflow: as_null` makes new ones",
	Lists:  "element by element; a list with an element that becomes null is empty",
	Errors: "a number that overflows fails the split, with its row and the number, unless `overflow: as_null`",
	Source: "C, NumPy `astype` and PyTorch `to`, which drop fractions, too, and leave open what a number out of range " +
		"becomes; Spark `cast`, where it is an error under ANSI and the nearest int64 otherwise; pandas `astype`, where a " +
		"NaN is an error. Equal bits of equal numbers: Spark's keys of groups and joins",
	Check: check,
	Apply: apply,
}

// reads returns how the operator reads a column.
func reads(a catalogue.Arguments) catalogue.Use {
	if to, _ := a.Given("to"); to == catalogue.Text("float32") {
		return catalogue.UsedAsFloat32
	}
	return catalogue.UsedAsFloat64
}

func check(c catalogue.Check) {
	to, _ := c.Given("to")
	if _, ok := c.Given("overflow"); ok && to != catalogue.Text("int64") {
		c.Wrong("overflow", catalogue.ErrValue, "of %v, want to: int64, the only type that a number can overflow", to)
	}
}

// targets are the kinds of the words, but for float64_bits, whose numbers are float64 before.
var targets = map[string]struct {
	to   Target
	kind program.Kind
}{"int64": {Int64, program.Int64}, "float32": {Float32, program.Float32}, "float64": {Float64, program.Float64},
	"float64_bits": {Float64, program.Float64}}

func apply(c catalogue.Chain) {
	if !c.RequireNumbers() {
		return
	}
	target := targets[c.Word("to")]
	o := Op{To: target.to}
	if c.IsUnsigned() {
		o.From = Unsigned
	}
	if c.Word("overflow") == "as_null" {
		o.Overflow = Null
	}
	if c.Kind() != target.kind || o.From == Unsigned {
		c.Append(o)
		if o.Overflow == Null {
			c.MakesNulls()
		}
		ids := catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}
		if o.From == Unsigned {
			ids.Low = 0
		}
		c.SetIDs(ids, false)
	}
	if c.Word("to") == "float64_bits" {
		c.Append(Op{To: Float64Bits})
		c.SetIDs(catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}, false)
	}
}
