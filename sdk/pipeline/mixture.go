package pipeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/decimal"
	"github.com/millrace/millrace/fpga/program"
)

// variant is one of the types that a column has in its partitions, and the first partition that has it.
type variant struct{ name, partition string }

// maxVariants is the largest number of types that a column lists. A column that has more types has decimals of several
// scales among those that it lists, and the rest cannot change how it is read.
const maxVariants = 16

// variantClass is a set of types that can be read as one type.
type variantClass uint8

const (
	noClass  variantClass = iota
	numbers               // integers, real numbers and decimals, read as values
	instants              // TIMESTAMP, DATE and INT96, read as seconds
	clocks                // TIME, read as seconds
)

// keptAsBytes ends the name of a decimal that is stored as bytes.
const keptAsBytes = " kept as bytes"

// class returns the types that can be read as one with the variant's.
func (v variant) class() variantClass {
	name, _, _ := strings.Cut(v.name, "(")
	switch name {
	case "DECIMAL", "int64", "uint64", "float32", "float64":
		return numbers
	case "TIMESTAMP":
		if _, ok := timeUnitOf(v.name); ok {
			return instants
		}
	case "DATE", "INT96":
		return instants
	case "TIME":
		return clocks
	}
	return noClass
}

// scale returns the scale of a decimal, and 0 for another type.
func (v variant) scale() int {
	_, scale, _ := decimalScale(strings.TrimSuffix(v.name, keptAsBytes))
	return scale
}

// readsAs reports whether two types are read alike: decimals of one scale and one storage are. No other name has a
// comma.
func (v variant) readsAs(w variant) bool {
	_, scale, _ := strings.Cut(v.name, ", ")
	_, otherScale, _ := strings.Cut(w.name, ", ")
	return v.name == w.name || scale != "" && scale == otherScale
}

// variants returns the types of a column that mix has made, and nil for another column.
func (c *ColumnInfo) variants() (list []variant) {
	for rest := c.Logical; rest != ""; {
		name, after, _ := strings.Cut(rest, " in ")
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			return nil
		}
		partition, err := strconv.Unquote(quoted)
		if err != nil {
			return nil
		}
		list = append(list, variant{name, partition})
		rest = strings.TrimPrefix(after[len(quoted):], ", ")
	}
	return list
}

// mix makes c a column of several types, whose Logical is `DECIMAL(9, 2) in "a.parquet", DECIMAL(9, 3) in "b.parquet"`.
func (c *ColumnInfo) mix(list []variant) {
	c.Kind, c.Bits, c.Unsigned = program.Float64, 0, false
	if list[0].class() != numbers {
		c.Kind = program.Int64
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.name + " in " + strconv.Quote(v.partition)
	}
	c.Logical = strings.Join(names, ", ")
}

// variantsIn returns the types of a column: those that mix has joined, or its one type with a partition that has it.
func (c *ColumnInfo) variantsIn(partition string) []variant {
	if list := c.variants(); list != nil {
		return list
	}
	name := c.Logical
	switch {
	case c.Kind == program.Bytes && strings.HasPrefix(name, "DECIMAL("):
		name += keptAsBytes
	case name == "" && c.isUint64():
		name = "uint64"
	case name == "" && c.Kind != program.Bytes:
		name = c.Kind.String()
	}
	return []variant{{name, partition}}
}

// mixed returns the types of two columns together if there are several and all of them can be read as one; otherwise
// nil. partition has the column c, and otherPartition the other column.
func mixed(c *ColumnInfo, partition string, other *ColumnInfo, otherPartition string) []variant {
	if c.Map.IsMap() || other.Map.IsMap() || c.List != other.List || c.Source > program.Parquet {
		return nil
	}
	if _, ok := unifyLogical(c.Logical, other.Logical); ok && c.Kind == other.Kind {
		return nil
	}
	list := c.variantsIn(partition)
	class := list[0].class() // of the whole list
	if class == noClass {
		return nil
	}
	for _, v := range other.variantsIn(otherPartition) {
		if v.class() != class {
			return nil
		}
		if len(list) < maxVariants && !slices.ContainsFunc(list, v.readsAs) {
			list = append(list, v)
		}
	}
	only := func(names ...string) bool {
		return !slices.ContainsFunc(list, func(v variant) bool { return !slices.Contains(names, v.name) })
	}
	if len(list) == 1 || only("float32", "float64") || only("int64", "uint64") {
		return nil // Union.merge unifies them
	}
	return list
}

