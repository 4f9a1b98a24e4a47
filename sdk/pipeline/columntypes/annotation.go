package columntypes

import (
	"fmt"
	"slices"
	"strings"
)

// Annotation returns what the column's values stand for. It is empty if they are numbers, in all partitions.
func (c *Column) Annotation() string {
	if list := c.variants(); list != nil && !slices.ContainsFunc(list, isAnnotated) {
		return ""
	}
	return c.Logical
}

// unifyLogical returns the annotation of a column of one kind whose partitions have the annotations a and b. Text, JSON
// and the like are all bytes, and the first one is kept. Of two decimals of one scale, the larger precision is kept. ok
// is false for other annotations that differ.
func unifyLogical(a, b string) (logical string, ok bool) {
	if a == b || IsCategory(a) && IsCategory(b) {
		return a, true
	}
	precision, scale, ok := DecimalScale(a)
	otherPrecision, otherScale, otherOK := DecimalScale(b)
	if !ok || !otherOK || scale != otherScale {
		return a, false
	}
	if otherPrecision > precision {
		return b, true
	}
	return a, true
}

// IsCategory reports whether equal values of a column of bytes have equal bytes, so that a hash of the bytes is an id
// of the value.
func IsCategory(logical string) bool {
	switch logical {
	case "", "JSON", "BSON", "UUID":
		return true
	}
	return false
}

// isAnnotated reports whether a type is not that of plain numbers.
func isAnnotated(v variant) bool {
	return strings.ToUpper(v.name) == v.name || strings.Contains(v.name, "(")
}

// DecimalScale returns the precision and the scale of an annotation, and false if the annotation is not a DECIMAL.
func DecimalScale(logical string) (precision, scale int, ok bool) {
	n, err := fmt.Sscanf(logical, "DECIMAL(%d, %d)", &precision, &scale)
	return precision, scale, err == nil && n == 2 && logical == fmt.Sprintf("DECIMAL(%d, %d)", precision, scale)
}

// SecondsOfDay is how many seconds a day has.
const SecondsOfDay = 86400

// TimeUnit is a unit of time as a fraction or a multiple of a second; one of both is 1.
type TimeUnit struct{ PerSecond, Seconds int64 }

// TimeUnits are the words of the parameter unit.
var TimeUnits = map[string]TimeUnit{
	"seconds": {1, 1}, "millis": {1e3, 1}, "micros": {1e6, 1}, "nanos": {1e9, 1}, "days": {1, SecondsOfDay},
}

// TimeUnitOf returns the unit of an annotation of integers, and false if it is not a time.
func TimeUnitOf(logical string) (TimeUnit, bool) {
	if logical == "DATE" {
		return TimeUnits["days"], true
	}
	name, unit, _ := strings.Cut(strings.TrimSuffix(logical, ")"), "(")
	u, ok := TimeUnits[strings.ToLower(unit)]
	return u, ok && (name == "TIMESTAMP" || name == "TIME")
}
