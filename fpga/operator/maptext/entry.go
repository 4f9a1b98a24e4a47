package maptext

import (
	"slices"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "map_text", Unit: Unit,
	Example: `- map_text: {table: {"yes": 1, "no": 0}, default: 2}`,
	Cost:    catalogue.Costs(24),
	Summary: "Replaces a text by the value of its key in a table, as labels and small categories are kept. Texts are " +
		"compared byte for byte: nothing is trimmed, folded or normalised.",
	Params: []catalogue.Param{
		{Name: "table", Type: catalogue.ParamTextTable,
			Summary: "`{text: value}`, at most 65536 texts of at most 4096 bytes of UTF-8; texts that YAML reads as " +
				"something else, as `1` or `true`, in quotes"},
		{Name: "default", Type: catalogue.ParamInteger, Optional: true, Min: catalogue.AnyInteger,
			Summary: "what a text becomes that the table lacks"},
		{Name: "unknown", Type: catalogue.ParamChoice, Choices: []string{"fail", "as_null"}, Default: catalogue.Text("fail"),
			Summary: "what a text that the table lacks does without a `default`: `fail` the split, or become a null, `as_null`"},
	},
	Takes: "bytes: text", Yields: "int64: the values and `default`",
	Nulls: "stay null; an empty text is a text, which may be a key",
	Lists: "element by element",
	Errors: "an empty table; a text twice, or one that is not UTF-8; `unknown: as_null` beside `default`. Without " +
		"`default` and `unknown: as_null` a text that the table lacks fails the split, with its row. A text of a list " +
		"that becomes null is a null element, as `fill_null` fills it",
	Source: "the lookups of TensorFlow (`tf.lookup.StaticHashTable`), Keras (`StringLookup`, with other numbers) and " +
		"Spark (`create_map`); failing on other texts is ours",
	Check: checkArguments,
	Apply: apply,
}

func checkArguments(c catalogue.Check) {
	_, hasDefault := c.Given("default")
	if unknown, ok := c.Given("unknown"); ok && hasDefault && unknown == catalogue.Text("as_null") {
		c.Wrong("unknown", catalogue.ErrValue, "as_null beside a default, want one of them")
	}
}

func apply(c catalogue.Chain) {
	if !c.RequireText() {
		return
	}
	t := c.Value("table").(catalogue.TextTable)
	size := 0
	for _, key := range t.Keys {
		size += len(key)
	}
	const numberBytes = 8
	if err := c.CountNumbers(&t.Values[0], 2*len(t.Values)+size/numberBytes); err != nil {
		c.Refuse(catalogue.ErrValue, "%v", err)
		return
	}
	o := &Op{Keys: t.Keys, Values: t.Values}
	ids := catalogue.Range{Low: slices.Min(t.Values), High: slices.Max(t.Values)}
	if n, ok := c.Given("default"); ok {
		o.Unknown, o.Default = UnknownDefault, n.(catalogue.Number).Int
		ids = catalogue.Range{Low: min(ids.Low, o.Default), High: max(ids.High, o.Default)}
	} else if c.Word("unknown") == "as_null" {
		o.Unknown = UnknownNull
	}
	c.Append(o)
	c.SetIDs(ids, true)
	if o.Unknown == UnknownNull {
		c.MakesNulls()
	}
}
