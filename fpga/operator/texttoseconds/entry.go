package texttoseconds

import (
	"github.com/millrace/millrace/fpga/catalogue"
	unit "github.com/millrace/millrace/fpga/unit/texttoseconds"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "text_to_seconds", Unit: Unit,
	Cost:    catalogue.Costs(32),
	Example: "- text_to_seconds: {offset: \"+00:00\"}",
	Summary: "Reads the text of a time as the seconds since 1970-01-01 00:00:00 UTC: `2021-05-21 02:11:51-07:00` is " +
		"1621588311. The forms are those of RFC 3339 and ISO 8601: a date, which alone is midnight; behind `T` or a " +
		"space hours, minutes and seconds; a fraction of up to 9 digits, which is rounded towards minus infinity; and the " +
		"offset, `Z`, `-07:00`, `-0700` or `-07`.",
	Params: []catalogue.Param{
		{Name: "offset", Type: catalogue.ParamText, Optional: true, Summary: "the offset from UTC of texts that name " +
			"none, dates alone too, as `+00:00`; without it such a text is an error"},
	},
	Takes: "bytes: text", Yields: "int64, of the years 0000 to 9999",
	Nulls: "stay null; an empty text becomes null",
	Lists: "element by element",
	Errors: "any other text fails the split, with its row and the text: names of zones, days that the calendar " +
		"(Gregorian in all years) does not have, 24:00:00, leap seconds, lower-case `t` and `z`; a text without an offset, " +
		"unless `offset` says which it has; an `offset` that is not of these forms",
	Source: "RFC 3339; ISO 8601; Python `datetime.fromisoformat` and pandas `to_datetime`, which take a text without an " +
		"offset as a time of no zone: ours is an error, or the offset given",
	Check: check,
	Apply: apply,
}

func check(c catalogue.Check) {
	if offset, ok := c.Given("offset"); ok {
		if _, ok := unit.ParseOffset(string(offset.(catalogue.Text))); !ok {
			c.Wrong("offset", catalogue.ErrValue, "%q is not an offset: want one as \"+00:00\", of at most 23:59", offset)
		}
	}
}

func apply(c catalogue.Chain) {
	if !c.RequireText() {
		return
	}
	var o Op
	if offset, ok := c.Given("offset"); ok {
		o.Assumes = true
		o.Offset, _ = unit.ParseOffset(string(offset.(catalogue.Text))) // check has read it
	}
	c.Append(o)
	c.SetIDs(catalogue.Range{Low: unit.Least, High: unit.Greatest}, false)
	c.MakesNulls()
}
