package normalize

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "normalize", Unit: Unit,
	Example: "- normalize: {mean: 12.5, deviation: 3}",
	Cost:    catalogue.Costs(75),
	Reads:   catalogue.As(catalogue.UsedAsFloat32),
	Summary: "The correctly rounded float32 of (x - `mean`) / `deviation`, or of x - `mean` where `deviation` is 0. " +
		"x is a float32, `mean` and `deviation` are float64, and nothing is rounded between.",
	Params: []catalogue.Param{
		{Name: "mean", Type: catalogue.ParamReal, Optional: true, Summary: "subtracted"},
		{Name: "deviation", Type: catalogue.ParamReal, Optional: true, Summary: "divides; at least 0"},
		{Name: catalogue.StatisticsParameter, Type: catalogue.ParamText, Optional: true,
			Summary: "instead of both, one of the document's `statistics`: " +
				"the mean and the deviation of the value that the operator takes"},
	},
	Takes: "float32; int64 and float64 become float32 (nearest, ties to even)", Yields: "float32",
	Nulls: "stay null",
	Lists: "refused",
	Errors: "`deviation` is below 0; a constant that is neither 0 nor in the range of normal float32 numbers; " +
		"statistics that lack the value, or have fewer than two finite values of it. A NaN " +
		"stays one (7fc00000h), and an infinity itself",
	Source: "NVTabular `Normalize`, which rounds each step in float64; one rounding is ours",
	Check:  check,
	Apply:  apply,
}

func check(c catalogue.Check) {
	if !c.HasConstants("mean", "deviation") {
		return
	}
	catalogue.CheckNormalRange(c, "mean", "deviation")
	if d, ok := c.Given("deviation"); ok && d.(catalogue.Number).Real() < 0 {
		c.Wrong("deviation", catalogue.ErrValue, "%s, want at least 0", d)
	}
}

func apply(c catalogue.Chain) {
	if _, ok := c.Given(catalogue.StatisticsParameter); ok {
		applyStatistics(c)
	} else if c.RequireReals() {
		c.Append(Op{Mean: c.Number("mean").Real(), Deviation: c.Number("deviation").Real()})
	}
}

// applyStatistics adds the operator with constants of statistics.
func applyStatistics(c catalogue.Chain) {
	s := c.Statistics()
	if s == nil {
		return
	}
	mean, ok := s.Require(c, s.Mean, "mean", "no value is finite")
	if !ok {
		return
	}
	deviation, ok := s.Require(c, s.Deviation, "deviation", "it takes two finite values")
	switch {
	case !ok:
	case deviation < 0:
		c.Refuse(catalogue.ErrStatistics, "the deviation of %s is %v, want at least 0", s.Origin(), deviation)
	default:
		c.Convert(program.Float32)
		c.Append(Op{Mean: mean, Deviation: deviation})
	}
}
