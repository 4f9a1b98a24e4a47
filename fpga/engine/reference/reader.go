package reference

import (
	"fmt"
	"io"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/fpga/unit/parquet/reference"
	"github.com/millrace/millrace/fpga/unit/text"
)

// Reader makes mini-batches of one partition.
type Reader struct {
	program *program.Program
	eval    evaluator
	file    *format.File
	data    io.ReaderAt
	leaves  []int          // The program's columns have one each; absentLeaf: the file lacks the column.
	chunks  []decodedChunk // the last one decoded, of each column of the program
	rows    []text.Row     // They are all rows of a text partition.
	counts  text.Counts    // They are for a text partition.
	dropped []int64        // Of each row of a text partition: the malformed lines that were left out before it.
}

// decodedChunk is a decoded column chunk.
type decodedChunk struct {
	group int // row group; -1: none
	rows  []any
}

// absentLeaf stands for the leaf of a column that the file lacks.
const absentLeaf = -1

// widenFloats makes float64 of the float32 values of a row.
func widenFloats(row any) any {
	switch v := row.(type) {
	case float32:
		return float64(v)
	case []any:
		wide := make([]any, len(v))
		for i := range v {
			wide[i] = widenFloats(v[i])
		}
		return wide
	}
	return row
}

// withoutEntries returns rows of a leaf of a map as a column that reads the leaf by itself has them: the elements of
// the lists of all entries in one list.
func withoutEntries(rows []any, repetition uint8) []any {
	if repetition < 2 {
		return rows
	}
	flat := make([]any, len(rows))
	for i, row := range rows {
		entries, ok := row.([]any)
		if !ok {
			continue
		}
		list := []any{}
		for _, entry := range entries {
			elements, _ := entry.([]any)
			list = append(list, elements...)
		}
		flat[i] = list
	}
	return flat
}

// NewParquet returns a reader of a Parquet file whose footer was read from r. The program must be valid.
func NewParquet(p *program.Program, f *format.File, r io.ReaderAt) (*Reader, error) {
	if p.Source != program.Parquet {
		return nil, fmt.Errorf("reference: a program for %v", p.Source)
	}
	eval, err := newEvaluator(p)
	if err != nil {
		return nil, err
	}
	d := &Reader{program: p, eval: eval, file: f, data: r, chunks: make([]decodedChunk, len(p.Columns))}
	for i := range p.Columns {
		c := &p.Columns[i]
		l, ok := f.Leaf(c.Name)
		switch {
		case !ok && c.Absent, ok && c.Absent && parquetcolumn.IsNull(l):
			d.leaves = append(d.leaves, absentLeaf)
			continue
		case !ok:
			return nil, fmt.Errorf("reference: the file has no column %q", c.Name)
		case l.Unsupported != nil:
			return nil, fmt.Errorf("reference: column %q: %w", c.Name, l.Unsupported)
		case !parquetcolumn.Reads(*c, l.Physical, parquetcolumn.TakesAnnotation(c, l)) ||
			parquetcolumn.IsList(l, c.LeafPart()) != c.List ||
			!parquetcolumn.HoldsPart(l, c.LeafPart()):
			return nil, fmt.Errorf("reference: column %q is %v (list: %t), the program reads %v (list: %t)",
				c.Name, l.Physical, parquetcolumn.IsList(l, c.LeafPart()), c.Kind, c.List)
		}
		d.leaves = append(d.leaves, l.Index)
		d.chunks[i].group = -1
	}
	return d, nil
}

// NewText returns a reader of a partition of Criteo text or binary rows. The program's source and policy say how to
// read it.
func NewText(p *program.Program, data []byte) (*Reader, error) {
	eval, err := newEvaluator(p)
	if err != nil {
		return nil, err
	}
	d := &Reader{program: p, eval: eval}
	switch p.Source {
	case program.CriteoTSV:
		o := text.Options{LabelAbsent: !p.Label}
		switch p.Malformed {
		case program.MalformedDrop:
			o.Policy = text.Drop
		case program.MalformedNull:
			o.Policy = text.Null
		}
		d.rows, d.dropped, d.counts, err = text.Reference(data, o)
	case program.CriteoBinary:
		d.rows, err = text.ReferenceBinary(data)
	default:
		return nil, fmt.Errorf("reference: a program for %v", p.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return d, nil
}

// Rows returns the number of the partition's rows.
func (r *Reader) Rows() int64 {
	if r.file != nil {
		return r.file.Rows
	}
	return int64(len(r.rows))
}

// Dropped returns how many malformed lines of a text partition were left out before rows [first, first + rows), each
// line before the row that follows it. Lines behind the last row count with it.
func (r *Reader) Dropped(first int64, rows int) int64 {
	upTo := func(row int64) int64 { // the lines that were left out before the rows up to row
		switch {
		case row == 0 || r.dropped == nil:
			return 0
		case row == int64(len(r.dropped)):
			return r.counts.Dropped
		}
		return r.dropped[row-1]
	}
	return upTo(first+int64(rows)) - upTo(first)
}

// largeUnsigned returns a value of 2^63 or more of a row, if there is one.
func largeUnsigned(row any) (uint64, bool) {
	switch v := row.(type) {
	case int64:
		return uint64(v), v < 0
	case []any:
		for _, element := range v {
			if x, ok := largeUnsigned(element); ok {
				return x, true
			}
		}
	}
	return 0, false
}

// readValue returns column i's value in a row of the partition.
func (r *Reader) readValue(i int, row int64) (any, error) {
	if r.file == nil {
		cell := r.rows[row][r.program.Columns[i].Field]
		if !cell.Valid {
			return nil, nil
		}
		return cell.Value, nil
	}
	if r.leaves[i] == absentLeaf {
		return nil, nil
	}
	group, rowOfPartition := 0, row
	for row >= r.file.RowGroups[group].Rows {
		row -= r.file.RowGroups[group].Rows
		group++
	}
	c := &r.chunks[i]
	if c.group != group {
		column, err := reference.ReadColumn(r.data, r.file, group, r.leaves[i])
		if err != nil {
			return nil, err
		}
		leaf := &r.file.Leaves[r.leaves[i]]
		if leaf.Part != format.NoPart && r.program.Columns[i].LeafPart() == program.NoPart {
			column.Rows = withoutEntries(column.Rows, leaf.MaxRep)
		}
		*c = decodedChunk{group, column.Rows}
	}
	if leaf := &r.file.Leaves[r.leaves[i]]; r.program.Columns[i].FitsInt64 && leaf.Unsigned {
		if x, ok := largeUnsigned(c.rows[row]); ok {
			return nil, fmt.Errorf("column %q: row %d: %w: %d is an unsigned integer of 2^63 or more, which "+
				"is not an int64: to take it as a number begin with cast, as cast: float64", leaf.Name, rowOfPartition, ErrData, x)
		}
	}
	if col := &r.program.Columns[i]; col.Reading != program.ReadStored {
		v, err := bringRow(col, &r.file.Leaves[r.leaves[i]], c.rows[row])
		if err != nil {
			return nil, fmt.Errorf("column %q: row %d: %w", col.Name, rowOfPartition, err)
		}
		return v, nil
	} else if col.Kind == program.Float64 {
		return widenFloats(c.rows[row]), nil
	}
	return c.rows[row], nil
}
