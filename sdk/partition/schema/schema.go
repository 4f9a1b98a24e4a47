// Package schema reads the columns of a partition as a pipeline needs to know them, and unifies those of the partitions
// of a data set. It is pure: the partition's footer was read before.
package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// Union is the common schema of a data set's partitions while they are unified. The zero value has no partitions.
type Union struct {
	first  string // the partition that was added first
	source program.Source
	union  columntypes.Union
	values map[string]float64 // elements of each list column
	rows   float64
}

// Add unifies the schema of a partition with those of the partitions before it, whose names come before its name. Text
// is read as o says. The error of a partition of another format wraps columntypes.ErrDisagree.
func (u *Union) Add(p *partition.Partition, o text.Options) error {
	columns, values := Columns(p, o)
	switch {
	case u.first == "":
		u.first, u.source, u.values = p.Name, p.Source, map[string]float64{}
	case u.source != p.Source:
		return fmt.Errorf("%w: %s is %v, %s is %v", columntypes.ErrDisagree, u.first, u.source, p.Name, p.Source)
	}
	u.union.Add([]string{p.Name}, columns)
	for name, n := range values {
		u.values[name] += n
	}
	u.rows += float64(p.Rows)
	return nil
}

// Columns returns the columns of all partitions.
func (u *Union) Columns() []columntypes.Column { return u.union.Columns() }

// MeanLength returns the mean number of elements a row of each list column.
func (u *Union) MeanLength() map[string]float64 {
	m := map[string]float64{}
	for name, n := range u.values {
		if u.rows > 0 {
			m[name] = n / u.rows
		}
	}
	return m
}

// Columns returns a partition's columns as a pipeline needs to know them, where text is read as o says. It also returns
// the number of levels of each list column: its elements, and one for each empty or null list. The number of a map to
// lists is that of a feature that every row has. A map stands where its first leaf does. Behind all of these come the
// leaves of maps whose keys are text or whose values are bytes, as lists by themselves, and then the maps that cannot
// be read.
func Columns(p *partition.Partition, o text.Options) ([]columntypes.Column, map[string]float64) {
	switch p.Source {
	case program.CriteoTSV:
		return columntypes.TextSchema(o.LabelAbsent), nil
	case program.CriteoBinary:
		return columntypes.BinarySchema(), nil
	}
	values := map[string]float64{}
	columns := make([]columntypes.Column, 0, len(p.File.Leaves))
	seen := map[string]bool{}
	var leavesOfMaps []int // whose keys are text, or whose values are bytes
	for i := range p.File.Leaves {
		l := &p.File.Leaves[i]
		if l.Part > format.MapKeys {
			continue // with the keys
		}
		c := leafColumn(l)
		leaves := []int{i}
		if l.Part == format.MapKeys {
			if c, leaves = mapColumn(p.File, i); c.Map.TextKeys || c.Kind == program.Bytes {
				leavesOfMaps = append(leavesOfMaps, leaves...)
			}
		}
		for g := range p.File.RowGroups {
			chunks := p.File.RowGroups[g].Columns
			for _, leaf := range leaves {
				if c.Unsupported == nil && chunks[leaf].Unsupported != nil {
					c.Unsupported = chunks[leaf].Unsupported
				}
			}
			switch {
			case c.Map.IsMap() && c.List:
				// The number of elements if every row had the feature.
				values[c.Name] += float64(p.File.RowGroups[g].Rows) *
					float64(chunks[leaves[1]].NumValues) / float64(max(chunks[i].NumValues, 1))
			case c.List:
				values[c.Name] += float64(chunks[i].NumValues)
			}
		}
		if seen[c.Name] {
			c.Unsupported = errors.Join(c.Unsupported,
				fmt.Errorf("two columns of the file are called %s: rename one", c.Name))
		}
		seen[c.Name] = true
		columns = append(columns, c)
	}
	for _, i := range leavesOfMaps {
		l := &p.File.Leaves[i]
		c := leafColumn(l)
		for g := range p.File.RowGroups {
			chunk := &p.File.RowGroups[g].Columns[i]
			if values[c.Name] += float64(chunk.NumValues); c.Unsupported == nil {
				c.Unsupported = chunk.Unsupported
			}
		}
		if !seen[c.Name] {
			seen[c.Name] = true
			columns = append(columns, c)
		}
	}
	for i := range p.File.Maps {
		if m := &p.File.Maps[i]; m.Unsupported != nil && !seen[m.Name] {
			seen[m.Name] = true
			columns = append(columns,
				columntypes.Column{Name: m.Name, Source: program.Parquet, Unsupported: m.Unsupported})
		}
	}
	return columns, values
}

