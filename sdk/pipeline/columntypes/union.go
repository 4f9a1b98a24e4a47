package columntypes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
)

// ErrDisagree says that partitions of one data set do not have the same columns of the same types.
var ErrDisagree = errors.New("partitions disagree")

// Absence says which partitions of a data set lack a column. The zero value says that all partitions have it.
type Absence struct {
	Partitions int    // how many partitions lack the column
	Names      string // The first of these partitions, at most mostAbsentNames, joined by commas.
}

// mostAbsentNames is how many partitions an Absence names.
const mostAbsentNames = 3

// String names the partitions, as "a.parquet, b.parquet, c.parquet and 4 more".
func (a Absence) String() string {
	if a.Partitions == 0 {
		return "no partition"
	}
	if named := strings.Count(a.Names, ", ") + 1; a.Partitions > named {
		return fmt.Sprintf("%s and %d more", a.Names, a.Partitions-named)
	}
	return a.Names
}

// lackedBy adds partitions that lack the column.
func (a *Absence) lackedBy(names []string, more Absence) {
	a.Partitions += len(names) + more.Partitions
	if more.Names != "" {
		names = append(slices.Clone(names), more.Names)
	}
	for _, name := range names {
		if a.Names == "" {
			a.Names = name
		} else if strings.Count(a.Names, ", ")+2 <= mostAbsentNames {
			a.Names += ", " + name
		}
	}
}

// Union is the columns of a data set's partitions while they are unified. Columns come in the order in which
// partitions were added and, within a partition, in its own order: partitions are added in the order of their names,
// so that the order of columns does not depend on drives or nodes. The zero value has no partitions.
//
// A column that is null in one partition may be null, also if its type is null there; integers are as wide as the
// widest; float32 and float64 are float64. Numbers that are integers, real numbers or decimals, and times of several
// units, keep the types of the partitions: the operator that takes them reads them as one type, or is refused. A column
// whose types have nothing in common cannot be used, and its error names the partitions. A column that partitions lack
// has an [Absence].
type Union struct {
	columns    []Column
	typedBy    []string // by column: the partition that had it first
	index      map[string]int
	partitions []string
	last       []Column
}

// Add adds partitions that have the same columns. At least one partition must be named.
func (u *Union) Add(partitions []string, columns []Column) {
	if u.index == nil {
		u.index = make(map[string]int, len(columns))
	}
	if u.last != nil && slices.Equal(u.last, columns) && !slices.ContainsFunc(columns, hasProblem) {
		u.lack(partitions, columns)
		u.partitions = append(u.partitions, partitions...)
		return
	}
	u.lack(partitions, columns)
	first := make(map[string]bool, len(columns))
	for i := range columns {
		c := &columns[i]
		at, known := u.index[c.Name]
		switch {
		case first[c.Name]: // of two columns with one name the first is kept, and both say why they cannot be read
			if u.columns[at].Unsupported == nil && c.Unsupported != nil {
				u.columns[at].Unsupported = namePartition(c.Unsupported, partitions)
			}
		case known:
			u.merge(at, c, partitions)
		default:
			u.index[c.Name] = len(u.columns)
			added := *c
			added.Absent = Absence{}
			added.Absent.lackedBy(u.partitions, c.Absent)
			if added.Unsupported != nil {
				added.Unsupported = namePartition(added.Unsupported, partitions)
			}
			u.columns, u.typedBy = append(u.columns, added), append(u.typedBy, partitions[0])
		}
		first[c.Name] = true
	}
	u.partitions, u.last = append(u.partitions, partitions...), columns
}

// hasProblem reports whether a column cannot be read, or is absent somewhere.
func hasProblem(c Column) bool { return c.Unsupported != nil || c.Absent.Partitions > 0 }

// lack notes that partitions have these columns and no others.
func (u *Union) lack(partitions []string, columns []Column) {
	have := make(map[string]bool, len(columns))
	for i := range columns {
		have[columns[i].Name] = true
	}
	for i := range u.columns {
		if c := &u.columns[i]; !have[c.Name] {
			c.Absent.lackedBy(partitions, Absence{})
		}
	}
}

// Columns returns the columns of all partitions.
func (u *Union) Columns() []Column { return slices.Clone(u.columns) }

