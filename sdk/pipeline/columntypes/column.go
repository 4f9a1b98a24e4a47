package columntypes

import (
	"cmp"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// Column is one leaf column of a dataset, as a pipeline needs to know it.
type Column struct {
	Name   string         // in a pipeline; a name that several columns have cannot be used
	Source program.Source // format of the partitions; the zero value is Parquet. All columns have the same
	Kind   program.Kind   // The kind of its decoded values.
	// Logical is what the file says that the values stand for: "UUID", "INT96" or "DECIMAL(38, 2)" of Bytes, "" if they
	// are text; "TIMESTAMP(MICROS)", "TIME(MILLIS)", "DATE" or "DECIMAL(9, 2)" of Int64, "" if they are numbers. Where
	// partitions have several types that can be read as one, Logical lists them, as `DATE in "a", INT96 in "b"`; Kind
	// is then Int64 for times and Float64 for numbers.
	Logical         string
	Null            NullType        // Where the column has the type null.
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
	Map Map
	// Absent says which partitions of the data set lack the column. Groups that allow it read the column as null there.
	Absent Absence
	// Unsupported says why the column cannot be read; nil if it can be read. Only pipelines that name the column are
	// refused.
	Unsupported error
}

// IsUint64 reports whether the column holds unsigned integers of 64 bits.
func (c *Column) IsUint64() bool {
	return c.Kind == program.Int64 && c.Unsigned && (c.Bits == 0 || c.Bits > 63)
}

// NullType says which partitions have a column with the type null, in which every value is null. It is a set of bits.
type NullType uint8

// The bits of a NullType.
const (
	NullSomewhere  NullType = 1 // at least one partition
	NullLists      NullType = 2 // at least one partition has lists of that type
	NullEverywhere NullType = 4 // all partitions: the pipeline decides the kind
)

// Describe names the kind of the column's values, and what they stand for.
func (c *Column) Describe() string {
	name := c.Kind.String()
	if c.Logical != "" {
		name += " " + c.Logical
	}
	if c.List {
		return "list of " + name
	}
	return name
}

// typeName names the column's type for an error, as "a list of int64".
func (c *Column) typeName() string {
	name := c.Kind.String()
	switch {
	case c.Null&NullEverywhere != 0:
		name = "null"
	case c.Logical != "":
		name = c.Logical
	case c.Kind == program.Int64 && c.Unsigned:
		name = fmt.Sprintf("uint%d", cmp.Or(c.Bits, 64))
	case c.Kind == program.Int64 && c.Bits > 1:
		name = fmt.Sprintf("int%d", c.Bits)
	case c.Kind == program.Int64 && c.Bits == 1:
		name = "boolean"
	}
	if c.List {
		name = "a list of " + name
	}
	if c.Map.IsMap() {
		name = fmt.Sprintf("a map of %s (keys %s, values %s)", name, c.Map.Keys, c.Map.Values)
	}
	return name
}
