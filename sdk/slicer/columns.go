package slicer

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/sdk/partition"
)

// columns are the program's columns in a partition. Text has one column, without a leaf.
type columns struct {
	program   *Program
	partition *partition.Partition
	leaves    []*format.Leaf // by program column; nil for a column that the partition lacks, and for text
	begun     [][]*chunk     // by program column: chunks begun and not ended
	learned   Learned
}

// bindLeaves finds the partition's column for every column of the program, and checks that it has the kind that the
// program takes, for rows [first, end).
func (cs *columns) bindLeaves(first, end int64) error {
	if cs.program.Source != program.Parquet {
		cs.leaves, cs.begun = []*format.Leaf{nil}, make([][]*chunk, 1)
		return cs.checkTextIndex()
	}
	for i := range cs.program.Columns {
		leaf, err := cs.bindColumn(&cs.program.Columns[i], first, end)
		if err != nil {
			return err
		}
		cs.leaves = append(cs.leaves, leaf)
	}
	if err := cs.checkMaps(first); err != nil {
		return err
	}
	cs.begun = make([][]*chunk, len(cs.leaves))
	return nil
}

// checkMaps checks that the partition has all columns of each map or none. first is the row that an error names.
func (cs *columns) checkMaps(first int64) error {
	for i := 1; i < len(cs.leaves); i++ {
		part := cs.program.Columns[i].LeafPart()
		if part.OfMap() && part.Continues() && (cs.leaves[i] == nil) != (cs.leaves[i-1] == nil) {
			return &partition.DataError{
				Partition: cs.partition.Name, RowGroup: -1, Column: cs.program.Columns[i].Name, Page: -1, Row: first,
				Err: partition.ErrSchema,
				Message: fmt.Sprintf("the partition has a part of a map, and not all of it; see %q",
					cs.program.Columns[i-1].Name),
			}
		}
	}
	return nil
}

// bindColumn finds the leaf of one column. It returns nil for a column that the partition lacks and may lack.
func (cs *columns) bindColumn(col *program.Column, first, end int64) (*format.Leaf, error) {
	p := cs.partition
	fail := func(kind error, format string, args ...any) (*format.Leaf, error) {
		return nil, &partition.DataError{
			Partition: p.Name, RowGroup: -1, Column: col.Name, Page: -1, Row: first, Err: kind,
			Message: fmt.Sprintf(format, args...),
		}
	}
	leaf, ok := p.File.Leaf(col.Name)
	if col.Absent && (!ok || parquetcolumn.IsNull(leaf)) {
		return nil, nil
	}
	if !ok {
		return fail(partition.ErrSchema, "the partition has no such column")
	}
	if leaf.Unsupported != nil {
		return fail(partition.ErrUnsupported, "%v", leaf.Unsupported)
	}
	kind, list := parquetcolumn.KindOf(leaf.Physical.Kind()), parquetcolumn.IsList(leaf, col.LeafPart())
	if !parquetcolumn.Reads(*col, leaf.Physical, parquetcolumn.TakesAnnotation(col, leaf)) || list != col.List ||
		!parquetcolumn.HoldsPart(leaf, col.LeafPart()) {
		return fail(partition.ErrSchema, "the partition has %v (list %t), the pipeline reads %v (list %t)",
			kind, list, col.Kind, col.List)
	}
	groups := p.RowGroups()
	for g := p.RowGroupOf(first); g < len(groups) && groups[g].First < end; g++ {
		if err := p.File.RowGroups[g].Columns[leaf.Index].Unsupported; err != nil {
			return nil, &partition.DataError{
				Partition: p.Name, RowGroup: g, Column: col.Name, Page: -1, Row: groups[g].First, Message: err.Error(),
				Err: partition.ErrUnsupported,
			}
		}
	}
	return leaf, nil
}

// checkTextIndex checks that a text was indexed as the program reads it.
func (cs *columns) checkTextIndex() error {
	prog, t := cs.program, cs.partition.Text()
	if cs.partition.Source != program.CriteoTSV {
		return nil
	}
	if t.LabelAbsent == prog.Label || int(t.Policy) != int(prog.Malformed) {
		return fmt.Errorf("%s: %w: it was indexed with label %t and malformed rows: %v, the pipeline reads label %t "+
			"and %v", cs.partition.Name, partition.ErrSchema, !t.LabelAbsent, program.Malformed(t.Policy), prog.Label,
			prog.Malformed)
	}
	return nil
}

// findBegunChunk returns the chunk of a column in a row group that was begun, nil if none was.
func (cs *columns) findBegunChunk(column, group int) *chunk {
	for _, c := range cs.begun[column] {
		if c.group == group {
			return c
		}
	}
	return nil
}

// learnedPages returns the page sizes learned for a chunk's column.
func (cs *columns) learnedPages(c *chunk) *pageSizes { return &cs.learned.columns[c.column] }

// noteResumePoints remembers in the partition where the chunks that are not ended stand.
func (cs *columns) noteResumePoints() {
	for column, live := range cs.begun {
		for _, c := range live {
			if leaf := cs.leaves[column]; leaf != nil {
				c.noteResumePoint(cs.partition, leaf.Index)
			}
		}
	}
}

// isTextSource reports whether the partition has rows of text, which are not parted in columns.
func (cs *columns) isTextSource() bool { return cs.partition.File == nil }

// columnName returns the name of a chunk's column for errors, empty for text.
func (cs *columns) columnName(c *chunk) string {
	if cs.isTextSource() {
		return ""
	}
	return cs.program.Columns[c.column].Name
}

// rowGroupNumber returns the row group of a chunk for errors, -1 for text.
func (cs *columns) rowGroupNumber(c *chunk) int {
	if cs.isTextSource() {
		return -1
	}
	return c.group
}
