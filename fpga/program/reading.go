package program

import "fmt"

// Reading says how a column reads chunks that hold values of other kinds, units or scales than the column.
type Reading uint8

// The readings. The numbers are part of the wire form.
const (
	// ReadStored reads chunks of the column's kind; float32 values become float64.
	ReadStored Reading = 0
	// ReadValues brings the numbers of each chunk to the column's kind. A DECIMAL is its value, rounded once, and in a
	// column of Int64 its unscaled integer. A real number is an Int64 if it is whole and below 2^53 on both sides of 0,
	// and an error otherwise. An integer becomes the nearest real number.
	ReadValues Reading = 1
	// ReadSeconds brings the times of each chunk to seconds, rounded towards minus infinity. The column is of Int64.
	ReadSeconds Reading = 2
)

// Annotation is what the file says about the values of a chunk, for columns whose reading needs it. The numbers are
// part of the wire form.
type Annotation uint8

// The annotations.
const (
	NotAnnotated    Annotation = 0
	AnnotatedNull   Annotation = 1 // every value is null, whatever its type
	AnnotatedMillis Annotation = 2
	AnnotatedMicros Annotation = 3
	AnnotatedNanos  Annotation = 4
	AnnotatedDays   Annotation = 5
	// AnnotatedDecimal+n is a DECIMAL of scale n.
	AnnotatedDecimal Annotation = 128
)

// MaxDecimalScale bounds the scale of a DECIMAL.
const MaxDecimalScale = 76

// Valid reports whether the annotation is one of the above.
func (a Annotation) Valid() bool {
	return a <= AnnotatedDays || a >= AnnotatedDecimal && a <= AnnotatedDecimal+MaxDecimalScale
}

// Decimal returns the scale of a DECIMAL, and false for another annotation.
func (a Annotation) Decimal() (scale uint8, ok bool) {
	return uint8(a - AnnotatedDecimal), a >= AnnotatedDecimal
}

// Unit returns a unit of time in seconds as multiplier/divisor, one of which is 1. ok is false if a is not a unit of
// time.
func (a Annotation) Unit() (multiplier, divisor int64, ok bool) {
	switch a {
	case AnnotatedMillis:
		return 1, 1e3, true
	case AnnotatedMicros:
		return 1, 1e6, true
	case AnnotatedNanos:
		return 1, 1e9, true
	case AnnotatedDays:
		return 86400, 1, true
	}
	return 0, 0, false
}

// validateReading checks a column's reading.
func (c *Column) validateReading(s Source) error {
	switch {
	case c.Reading > ReadSeconds:
		return fmt.Errorf("%d is not a reading", uint8(c.Reading))
	case c.Reading != ReadStored && s != Parquet:
		return fmt.Errorf("source %v has no annotations", s)
	case c.Reading != ReadStored && c.LeafPart() != NoPart:
		return fmt.Errorf("a part of a map is read as it is stored")
	case c.Reading == ReadSeconds && c.Kind != Int64:
		return fmt.Errorf("seconds are int64, not %v", c.Kind)
	}
	return nil
}