// merge widens a column by what partitions have for it, or says why that is impossible.
func (u *Union) merge(at int, other *Column, partitions []string) {
	c := &u.columns[at]
	c.Absent.lackedBy(nil, other.Absent)
	switch {
	case c.Unsupported != nil:
		return // said already
	case other.Unsupported != nil:
		c.Unsupported = namePartition(other.Unsupported, partitions)
		return
	}
	if c.Null&NullEverywhere != other.Null&NullEverywhere {
		u.mergeNull(at, other, partitions)
		return
	}
	c.Null |= other.Null
	if c.Null&NullEverywhere != 0 {
		c.List, c.ElementNullable = c.List || other.List, c.ElementNullable || other.ElementNullable
		return
	}
	if list := mixed(c, u.typedBy[at], other, partitions[0]); list != nil {
		c.mix(list)
		c.Nullable = c.Nullable || other.Nullable
		c.ElementNullable = c.ElementNullable || other.ElementNullable
		return
	}
	kind, kindsMeet := unifyKinds(c.Kind, other.Kind)
	bits, unsigned, widthsMeet := unifyIntegers(c, other)
	logical, logicalsMeet := unifyLogical(c.Logical, other.Logical)
	if !kindsMeet || !widthsMeet || !logicalsMeet || other.List != c.List || other.Map != c.Map {
		c.Unsupported = fmt.Errorf("%w: it is %s in %s and %s in %s", ErrDisagree, c.typeName(), u.typedBy[at],
			other.typeName(), partitions[0])
		return
	}
	c.Kind, c.Bits, c.Unsigned = kind, bits, unsigned
	c.Nullable = c.Nullable || other.Nullable
	c.ElementNullable = c.ElementNullable || other.ElementNullable
	c.Logical = logical
}

// mergeNull merges two columns, of which exactly one has the type null in all of its partitions.
func (u *Union) mergeNull(at int, other *Column, partitions []string) {
	c := &u.columns[at]
	null, typed, by := c, other, partitions[0]
	if other.Null&NullEverywhere != 0 {
		null, typed, by = other, c, u.typedBy[at]
	}
	if null.List && !typed.List || null.List && typed.Map.IsMap() {
		c.Unsupported = fmt.Errorf("%w: it is %s in %s and %s in %s", ErrDisagree, c.typeName(), u.typedBy[at],
			other.typeName(), partitions[0])
		return
	}
	merged := *typed
	merged.Name, merged.Absent = c.Name, c.Absent
	merged.Null = typed.Null | null.Null&^NullEverywhere
	merged.Nullable, merged.ElementNullable = true, typed.ElementNullable || null.List
	*c, u.typedBy[at] = merged, by
}

// namePartition says in which partition a column cannot be read, unless the error names one of the partitions.
func namePartition(why error, partitions []string) error {
	place, _, _ := strings.Cut(why.Error(), ": ")
	if slices.Contains(partitions, place) {
		return why
	}
	return fmt.Errorf("%s: %w", partitions[0], why)
}

// unifyKinds returns the kind that holds values of two kinds. ok is false if there is none.
func unifyKinds(a, b program.Kind) (kind program.Kind, ok bool) {
	if a == program.Float32 && b == program.Float64 || a == program.Float64 && b == program.Float32 {
		return program.Float64, true
	}
	return a, a == b
}

// unifyIntegers returns the width of integers that holds those of two columns. ok is false if only one of them is
// unsigned and has 64 bits: some of its values do not fit int64.
func unifyIntegers(a, b *Column) (bits uint8, unsigned, ok bool) {
	if a.Kind != program.Int64 || b.Kind != program.Int64 || a.Unsigned == b.Unsigned {
		return widest(a.Bits, b.Bits), a.Unsigned, a.Unsigned == b.Unsigned
	}
	signed, other := a, b
	if a.Unsigned {
		signed, other = b, a
	}
	switch {
	case other.Bits == 0:
		return 0, false, false
	case signed.Bits == 1: // a boolean
		return other.Bits, true, true
	case other.Bits > 16:
		return 0, false, true
	}
	return widest(signed.Bits, 2*other.Bits), false, true
}

// widest returns the larger of two widths, where 0 is the full width.
func widest(a, b uint8) uint8 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}
