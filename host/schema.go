package host

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
	"github.com/millrace/millrace/sdk/pipeline"
)

// schema is the common schema of a data set's partitions while they are merged.
type schema struct {
	first   string // the partition whose columns began it
	columns []pipeline.ColumnInfo
	source  program.Source
	values  map[string]float64 // elements of each list column
	rows    float64
}

// add merges the schema of a partition. A column that is nullable in one partition is nullable. A column that some
// partition lacks, or has as another type, cannot be used, and says why.
func (s *schema) add(p *partition.Partition, o text.Options) error {
	columns, values := Columns(p, o)
	if s.columns == nil {
		for i := range columns {
			if c := &columns[i]; c.Unsupported != nil {
				c.Unsupported = fmt.Errorf("%s: %w", p.Name, c.Unsupported)
			}
		}
		s.first, s.columns, s.source, s.values = p.Name, columns, p.Source, map[string]float64{}
	} else {
		if s.source != p.Source {
			return fmt.Errorf("%w: %s is %v, %s is %v", ErrSchema, s.first, s.source, p.Name, p.Source)
		}
		byName := make(map[string]*pipeline.ColumnInfo, len(columns))
		for i := range columns {
			byName[columns[i].Name] = &columns[i]
		}
		known := make(map[string]bool, len(s.columns))
		for i := range s.columns {
			c := &s.columns[i]
			known[c.Name] = true
			if err := s.merge(c, byName[c.Name], p.Name); c.Unsupported == nil {
				c.Unsupported = err
			}
		}
		for _, c := range columns {
			if !known[c.Name] {
				known[c.Name] = true
				c.Unsupported = fmt.Errorf("%w: %s has the column, %s has not", ErrSchema, p.Name, s.first)
				s.columns = append(s.columns, c)
			}
		}
	}
	for name, n := range values {
		s.values[name] += n
	}
	s.rows += float64(p.Rows)
	return nil
}

// merge widens c by what another partition has for the column, and returns why that is impossible.
func (s *schema) merge(c, other *pipeline.ColumnInfo, partition string) error {
	switch {
	case other == nil:
		return fmt.Errorf("%w: %s has the column, %s has not", ErrSchema, s.first, partition)
	case c.Unsupported != nil:
		return nil // said already
	case other.Unsupported != nil:
		return fmt.Errorf("%s: %w", partition, other.Unsupported)
	case other.Kind != c.Kind || other.List != c.List || other.Unsigned != c.Unsigned || other.Map != c.Map:
		return fmt.Errorf("%w: it has another type in %s than in %s", ErrSchema, partition, s.first)
	}
	c.Nullable = c.Nullable || other.Nullable
	c.ElementNullable = c.ElementNullable || other.ElementNullable
	c.Logical = pipeline.UnifyLogical(c.Logical, other.Logical)
	if c.Bits != other.Bits {
		c.Bits = widest(c.Bits, other.Bits)
	}
	return nil
}

// widest returns the larger of two widths, where 0 is the full width.
func widest(a, b uint8) uint8 {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

// meanLength returns the mean number of elements a row of each list column.
func (s *schema) meanLength() map[string]float64 {
	m := map[string]float64{}
	for name, n := range s.values {
		if s.rows > 0 {
			m[name] = n / s.rows
		}
	}
	return m
}

// Columns returns a partition's columns as a pipeline needs to know them, where text is read as o says. It also returns
// the number of levels of each list column: its elements, and one for each empty or null list. The number of a map to
// lists is that of a feature that every row has. A map stands where its first leaf does; maps that cannot be read come
// last.
func Columns(p *partition.Partition, o text.Options) ([]pipeline.ColumnInfo, map[string]float64) {
	switch p.Source {
	case program.CriteoTSV:
		return pipeline.TextSchema(o.LabelAbsent), nil
	case program.CriteoBinary:
		return pipeline.BinarySchema(), nil
	}
	values := map[string]float64{}
	columns := make([]pipeline.ColumnInfo, 0, len(p.File.Leaves))
	seen := map[string]bool{}
	for i := range p.File.Leaves {
		l := &p.File.Leaves[i]
		if l.Part > format.MapKeys {
			continue // with the keys
		}
		c := pipeline.ColumnInfo{
			Name: l.Name, Source: program.Parquet, Kind: parquetcolumn.KindOf(l.Physical.Kind()), List: l.List,
			Nullable: l.Nullable(), ElementNullable: l.List && l.MaxDef > l.RepDef, Unsigned: l.Unsigned,
			Bits: bits(l), Unsupported: l.Unsupported, Logical: logical(l),
		}
		leaves := []int{i}
		if l.Part == format.MapKeys {
			c, leaves = mapColumn(p.File, i)
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
			c.Unsupported = errors.Join(c.Unsupported, fmt.Errorf("%w: two columns are called %s", ErrSchema, c.Name))
		}
		seen[c.Name] = true
		columns = append(columns, c)
	}
	for i := range p.File.Maps {
		if m := &p.File.Maps[i]; m.Unsupported != nil && !seen[m.Name] {
			seen[m.Name] = true
			columns = append(columns,
				pipeline.ColumnInfo{Name: m.Name, Source: program.Parquet, Unsupported: m.Unsupported})
		}
	}
	return columns, values
}

// mapColumn returns the column of the map whose keys are a leaf, and the map's leaves.
func mapColumn(f *format.File, keys int) (pipeline.ColumnInfo, []int) {
	i := slices.IndexFunc(f.Maps, func(m format.Map) bool { return m.Unsupported == nil && m.Keys == keys })
	m := &f.Maps[i]
	v := &f.Leaves[m.Values]
	c := pipeline.ColumnInfo{
		Name: m.Name, Source: program.Parquet, Kind: parquetcolumn.KindOf(v.Physical.Kind()), List: m.List, Nullable: true,
		ElementNullable: m.List && v.MaxDef > v.RepDef,
		Logical:         logical(v),
		Unsigned:        v.Unsigned, Bits: bits(v), Map: pipeline.MapInfo{Keys: f.Leaves[keys].Path, Values: v.Path},
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
