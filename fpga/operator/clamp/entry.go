package clamp

import (
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "clamp", Unit: Unit,
	Example: "- clamp: {min: 0, max: 100}",
	Cost:    catalogue.Costs(0.11),
	Reads:   catalogue.As(catalogue.UsedAsUnknown),
	Summary: "Bounds values: below `min` gives `min`, above `max` gives `max`. `clamp: {min: 0}` is Piper's " +
		"Neg2Zero.",
	Params: []catalogue.Param{
		{Name: "min", Type: catalogue.ParamNumber, Optional: true, Summary: "lower bound; none when left out"},
		{Name: "max", Type: catalogue.ParamNumber, Optional: true, Summary: "upper bound; none when left out"},
	},
	Takes: "int64, float32, float64", Yields: "the same",
	Nulls: "stay null",
	Lists: "element by element",
	Errors: "neither bound is given; `min` > `max`; a bound is not whole for an int64 column or does not fit " +
		"float32 for a float32 column. A NaN passes, and so does -0 at a bound of 0; an infinity becomes the " +
		"bound",
	Source: "TorchArrow `clamp_list` (std::clamp); for float32 columns the bounds are rounded to float32",
	Check:  checkArguments,
	Apply:  apply,
}

func checkArguments(c catalogue.Check) {
	low, hasLow := c.Given("min")
	high, hasHigh := c.Given("max")
	switch {
	case !hasLow && !hasHigh:
		c.Wrong("", catalogue.ErrMissing, "min or max")
	case hasLow && hasHigh && high.(catalogue.Number).Less(low.(catalogue.Number)):
		c.Wrong("", catalogue.ErrValue, "min %s > max %s", low, high)
	}
}

func apply(c catalogue.Chain) {
	if !c.RequireNumbers() {
		return
	}
	low, hasLow := c.Given("min")
	high, hasHigh := c.Given("max")
	o := Op{IntLo: math.MinInt64, IntHi: math.MaxInt64}
	if c.Kind() != program.Int64 {
		o = Op{FloatLo: math.Inf(-1), FloatHi: math.Inf(1)}
		if hasLow {
			o.FloatLo = c.RealNumber("min", low.(catalogue.Number))
		}
		if hasHigh {
			o.FloatHi = c.RealNumber("max", high.(catalogue.Number))
		}
		c.Append(o)
		return
	}
	if hasLow {
		o.IntLo = c.WholeNumber("min", low.(catalogue.Number))
	}
	if hasHigh {
		o.IntHi = c.WholeNumber("max", high.(catalogue.Number))
	}
	ids := c.IDs()
	ids.Low, ids.High = min(max(ids.Low, o.IntLo), o.IntHi), max(min(ids.High, o.IntHi), o.IntLo)
	c.SetIDs(ids, c.Bounded() || hasHigh)
	c.Append(o)
}
