package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// unifyLogical returns the annotation of a column of one kind whose partitions have the annotations a and b. Text, JSON
// and the like are all bytes, and the first one is kept. Of two decimals of one scale, the larger precision is kept. ok
// is false for other annotations that differ.
func unifyLogical(a, b string) (logical string, ok bool) {
	if a == b || isCategory(a) && isCategory(b) {
		return a, true
	}
	precision, scale, ok := decimalScale(a)
	otherPrecision, otherScale, otherOK := decimalScale(b)
	if !ok || !otherOK || scale != otherScale {
		return a, false
	}
	if otherPrecision > precision {
		return b, true
	}
	return a, true
}

// isCategory reports whether equal values of a column of bytes have equal bytes, so that a hash of the bytes is an id
// of the value.
func isCategory(logical string) bool {
	switch logical {
	case "", "JSON", "BSON", "UUID":
		return true
	}
	return false
}

// annotation returns what the chain's values stand for. It is empty if they are numbers, or if the operators so far
// have changed what the values count.
func (c *chain) annotation() string {
	if !program.KeepsUnit(c.ops) {
		return ""
	}
	if list := c.column.variants(); list != nil && !slices.ContainsFunc(list, isAnnotated) {
		return ""
	}
	return c.column.Logical
}

// isAnnotated reports whether a type is not that of plain numbers.
func isAnnotated(v variant) bool {
	return strings.ToUpper(v.name) == v.name || strings.Contains(v.name, "(")
}

// decimalScale returns the precision and the scale of an annotation, and false if it is no DECIMAL.
func decimalScale(logical string) (precision, scale int, ok bool) {
	n, err := fmt.Sscanf(logical, "DECIMAL(%d, %d)", &precision, &scale)
	return precision, scale, err == nil && n == 2 && logical == fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
}
