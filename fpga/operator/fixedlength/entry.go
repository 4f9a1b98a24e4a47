package fixedlength

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "fixed_length", Unit: Unit,
	Example: "- fixed_length: {length: 64}",
	Reads:   catalogue.As(catalogue.UsedAsFloat32),
	Summary: "Makes `length` neighbouring dense columns of a list of `length` numbers, as embeddings are kept. The " +
		"columns of a feature `x` are named `x.0`, `x.1` and so on. It ends the operators of a dense list.",
	Params: []catalogue.Param{
		{Name: "length", Type: catalogue.ParamInteger, Min: 1, Summary: "values of every list"},
		{
			Name:     "pad",
			Type:     catalogue.ParamReal,
			Optional: true,
			Summary: "fills up shorter lists, and null lists; rounded to " +
				"float32. When left out, every list must have `length` values",
		},
	},
	Takes:  "lists of float32; of int64 and float64, which become float32 (nearest, ties to even)",
	Yields: "float32, `length` for every row",
	Nulls:  "a null list, and a list that holds a null (fill it first), have no values",
	Lists:  "lists only",
	Errors: "the column is not a list, or a map; another operator follows; the group is not `dense`. A longer list " +
		"(`firstx` cuts it), or a shorter one without `pad`, fails the split with its row",
	Source: "ours; NVTabular's ListSlice with `pad`, Petastorm's fixed shapes",
	Check:  checkArguments,
	Apply:  apply,
}

func checkArguments(c catalogue.Check) {
	if n, ok := c.Given("length"); ok && n.(catalogue.Number).Int > program.MaxColumns {
		c.Wrong("length", catalogue.ErrValue, "%s, want at most %d", n, program.MaxColumns)
	}
}

func apply(c catalogue.Chain) {
	switch {
	case !c.IsList() && c.Kind() == program.Bytes:
		c.Refuse(
			catalogue.ErrColumnType,
			"fixed_length takes lists of numbers, and this column has bytes: begin with unpack if the "+
				"bytes are those of float32 numbers",
		)
		return
	case !c.IsList():
		c.Refuse(catalogue.ErrColumnType, "fixed_length takes lists, and this column has one value a row")
		return
	case !c.IsDenseList():
		c.Refuse(catalogue.ErrColumnType, "fixed_length makes dense columns; keys take lists of any length")
		return
	case c.IsMap():
		c.Refuse(catalogue.ErrUnsupported, "fixed_length of a map's lists; write them as a column of their own")
		return
	case !c.RequireNumbers():
		return
	}
	c.Convert(program.Float32)
	o := Op{Length: uint32(c.Number("length").Int)}
	if pad, ok := c.Given("pad"); ok {
		o.Pads, o.Pad = true, float32(c.RealNumber("pad", pad.(catalogue.Number)))
	}
	c.FillsNulls() // a null list is filled up, or fails
	c.Append(o)
}
