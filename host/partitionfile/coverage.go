package partitionfile

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
	"github.com/millrace/millrace/internal/quantity"
)

// Coverage says which share of a data set's rows has a value of each column.
type Coverage struct {
	Partitions int              `json:"partitions"`
	Rows       int64            `json:"rows"`
	Columns    []ColumnCoverage `json:"columns"`
}

// ColumnCoverage is the coverage of one column, over all partitions: rows of partitions that lack the column have no
// value.
type ColumnCoverage struct {
	Name        string `json:"name"`
	PresentRows int64  `json:"present_rows"` // These of the rows that are known are present.
	UnknownRows int64  `json:"unknown_rows"` // The files of some partitions do not say it: these rows are theirs.
	// Share is the share of all rows that have a value; nil if some rows are unknown, or if there are none.
	Share  *float64 `json:"present_share"`
	Lacked int      `json:"absent_partitions"`
	// LackedBy are the first of the partitions that lack the column.
	LackedBy []string `json:"absent_in,omitempty"`
}

// mostLacking is how many partitions without a column are named.
const mostLacking = 5

// Cover returns the coverage of the columns of files, in the order in which the files, in their order, have them first.
func Cover(files []Description) Coverage {
	v := Coverage{Partitions: len(files), Columns: []ColumnCoverage{}}
	index := map[string]int{}
	for i := range files {
		v.Rows += files[i].Rows
		for _, c := range files[i].Columns {
			if _, known := index[c.Name]; !known {
				index[c.Name] = len(v.Columns)
				v.Columns = append(v.Columns, ColumnCoverage{Name: c.Name})
			}
		}
	}
	for i := range files {
		have := map[string]bool{}
		for _, c := range files[i].Columns {
			if have[c.Name] {
				continue
			}
			have[c.Name] = true
			if to := &v.Columns[index[c.Name]]; c.PresentRows != nil {
				to.PresentRows += *c.PresentRows
			} else {
				to.UnknownRows += files[i].Rows
			}
		}
		for k := range v.Columns {
			c := &v.Columns[k]
			if have[c.Name] {
				continue
			}
			if c.Lacked++; len(c.LackedBy) < mostLacking {
				c.LackedBy = append(c.LackedBy, files[i].Path)
			}
		}
	}
	for k := range v.Columns {
		if c := &v.Columns[k]; c.UnknownRows == 0 && v.Rows > 0 {
			share := float64(c.PresentRows) / float64(v.Rows)
			c.Share = &share
		}
	}
	return v
}

// Describe tells the coverage of a column in a few words, as "97.5 %" or "unknown".
func (c *ColumnCoverage) Describe() string {
	s := "unknown"
	if c.Share != nil {
		s = fmt.Sprintf("%.4g %%", 100**c.Share)
	}
	if c.Lacked == 0 {
		return s
	}
	s += fmt.Sprintf(", absent in %s: %s", quantity.Of(c.Lacked, "partition"), strings.Join(c.LackedBy, ", "))
	if c.Lacked > len(c.LackedBy) {
		s += ", ..."
	}
	return s
}

// presentRows returns how many rows have a value in a leaf, by the statistics of its chunks; nil if a chunk has none.
func presentRows(f *format.File, leaf int) *int64 {
	sum := int64(0)
	for g := range f.RowGroups {
		n := f.RowGroups[g].Columns[leaf].PresentRows
		if n < 0 || f.RowGroups[g].Columns[leaf].Unsupported != nil {
			return nil
		}
		sum += n
	}
	return &sum
}

// countRows reads the chunks of a leaf and returns how many rows have a value. It returns nil if a chunk cannot be read
// by pipelines either.
func countRows(ctx context.Context, r io.ReaderAt, f *format.File, leaf int) (*int64, error) {
	if f.Leaves[leaf].Unsupported != nil {
		return nil, nil
	}
	sum := int64(0)
	for g := range f.RowGroups {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if f.RowGroups[g].Columns[leaf].Unsupported != nil {
			return nil, nil
		}
		column, err := reference.ReadColumn(r, f, g, leaf)
		if err != nil {
			return nil, fmt.Errorf("count the values of column %q: %w", f.Leaves[leaf].Name, err)
		}
		for _, row := range column.Rows {
			list, isList := row.([]any)
			if row != nil && (!isList || len(list) > 0) {
				sum++
			}
		}
	}
	return &sum, nil
}
