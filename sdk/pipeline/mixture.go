package pipeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// variant is one of the types of a column that partitions keep in several, and the first partition that has it.
type variant struct{ name, partition string }

// maxVariants bounds how many types of a column are told apart. More of them change nothing: such a column has decimals
// of several scales already.
const maxVariants = 16

// variantClass says which types can be brought to one.
type variantClass uint8

const (
	noClass  variantClass = iota
	numbers               // integers, real numbers, decimals: their values
	instants              // TIMESTAMP, DATE and INT96: seconds
	clocks                // TIME: seconds
)

// keptAsBytes is behind the name of a decimal that is stored as bytes.
const keptAsBytes = " kept as bytes"

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

// variants returns the types of a column that partitions keep in several types which can be brought to one, and nil for
// another column.
func (c *ColumnInfo) variants() []variant { return parseVariants(c.Logical) }

// mixtureBegins is between the name of a type and the quoted name of a partition.
const mixtureBegins = " in \""

// parseVariants reads what joinVariants wrote.
func parseVariants(logical string) (list []variant) {
	for rest := logical; rest != ""; {
		name, _, ok := strings.Cut(rest, mixtureBegins)
		if !ok {
			return nil
		}
		quoted, err := strconv.QuotedPrefix(rest[len(name)+len(mixtureBegins)-1:])
		if err != nil {
			return nil
		}
		partition, err := strconv.Unquote(quoted)
		if err != nil {
			return nil
		}
		list = append(list, variant{name, partition})
		rest = strings.TrimPrefix(rest[len(name)+len(mixtureBegins)-1+len(quoted):], ", ")
	}
	return list
}

// joinVariants writes types as `DECIMAL(9, 2) in "a.parquet", DECIMAL(9, 3) in "b.parquet"`.
func joinVariants(list []variant) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(v.name + " in " + strconv.Quote(v.partition))
	}
	return b.String()
}

// variantsIn returns the types of a column in a partition that has it, or in several.
func (c *ColumnInfo) variantsIn(partition string) []variant {
	if list := c.variants(); list != nil {
		return list
	}
	name := c.Logical
	switch {
	case c.Kind == program.Bytes && strings.HasPrefix(name, "DECIMAL("):
		name += keptAsBytes
	case name == "" && c.Kind == program.Int64 && c.Unsigned && c.Bits == 0:
		name = "uint64"
	case name == "" && c.Kind != program.Bytes:
		name = c.Kind.String()
	}
	return []variant{{name, partition}}
}

// mixed returns the types of two columns together, if all of them can be brought to one, and they are several. by and
// in are partitions with the columns.
func mixed(c *ColumnInfo, by string, other *ColumnInfo, in string) []variant {
	if c.Map.IsMap() || other.Map.IsMap() || c.List != other.List || c.Source > program.Parquet {
		return nil
	}
	if _, ok := unifyLogical(c.Logical, other.Logical); ok && c.Kind == other.Kind {
		return nil
	}
	list := c.variantsIn(by)
	for _, v := range other.variantsIn(in) {
		if !slices.ContainsFunc(list, func(w variant) bool { return w.name == v.name }) && len(list) < maxVariants {
			list = append(list, v)
		}
	}
	class := list[0].class()
	if class == noClass || slices.ContainsFunc(list, func(v variant) bool { return v.class() != class }) {
		return nil
	}
	plain := func(names ...string) bool {
		return !slices.ContainsFunc(list, func(v variant) bool { return !slices.Contains(names, v.name) })
	}
	if len(list) == 1 || plain("float32", "float64") || plain("int64", "uint64") {
		return nil // other rules unify them
	}
	return list
}

// mix makes c a column of several types.
func (c *ColumnInfo) mix(list []variant) {
	c.Kind, c.Bits, c.Unsigned = program.Float64, 0, false
	if list[0].class() != numbers {
		c.Kind = program.Int64
	}
	c.Logical = joinVariants(list)
}

// idsAgree reports whether equal values of several types are equal ids: numbers are ids by their values if they are
// whole, and decimals by their unscaled integers, if all have one scale.
func idsAgree(list []variant) bool {
	scales := map[int]bool{}
	signs := map[string]bool{}
	for _, v := range list {
		signs[v.name] = true
		_, scale, ok := decimalScale(strings.TrimSuffix(v.name, keptAsBytes))
		if !ok {
			scale = 0
		}
		scales[scale] = true
	}
	return len(scales) == 1 && !(signs["int64"] && signs["uint64"])
}

