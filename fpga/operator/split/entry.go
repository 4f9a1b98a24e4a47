package split

import (
	"fmt"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "split", Unit: Unit,
	Example: "- split: {separator: \"|\"}",
	Cost:    catalogue.Costs(10),
	Summary: "Makes a list of texts of one text with several values, as `Action|Comedy`: it cuts the text at every " +
		"`separator`, from the left. The operators behind it take the parts one by one: `hash_bytes` makes ids of " +
		"categories, `text_to_int` and `hex_to_int` read numbers.",
	Params: []catalogue.Param{
		{Name: "separator", Type: catalogue.ParamText, Default: catalogue.Text("|"), Alone: true,
			Summary: fmt.Sprintf("text between two values, at most %d bytes of UTF-8", MaxSeparator)},
		{Name: "empty", Type: catalogue.ParamChoice, Default: catalogue.Text("drop"), Choices: []string{"drop", "keep"},
			Summary: "what becomes of a part without bytes, as in `a||b` or behind the last separator: `drop` leaves it out, " +
				"`keep` makes it an empty text"},
	},
	Takes:  "text, one value a row",
	Yields: "lists of text; `list_length` counts the parts",
	Nulls:  "a null becomes an empty list",
	Lists: "refused; an empty text becomes an empty list, and with `empty: keep` a list of one empty text. Nothing is " +
		"trimmed",
	Errors: fmt.Sprintf(
		"the column is not text, or a list already; a separator of no byte or more than %d. A text with more "+
			"than %d parts fails the split",
		MaxSeparator,
		MaxParts,
	),
	Source: "`drop`: RecBole's token sequences (`filter(None, text.split(separator))`, a null being an empty text) and " +
		"TensorFlow's `tf.compat.v1.string_split`; `keep`: Python's `str.split`, pandas' `Series.str.split` and " +
		"TensorFlow's `tf.strings.split`",
	Check: checkArguments,
	Apply: apply,
}

func checkArguments(c catalogue.Check) {
	if v, ok := c.Given("separator"); ok {
		if err := CheckSeparator(string(v.(catalogue.Text))); err != nil {
			c.Wrong("separator", catalogue.ErrValue, "%v", err)
		}
	}
}

func apply(c catalogue.Chain) {
	switch {
	case !c.RequireText():
	case c.IsList():
		c.Refuse(catalogue.ErrColumnType, "split takes one text a row, and these are lists already: leave split out")
	default:
		c.BeginStep(Op{Separator: c.Word("separator"), Empty: empties[c.Word("empty")]})
	}
}

// empties are the rules for empty parts by name.
var empties = map[string]Empty{"drop": DropEmpty, "keep": KeepEmpty}
