package parquetcolumn

import (
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