// usage says what a chain takes a column as.
type usage uint8

const (
	usedAsUnknown usage = iota
	usedAsIDs
	usedAsFloat32
	usedAsFloat64
	usedAsTime
	usedAsDecimal
)

// usageOf returns what operators take a column as, whose values end in a tensor, or go on if to is 0.
func usageOf(ops []Op, to program.Dest) usage {
	for i := range ops {
		switch o := &ops[i]; o.Name {
		case "fill_null", "fill_nan", "fill_median", "clamp", "firstx", "list_slice":
		case "to_seconds", "to_days":
			return usedAsTime
		case "decimal":
			return usedAsDecimal
		case "log", "logit", "box_cox", "normalize", "min_max", "fixed_length":
			return usedAsFloat32
		case "onehot":
			if _, ok := o.arg("lower"); ok {
				return usedAsFloat32
			}
			return usedAsIDs
		case "bucketize":
			compare, _ := o.arg("compare")
			if compare != nil && compare.Value == Text("int64") {
				return usedAsIDs
			}
			if compare != nil && compare.Value == Text("float64") {
				return usedAsFloat64
			}
			return usedAsFloat32
		default:
			return usedAsIDs
		}
	}
	switch to {
	case program.ToSparse:
		return usedAsIDs
	case 0:
		return usedAsUnknown
	}
	return usedAsFloat32
}

// settle decides how a column is read by what the operators take it as: a decimal as its value or its unscaled integer,
// types that differ as the one that each is brought to. It reports false after an error.
func (r *resolver) settle(o *operand, use usage, first string, a location) bool {
	c := &o.column
	if o.step != nil || len(o.ops) > 0 || o.vocabulary != nil || c.Reading == program.ReadSeconds || o.settled {
		return true
	}
	read := func(as program.Reading, kind program.Kind) bool {
		c.Kind, c.Reading, c.Bits, c.Unsigned = kind, as, 0, false
		o.kind, o.ids, o.settled = kind, rangeOfColumn(c), true
		return true
	}
	list := c.variants()
	_, scale, isDecimal := decimalScale(c.Logical)
	switch {
	case list != nil && list[0].class() != numbers:
		if use != usedAsTime || first != "to_seconds" && first != "to_days" ||
			list[0].class() == clocks && first == "to_days" {
			r.add(a, ErrColumnType, "partitions differ in the unit: it is %s; begin with to_seconds or to_days, which read "+
				"each by its own unit", c.Logical)
			return false
		}
		return read(program.ReadSeconds, program.Int64)
	case list != nil && use == usedAsIDs && !idsAgree(list):
		r.add(a, ErrColumnType, "partitions differ, and equal values are not equal ids: it is %s; make ids of the values "+
			"with bucketize, or write the column with one type", c.Logical)
		return false
	case list != nil && use == usedAsIDs:
		return read(program.ReadValues, program.Int64)
	case list != nil && use == usedAsFloat32:
		return read(program.ReadValues, program.Float32)
	case list != nil && use != usedAsDecimal:
		return read(program.ReadValues, program.Float64)
	case isDecimal && (use == usedAsFloat32 || use == usedAsFloat64):
		if !r.checkDecimal(c.Logical, "a DECIMAL in dense", a) {
			return false
		}
		o.kind = program.Float32
		if use == usedAsFloat64 {
			o.kind = program.Float64
		}
		o.ops = []program.Op{program.Decimal{Scale: uint8(scale), To: o.kind}}
	case use == usedAsIDs && c.Kind == program.Float64 && c.Logical == "" && !c.Map.IsMap():
		read(program.ReadValues, program.Int64)
		o.ids = idRange{-1<<53 + 1, 1<<53 - 1}
	}
	return true
}

// checkDecimal refuses a decimal that no engine reads.
func (r *resolver) checkDecimal(logical, what string, a location) bool {
	precision, scale, _ := decimalScale(logical)
	if scale < 0 || scale > precision || precision < 1 || precision > maxDecimalPrecision {
		r.add(a, ErrColumnType, "%s has at most %d digits, and the column is %s", what, maxDecimalPrecision, logical)
		return false
	}
	return true
}
