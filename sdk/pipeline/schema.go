package pipeline

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// ColumnInfo is one leaf column of a dataset, as a pipeline needs to know it.
type ColumnInfo struct {
	Name   string         // in a pipeline; a name that several columns have cannot be used
	Source program.Source // format of the partitions; the zero value is Parquet. All columns have the same
	Kind   program.Kind   // of its values as decoded
	// Logical is what the file says that the values stand for: "UUID", "INT96" or "DECIMAL(38, 2)" of Bytes, "" if they
	// are text; "TIMESTAMP(MICROS)", "TIME(MILLIS)", "DATE" or "DECIMAL(9, 2)" of Int64, "" if they are numbers. Where
	// partitions have several types that can be read as one, Logical lists them, as `DATE in "a", INT96 in "b"`; Kind
	// is then Int64 for times and Float64 for numbers.
	Logical         string
	Null            NullType        // which partitions have the column with the type null
	Reading         program.Reading // how features read the column; ReadStored in a schema
	List            bool            // a list of Kind
	Nullable        bool            // a row may be null
	ElementNullable bool            // lists: an element may be null
	Field           uint16          // text and binary rows: number of the field, see program.Column
	// Bits is the width that the source guarantees for integers (8, 16, 32, with Unsigned; 1: a boolean); 0: any Int64.
	Bits     uint8
	Unsigned bool
	// Map says that the column is a map: Kind, List, Bits and Unsigned are then those of its features, which a row may
	// lack.
	Map MapInfo
	// Absent says which partitions of the data set lack the column. Groups that allow it read the column as null there.
	Absent Absence
	// Unsupported says why the column cannot be read; nil if it can be read. Only pipelines that name the column are
	// refused.
	Unsupported error
}

// NullType says which partitions have a column with the type null, in which every value is null. It is a set of bits.
type NullType uint8

// The bits of a NullType.
const (
	NullSomewhere  NullType = 1 // at least one partition
	NullLists      NullType = 2 // at least one partition has lists of that type
	NullEverywhere NullType = 4 // all partitions: the pipeline decides the kind
)

// Criteo's fields: the label, 13 integers, 26 ids.
const (
	criteoInts = 13
	criteoCats = 26
)

// TextSchema is the schema of Criteo's text rows: label (int32, required; none when labelAbsent, the 39-field form),
// int_0..int_12 (int32) and cat_0..cat_25 (int64 holding the unsigned 32-bit id), which may be null.
func TextSchema(labelAbsent bool) []ColumnInfo {
	schema := criteoSchema(program.CriteoTSV, true)
	if labelAbsent {
		return schema[1:]
	}
	return schema
}

// BinarySchema is the schema of Criteo's binary rows: as TextSchema's, with a label and without nulls.
func BinarySchema() []ColumnInfo { return criteoSchema(program.CriteoBinary, false) }

func criteoSchema(source program.Source, nullable bool) []ColumnInfo {
	schema := []ColumnInfo{{Name: "label", Source: source, Kind: program.Int64, Bits: 32}}
	for i := range criteoInts {
		schema = append(schema, ColumnInfo{
			Name: fmt.Sprintf("int_%d", i), Source: source, Kind: program.Int64, Nullable: nullable,
			Field: uint16(1 + i), Bits: 32,
		})
	}
	for i := range criteoCats {
		schema = append(schema, ColumnInfo{
			Name: fmt.Sprintf("cat_%d", i), Source: source, Kind: program.Int64, Nullable: nullable,
			Field: uint16(1 + criteoInts + i), Bits: 32, Unsigned: true,
		})
	}
	return schema
}
