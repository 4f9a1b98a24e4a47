package listslice

import (
	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "list_slice", Unit: Unit,
	Example: "- list_slice: {start: -20, pad: 0}",
	Cost:    catalogue.Costs(16),
	Reads:   catalogue.As(catalogue.UsedAsUnknown),
	Summary: "Keeps a part of a list, which is Python's `list[start:end]`: numbers below 0 count from the list's end. " +
		"With `pad`, lists whose part is shorter are filled up at their end, so that all lists have one length.",
	Params: []catalogue.Param{
		{
			Name:    "start",
			Type:    catalogue.ParamInteger,
			Default: catalogue.Int(0),
			Min:     catalogue.AnyInteger,
			Summary: "first element of the part",
		},
		{Name: "end", Type: catalogue.ParamInteger, Optional: true, Min: catalogue.AnyInteger,
			Summary: "the element behind the part; the list's end when left out"},
		{
			Name:     "pad",
			Type:     catalogue.ParamNumber,
			Optional: true,
			Summary: "what fills lists up, to at most 1024 elements; " +
				"nothing " +
				"does when left out",
		},
	},
	Takes: "lists of int64, float32, float64", Yields: "the same",
	Nulls: "a null list stays null; with `pad` it counts as an empty one, and so does a list with a null element",
	Lists: "lists only",
	Errors: "the column is not a list; `pad` and a part whose length depends on the list, as from 0 to -1; `pad` is not " +
		"whole for an int64 column; the ids have scores: say `scores: drop`",
	Source: "NVTabular `ListSlice`: its one number n is `end: n`, or `start: n` where it is below 0, and its " +
		"`pad_value` is `pad`",
	Apply: apply,
}

func apply(c catalogue.Chain) {
	if !c.IsList() {
		c.Refuse(catalogue.ErrColumnType, "list_slice takes lists, and this column has one value a row")
		return
	}
	if !c.RequireNumbers() {
		return
	}
	o := Op{Start: c.Number("start").Int, End: NoEnd}
	if end, ok := c.Given("end"); ok {
		o.End = end.(catalogue.Number).Int
	}
	if pad, ok := c.Given("pad"); ok {
		o.pad(c, pad.(catalogue.Number))
	}
	c.Append(o)
}

// pad says with what lists are filled up.
func (o *Op) pad(c catalogue.Chain, n catalogue.Number) {
	o.Padded = true
	if c.Kind() == program.Int64 {
		o.PadInt = c.WholeNumber("pad", n)
		ids := c.IDs()
		c.SetIDs(catalogue.Range{Low: min(ids.Low, o.PadInt), High: max(ids.High, o.PadInt)}, c.Bounded())
	} else {
		o.PadFloat = c.RealNumber("pad", n)
	}
	length, err := o.Length()
	if err != nil {
		c.Refuse(catalogue.ErrValue, "pad: %v; lists are filled up to at most %d elements, as of start 0 and end 10, or of "+
			"start -10", err, MaxLength)
	}
	if length > 1 && c.FromText() {
		c.Refuse(catalogue.ErrColumnType, "pad: a row of text makes at most one id a key, and this fills lists up to %d; "+
			"leave pad out, or import the rows as Parquet (millrace dataset import)", length)
	}
}
