package columntypes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// variant is one of the types that a column has in its partitions, and the first partition that has it.
type variant struct{ name, partition string }

// maxVariants is the largest number of types that a column lists. A column that has more types has decimals of several
// scales among those that it lists, and the rest cannot change how it is read.
const maxVariants = 16

// VariantClass is a set of types that can be read as one type.
type VariantClass uint8

// The classes.
const (
	NoClass  VariantClass = iota // a type that is read as itself alone
	Numbers                      // integers, real numbers and decimals, read as values
	Instants                     // TIMESTAMP, DATE and INT96, read as seconds
	Clocks                       // TIME, read as seconds
)

// keptAsBytes ends the name of a decimal that is stored as bytes.
const keptAsBytes = " kept as bytes"

// class returns the types that can be read as one with the variant's.
func (v variant) class() VariantClass {
	name, _, _ := strings.Cut(v.name, "(")
	switch name {
	case "DECIMAL", "int64", "uint64", "float32", "float64":
		return Numbers
	case "TIMESTAMP":
		if _, ok := TimeUnitOf(v.name); ok {
			return Instants
		}
	case "DATE", "INT96":
		return Instants
	case "TIME":
		return Clocks
	}
	return NoClass
}

// scale returns the scale of a decimal, and 0 for another type.
func (v variant) scale() int {
	_, scale, _ := DecimalScale(strings.TrimSuffix(v.name, keptAsBytes))
	return scale
}

// readsAs reports whether two types are read alike: decimals of one scale and one storage are. No other name has a
// comma.
func (v variant) readsAs(w variant) bool {
	_, scale, _ := strings.Cut(v.name, ", ")
	_, otherScale, _ := strings.Cut(w.name, ", ")
	return v.name == w.name || scale != "" && scale == otherScale
}

// mixed returns the types of two columns together if there are several and all of them can be read as one; otherwise
// nil. partition has the column c, and otherPartition the other column.
func mixed(c *Column, partition string, other *Column, otherPartition string) []variant {
	if c.Map.IsMap() || other.Map.IsMap() || c.List != other.List || c.Source > program.Parquet {
		return nil
	}
	if _, ok := unifyLogical(c.Logical, other.Logical); ok && c.Kind == other.Kind {
		return nil
	}
	list := c.variantsIn(partition)
	class := list[0].class() // of the whole list
	if class == NoClass {
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

// variants returns the types of a column that mix has made, and nil for another column.
func (c *Column) variants() (list []variant) {
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
func (c *Column) mix(list []variant) {
	c.Kind, c.Bits, c.Unsigned = program.Float64, 0, false
	if list[0].class() != Numbers {
		c.Kind = program.Int64
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.name + " in " + strconv.Quote(v.partition)
	}
	c.Logical = strings.Join(names, ", ")
}

// variantsIn returns the types of a column: those that mix has joined, or its one type with a partition that has it.
func (c *Column) variantsIn(partition string) []variant {
	if list := c.variants(); list != nil {
		return list
	}
	name := c.Logical
	switch {
	case c.Kind == program.Bytes && strings.HasPrefix(name, "DECIMAL("):
		name += keptAsBytes
	case name == "" && c.IsUint64():
		name = "uint64"
	case name == "" && c.Kind != program.Bytes:
		name = c.Kind.String()
	}
	return []variant{{name, partition}}
}

// Class returns which types the column has in its partitions, and noClass for a column of one type.
func (c *Column) Class() VariantClass {
	if list := c.variants(); list != nil {
		return list[0].class()
	}
	return NoClass
}

// IDsAgree reports whether equal values of the column's types are equal ids: numbers are ids by their values if they
// are whole, and decimals by their unscaled integers if all have one scale.
func (c *Column) IDsAgree() bool {
	list := c.variants()
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(v variant) bool { return v.name == name })
	}
	return !slices.ContainsFunc(list, func(v variant) bool { return v.scale() != list[0].scale() }) &&
		!(has("int64") && has("uint64"))
}
