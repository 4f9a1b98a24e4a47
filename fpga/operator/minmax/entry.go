package minmax

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "min_max", Unit: Unit,
	Example: "- min_max: {min: 0, max: 255}",
	Cost:    catalogue.Costs(75),
	Reads:   catalogue.As(catalogue.UsedAsFloat32),
	Summary: "The correctly rounded float32 of (x - `min`) / (`max` - `min`), or of x / 2x where both are one " +
		"number. x is a float32, `min` and `max` are float64, and nothing is rounded between. Nothing is clamped.",
	Params: []catalogue.Param{
		{Name: "min", Type: catalogue.ParamReal, Optional: true, Summary: "becomes 0"},
		{Name: "max", Type: catalogue.ParamReal, Optional: true, Summary: "becomes 1; at least `min`"},
		{Name: catalogue.StatisticsParameter, Type: catalogue.ParamText, Optional: true,
			Summary: "instead of both, one of the document's `statistics`: " +
				"the least and the greatest of the values that the operator takes"},
	},
	Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
	Nulls: "stay null",
	Lists: "refused",
	Errors: "`max` is below `min`; a bound that is neither 0 nor in the range of normal float32 numbers; statistics " +
		"that lack the value, or have no finite value of it. A NaN stays " +
		"one (7fc00000h), and an infinity itself. With equal bounds the result is 0.5, and NaN of 0, infinities and " +
		"NaN",
	Source: "NVTabular `NormalizeMinMax`, which rounds each step in float64; one rounding is ours",
	Check:  check,
	Apply:  apply,
}

func check(c catalogue.Check) {
	if !c.HasConstants("min", "max") {
		return
	}
	catalogue.CheckNormalRange(c, "min", "max")
	low, hasLow := c.Given("min")
	high, hasHigh := c.Given("max")
	if hasLow && hasHigh && high.(catalogue.Number).Real() < low.(catalogue.Number).Real() {
		c.Wrong("", catalogue.ErrValue, "min %s > max %s", low, high)
	}
}

func apply(c catalogue.Chain) {
	if _, ok := c.Given(catalogue.StatisticsParameter); ok {
		applyStatistics(c)
	} else if c.RequireReals() {
		c.Append(Op{Min: c.Number("min").Real(), Max: c.Number("max").Real()})
	}
}

// applyStatistics adds the operator with constants of statistics.
func applyStatistics(c catalogue.Chain) {
	s := c.Statistics()
	if s == nil {
		return
	}
	low, ok := s.Require(c, s.Min, "least value", "no value is finite")
	if !ok {
		return
	}
	high, ok := s.Require(c, s.Max, "greatest value", "no value is finite")
	switch {
	case !ok:
	case high < low:
		c.Refuse(catalogue.ErrStatistics, "the least value of %s is %v, above the greatest, %v", s.Origin(), low, high)
	default:
		c.Convert(program.Float32)
		c.Append(Op{Min: low, Max: high})
	}
}