// leafColumn returns the column of a leaf by itself.
func leafColumn(l *format.Leaf) columntypes.Column {
	c := columntypes.Column{
		Name: l.Name, Source: program.Parquet, Kind: parquetcolumn.KindOf(l.Physical.Kind()), List: l.List,
		Nullable: l.Nullable(), ElementNullable: l.List && l.MaxDef > l.RepDef, Unsigned: l.Unsigned,
		Bits: bits(l), Unsupported: l.Unsupported, Logical: logical(l),
	}
	if l.Logical == "UNKNOWN" {
		c.Null = columntypes.NullSomewhere | columntypes.NullEverywhere
		if c.List {
			c.Null |= columntypes.NullLists
		}
		c.Kind, c.Bits, c.Logical = program.Int64, 0, ""
	}
	return c
}

// mapColumn returns the column of the map whose keys are a leaf, and the map's leaves.
func mapColumn(f *format.File, keys int) (columntypes.Column, []int) {
	i := slices.IndexFunc(f.Maps, func(m format.Map) bool { return m.Unsupported == nil && m.Keys == keys })
	m := &f.Maps[i]
	v := &f.Leaves[m.Values]
	c := columntypes.Column{
		Name: m.Name, Source: program.Parquet, Kind: parquetcolumn.KindOf(v.Physical.Kind()), List: m.List, Nullable: true,
		ElementNullable: m.List && v.MaxDef > v.RepDef,
		Logical:         logical(v),
		Unsigned:        v.Unsigned, Bits: bits(v), Map: columntypes.Map{Keys: f.Leaves[keys].Path, Values: v.Path,
			TextKeys: f.Leaves[keys].Physical == format.ByteArray},
	}
	leaves := []int{keys, m.Values}
	if m.Scores >= 0 {
		s := &f.Leaves[m.Scores]
		c.Map.Scores, c.Map.ScoreKind = s.Path, parquetcolumn.KindOf(s.Physical.Kind())
		c.ElementNullable = c.ElementNullable || s.MaxDef > s.RepDef
		leaves = append(leaves, m.Scores)
	}
	return c, leaves
}

// logical returns what the values of a column stand for: the logical type of bytes, or "" for text, and the logical
// type of integers that are times or decimals.
func logical(l *format.Leaf) string {
	switch parquetcolumn.KindOf(l.Physical.Kind()) {
	case program.Int64:
		switch name, _, _ := strings.Cut(l.Logical, "("); name {
		case "TIMESTAMP", "TIME", "DATE", "DECIMAL":
			return l.Logical
		}
		return ""
	case program.Bytes:
		switch l.Logical {
		case "STRING", "ENUM", "unknown":
			return ""
		}
		if l.Physical == format.Int96 {
			return format.Int96.String()
		}
		return l.Logical
	}
	return ""
}

// bits returns the width that an integer column is known to keep to, or 0 for the full width.
func bits(l *format.Leaf) uint8 {
	switch {
	case l.Physical == format.Boolean:
		return 1
	case l.Physical == format.Int32 && l.BitWidth == 0:
		return 32
	case l.Physical == format.Int32 || l.Physical == format.Int64:
		return uint8(l.BitWidth & 63) // INT(64) is the full width
	}
	return 0
}
