package onehot

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "onehot", Unit: Unit,
	Example: "- onehot: {classes: 24}",
	Reads:   readsColumn,
	Summary: "Makes `classes` neighbouring dense columns of a value: 1 for its class, and 0 for the others. The " +
		"columns of a feature `x` are named `x.0`, `x.1` and so on. The class of an id is its number, and an id that is " +
		"not a class has none. With `lower` and `upper` the value is a real number, and its class the part " +
		"that holds it of `classes` equal parts of that range: trunc((x - `lower`) / ((`upper` - `lower`) / " +
		"`classes`)), each operation rounded to float32; `upper` itself is of the last class, and what lies " +
		"outside is of class 0. It ends the operators of a dense feature.",
	Params: []catalogue.Param{
		{Name: "classes", Type: catalogue.ParamInteger, Min: 1, Summary: "number of columns, at most 4096"},
		{Name: "lower", Type: catalogue.ParamReal, Optional: true, Summary: "where the range of class 0 begins; rounded to " +
			"float32. When left out, values are ids"},
		{
			Name:     "upper",
			Type:     catalogue.ParamReal,
			Optional: true,
			Summary: "where the range of the last class ends; rounded to " +
				"float32",
		},
	},
	Takes: "int64; with `lower` and `upper` float32, and int64 and float64, which become float32 (nearest, ties to " +
		"even)",
	Yields: "float32, `classes` for every row",
	Nulls:  "are of no class",
	Lists:  "refused",
	Errors: "the group is not `dense`; another operator follows; real numbers without `lower` and `upper`; one bound " +
		"without the other; bounds that do not ascend, or with no float32 between them. A NaN is of class 0",
	Source: "DPP Onehot; no public exact definition: ids outside having no class is ours, as caffe2's " +
		"`BatchOneHot` has it of values without a match. The ranges are RAP's, which does not define a NaN " +
		"and has `upper` in class 0",
	Check: checkArguments,
	Apply: apply,
}

func checkArguments(c catalogue.Check) {
	if n, ok := c.Given("classes"); ok && n.(catalogue.Number).Int > MaxClasses {
		c.Wrong("classes", catalogue.ErrValue, "%s, want at most %d", n, MaxClasses)
	}
	low, hasLow := c.Given("lower")
	high, hasHigh := c.Given("upper")
	switch {
	case hasLow && !hasHigh:
		c.Wrong("", catalogue.ErrMissing, "upper: the end of the range that begins at lower")
	case hasHigh && !hasLow:
		c.Wrong("", catalogue.ErrMissing, "lower: the beginning of the range that ends at upper")
	case hasLow && !low.(catalogue.Number).Less(high.(catalogue.Number)):
		c.Wrong("", catalogue.ErrValue, "lower %s, upper %s: want an upper bound above the lower", low, high)
	}
}

func apply(c catalogue.Chain) {
	switch {
	case c.IsList():
		c.Refuse(catalogue.ErrColumnType, "onehot takes one value a row, and this column has lists")
		return
	case !c.RequireNumbers():
		return
	}
	o := Op{Classes: uint32(c.Number("classes").Int)}
	if low, ok := c.Given("lower"); ok {
		c.Convert(program.Float32)
		high, _ := c.Given("upper")
		o.Ranges, o.Lower = true, float32(c.RealNumber("lower", low.(catalogue.Number)))
		o.Upper = float32(c.RealNumber("upper", high.(catalogue.Number)))
		if step := (o.Upper - o.Lower) / float32(o.Classes); !(step > 0) && step-step == 0 {
			c.Refuse(catalogue.ErrValue, "lower %s, upper %s: %d classes between them have no width in float32", low, high,
				o.Classes)
			return
		}
	} else if !c.RequireIntegers() {
		return
	}
	c.Append(o)
	c.FillsNulls() // a null is of no class
}

// readsColumn returns how the operator uses a column.
func readsColumn(a catalogue.Arguments) catalogue.Use {
	if _, ok := a.Given("lower"); ok {
		return catalogue.UsedAsFloat32
	}
	return catalogue.UsedAsIDs
}