// idsAgree reports whether equal values of several types are equal ids: numbers are ids by their values if they are
// whole, and decimals by their unscaled integers if all have one scale.
func idsAgree(list []variant) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(v variant) bool { return v.name == name })
	}
	return !slices.ContainsFunc(list, func(v variant) bool { return v.scale() != list[0].scale() }) &&
		!(has("int64") && has("uint64"))
}

// usage is how a chain of operators uses a column.
type usage = catalogue.Use

const (
	usedAsUnknown  = catalogue.UsedAsUnknown
	usedByOperator = catalogue.UsedByOperator // to_seconds, to_days and decimal read the column themselves
	usedAsIDs      = catalogue.UsedAsIDs
	usedAsFloat32  = catalogue.UsedAsFloat32
	usedAsFloat64  = catalogue.UsedAsFloat64
)

// kindOf returns the kind to which a column of several types is converted for a use.
func kindOf(u usage) program.Kind {
	switch u {
	case usedAsIDs:
		return program.Int64
	case usedAsFloat32:
		return program.Float32
	}
	return program.Float64
}

// usageOf returns how operators use a column. The tensor of their values is to; it is 0 if other operators take the
// values.
func usageOf(ops []Op, to program.Dest) usage {
	for i := range ops {
		entry := EntryOf(ops[i].Name)
		if entry == nil || entry.Reads == nil {
			return usedAsIDs
		}
		if use := entry.Reads(&ops[i]); use != usedAsUnknown {
			return use
		}
	}
	switch {
	case to == program.ToSparse:
		return usedAsIDs
	case to == 0 && len(ops) == 0:
		return usedAsUnknown
	}
	return usedAsFloat32 // the constants of operators are values
}

// readBy sets how a column is read.
func (o *operand) readBy(reading program.Reading, kind program.Kind) {
	c := &o.column
	c.Kind, c.Reading, c.Bits, c.Unsigned = kind, reading, 0, false
	o.kind, o.ids, o.settled = kind, rangeOfColumn(c), true
}

// settle decides how a column is read for a use: a decimal as its value or as its unscaled integer, and several types
// as one. first is the name of the first operator. settle reports false after an error.
func (r *resolver) settle(o *operand, use usage, first string, a location) bool {
	c := &o.column
	if use == usedAsUnknown || o.step != nil || len(o.ops) > 0 || o.vocabulary != nil || o.settled {
		return true
	}
	list := c.variants()
	_, scale, isDecimal := decimalScale(c.Logical)
	switch {
	case list != nil && list[0].class() != numbers:
		if first != "to_seconds" && (first != "to_days" || list[0].class() == clocks) {
			r.add(a, ErrColumnType, "partitions differ in the unit: it is %s; begin with to_seconds or to_days, "+
				"which read each by its own unit", c.Logical)
			return false
		}
		o.readBy(program.ReadSeconds, program.Int64)
	case use == usedByOperator:
	case list != nil && use == usedAsIDs && !idsAgree(list):
		r.add(a, ErrColumnType, "partitions differ, and equal values are not equal ids: it is %s; make ids of the "+
			"values with bucketize, or write the column with one type", c.Logical)
		return false
	case list != nil:
		o.readBy(program.ReadValues, kindOf(use))
	case isDecimal && use != usedAsIDs:
		if !r.checkDecimal(c.Logical, "a DECIMAL in dense has", a) {
			return false
		}
		o.kind = kindOf(use)
		o.ops = []program.Op{decimal.Op{Scale: uint8(scale), To: o.kind}}
	case use == usedAsIDs && c.Kind == program.Float64 && c.Logical == "" && !c.Map.IsMap():
		o.readBy(program.ReadValues, program.Int64)
		o.ids = idRange{-1<<53 + 1, 1<<53 - 1}
	}
	return true
}

// checkDecimal refuses a decimal that no engine reads. what is the subject and the verb of the error.
func (r *resolver) checkDecimal(logical, what string, a location) bool {
	precision, scale, _ := decimalScale(logical)
	if scale < 0 || scale > precision || precision < 1 || precision > maxDecimalPrecision {
		r.add(a, ErrColumnType, "%s at most %d digits, and the column is %s", what, maxDecimalPrecision, logical)
		return false
	}
	return true
}
