package slicer

import (
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/sdk/partition"
)

// starter begins the chunks of a mini-batch.
type starter struct {
	columns *columns
	batch   *miniBatch
	arena   *arena
	direct  bool // the engine reads the partition where it lies

	asking  *chunk // whose page index was asked for
	request ReadIndex
}

// takeIndex takes in the page index that was asked for.
func (s *starter) takeIndex(index partition.PageIndex) {
	if s.asking != nil {
		s.asking.pageIndex = index
	}
}

// beginChunks begins the chunks of the mini-batch that are not begun, and returns the request for the page index of
// one of them.
func (s *starter) beginChunks() Step {
	if c := s.asking; c != nil {
		s.asking = nil
		s.placeCursor(c)
	}
	for column := range s.columns.leaves {
		for _, r := range s.batch.rowGroups {
			if s.columns.findBegunChunk(column, r.group) != nil {
				continue
			}
			if ask := s.beginChunk(column, r.group, s.batch.firstRow+int64(r.row)); ask != nil {
				return ask
			}
		}
	}
	return nil
}

// beginChunk begins the chunk of a column in a row group, with its cursor before a row of the partition. It returns a
// step if the chunk's page index is worth a read.
func (s *starter) beginChunk(column, group int, row int64) Step {
	leaf := s.columns.leaves[column]
	annotation := program.NotAnnotated
	if leaf != nil {
		annotation = parquetcolumn.TakesAnnotation(&s.columns.program.Columns[column], leaf)
	}
	c := describeChunk(s.columns.partition, column, leaf, annotation, group,
		row-s.columns.partition.RowGroups()[group].First)
	c.moveWholeBelow = min(partition.SmallChunk, s.arena.workspace.span.Len/uint64(8*len(s.columns.leaves)))
	if leaf == nil || s.direct || c.length <= partition.SmallChunk {
		s.placeCursor(c)
		return nil
	}
	s.asking = c
	s.request = ReadIndex{RowGroup: group, Leaf: leaf, Row: c.row}
	return &s.request
}

// placeCursor places a new chunk's cursor as near before its row as is known.
func (s *starter) placeCursor(c *chunk) {
	c.jumpToIndexedPage()
	if leaf := s.columns.leaves[c.column]; leaf != nil && c.row > 0 {
		c.findResumePoint(s.columns.partition, leaf.Index)
	}
	s.columns.begun[c.column] = append(s.columns.begun[c.column], c)
}

// listPortions lists the mini-batch's portions, in the program's order.
func (s *starter) listPortions() {
	b := s.batch
	for column := 0; column < len(s.columns.leaves); column += s.columns.parts(column) {
		for _, r := range b.rowGroups {
			for part := column; part < column+s.columns.parts(column); part++ {
				b.portions = append(b.portions, portion{
					chunk: s.columns.findBegunChunk(part, r.group), firstRow: r.row, rowsLeft: r.rows, taskRows: r.rows,
				})
			}
		}
	}
}
