package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// conflict separates the annotations of a column that partitions annotate differently.
const conflict = " in one partition, "

// UnifyLogical returns what a column stands for whose partitions say a and b. Text, JSON and the like are bytes and
// nothing more, and the first counts. Otherwise a difference is kept, and operators that need to know what the values
// stand for refuse the column.
func UnifyLogical(a, b string) string {
	if a == b || isCategory(a) && isCategory(b) || strings.Contains(a, conflict) {
		return a
	}
	name := func(logical string) string {
		if logical == "" {
			return "no annotation"
		}
		return logical
	}
	return name(a) + conflict + name(b) + " in another"
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
	if slices.ContainsFunc(c.ops, changesUnit) {
		return ""
	}
	return c.column.Logical
}

// changesUnit reports whether an operator yields values that count something else than the values it takes.
func changesUnit(op program.Op) bool {
	switch op.(type) {
	case program.FillNull, program.FillNaN, program.Clamp, program.FirstX:
		return false
	}
	return true
}

// decimalScale returns the precision and the scale of an annotation, and false if it is no DECIMAL.
func decimalScale(logical string) (precision, scale int, ok bool) {
	n, err := fmt.Sscanf(logical, "DECIMAL(%d, %d)", &precision, &scale)
	return precision, scale, err == nil && n == 2 && logical == fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
}
