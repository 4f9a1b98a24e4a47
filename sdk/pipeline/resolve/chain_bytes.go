package resolve

import (
	"strings"

	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// DescribeBytes describes the content of a column of bytes and the way to use it.
func (c *chain) DescribeBytes() string {
	name, _, _ := strings.Cut(c.column.Logical, "(")
	switch name {
	case "":
		return "these are strings; begin with hash_bytes for categories, text_to_int for decimal numbers, hex_to_int for " +
			"hexadecimal ones, or text_to_seconds for times"
	case "DECIMAL":
		return "these are " + c.column.Logical + " kept as bytes; begin with decimal"
	case "INT96":
		return "these are times kept as INT96; begin with to_seconds or to_days"
	}
	if columntypes.IsCategory(c.column.Logical) {
		return "these are " + c.column.Logical + "; begin with hash_bytes for categories"
	}
	return "these are " + c.column.Logical + "; write the column as numbers, as INT64"
}

// describeNoTimes is describeBytes for operators that read times.
func (c *chain) describeNoTimes() string {
	if c.column.Logical == "" {
		return "these are strings; read the text of times with text_to_seconds"
	}
	return c.DescribeBytes()
}
