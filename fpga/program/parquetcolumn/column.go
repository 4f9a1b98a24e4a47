package parquetcolumn

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// KindOf returns the kind of a program's values that a decoder makes of a Parquet file's values.
func KindOf(k format.Kind) program.Kind {
	switch k {
	case format.KindInt64:
		return program.Int64
	case format.KindFloat32:
		return program.Float32
	case format.KindFloat64:
		return program.Float64
	}
	return program.Bytes
}

// LeafPart returns the part of a map that a leaf of a Parquet file holds, if a column of a program reads that part of
// the map.
func LeafPart(p program.Part) format.Part {
	switch p {
	case program.MapKeys:
		return format.MapKeys
	case program.MapValues:
		return format.MapValues
	case program.MapScores:
		return format.MapScores
	}
	return format.NoPart
}

// IsList reports whether a column of a program that reads a leaf as a part of a map, or by itself, is a list. Every
// leaf of a map has a list a row, so that a column of a map is a list if its leaf has lists inside the map.
func IsList(l *format.Leaf, p program.Part) bool {
	if p.OfMap() {
		return l.MaxRep == 2
	}
	return l.List
}

// HoldsPart reports whether a column of a program may read a leaf as a part of a map, or by itself: a leaf of a map
// that is read by itself is a list of what all entries hold.
func HoldsPart(l *format.Leaf, p program.Part) bool { return !p.OfMap() || l.Part == LeafPart(p) }

// Widens reports whether a column of one kind reads chunks of another: float32 values are float64 values.
func Widens(chunk, column program.Kind) bool {
	return chunk == program.Float32 && column == program.Float64
}

// AnnotationOf returns the annotation of a leaf, in the form that a slice has for a column that is read by annotations.
func AnnotationOf(l *format.Leaf) program.Annotation {
	switch l.Logical {
	case "UNKNOWN":
		return program.AnnotatedNull
	case "TIMESTAMP(MILLIS)", "TIME(MILLIS)":
		return program.AnnotatedMillis
	case "TIMESTAMP(MICROS)", "TIME(MICROS)":
		return program.AnnotatedMicros
	case "TIMESTAMP(NANOS)", "TIME(NANOS)":
		return program.AnnotatedNanos
	case "DATE":
		return program.AnnotatedDays
	}
	var precision, scale int
	if n, err := fmt.Sscanf(l.Logical, "DECIMAL(%d, %d)", &precision, &scale); err == nil && n == 2 && scale >= 0 &&
		scale <= program.MaxDecimalScale {
		return program.AnnotatedDecimal + program.Annotation(scale)
	}
	return program.NotAnnotated
}

// IsNull reports whether the file gives a leaf outside of lists the type null, so that every value is null. A column
// that partitions may lack treats such a leaf as absent, whatever the column's kind.
func IsNull(l *format.Leaf) bool {
	return l.Logical == "UNKNOWN" && l.MaxRep == 0
}

// Reads reports whether a column takes chunks of a physical type with an annotation. It leaves out of account whether
// the column is a list or of a map.
func Reads(c program.Column, physical format.Type, a program.Annotation) bool {
	kind := KindOf(physical.Kind())
	_, isDecimal := a.Decimal()
	_, _, isTime := a.Unit()
	switch {
	case c.Reading == program.ReadStored:
		return kind == c.Kind || Widens(kind, c.Kind)
	case a == program.AnnotatedNull:
		return true
	case c.Reading == program.ReadSeconds:
		return isTime && kind == program.Int64 || physical == format.Int96
	case c.Kind == program.Bytes:
		return kind == program.Bytes
	case isDecimal:
		return kind == program.Int64 || kind == program.Bytes
	}
	return kind != program.Bytes && !isTime
}

// TakesAnnotation returns the annotation that a chunk of a leaf has in a slice: the leaf's if the column is read by
// annotations, and none otherwise.
func TakesAnnotation(c *program.Column, l *format.Leaf) program.Annotation {
	if c.Reading == program.ReadStored {
		return program.NotAnnotated
	}
	return AnnotationOf(l)
}
