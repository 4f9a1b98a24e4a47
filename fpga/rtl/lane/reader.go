package lane

import (
	"fmt"
	"io"
	"math"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/parquetcolumn"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// Tensors are the tensors of one mini-batch of B rows.
type Tensors struct {
	Rows    int
	Label   []float32 // [B]; nil if the output has none
	Dense   []float32 // [B, D] row-major
	Lengths []int32   // [F, B], also where the output leaves them out because all are 1
	Values  []int64   // feature-major, then batch
}

// Reader makes mini-batches of one Parquet file, or of one partition of Criteo's rows. It keeps what the chains made of
// the row group that each column was read in last.
type Reader struct {
	s      *Simulation
	plan   *plan
	groups []int64 // rows of each row group
	file   *format.File
	data   io.ReaderAt
	leaves []int         // Each column has one; absentLeaf: the file lacks the column.
	criteo *criteoReader // nil of a Parquet file
	kept   []keptChains
}

// keptChains is what the chains of a column made of a row group.
type keptChains struct {
	group  int // row group; -1: none
	chains []*rowsMade
}

// rowsMade finds the elements of rows.
type rowsMade struct {
	*made
	starts []int // Each row's first element is there; one more lies behind the last row.
}

// absentLeaf stands for the leaf of a column that the file lacks.
const absentLeaf = -1

// NewReader returns a reader of a Parquet file whose footer was read from r. The error wraps rtl.ErrNotInRTL if the
// program has a step that no unit computes.
func (s *Simulation) NewReader(p *program.Program, f *format.File, r io.ReaderAt) (*Reader, error) {
	planned, err := planOf(p)
	if err != nil {
		return nil, err
	}
	if p.Source != program.Parquet {
		return nil, fmt.Errorf("a program over %v was given a Parquet file", p.Source)
	}
	d := s.newReader(planned)
	d.file, d.data = f, r
	for i := range f.RowGroups {
		d.groups = append(d.groups, f.RowGroups[i].Rows)
	}
	for i := range p.Columns {
		c := &p.Columns[i]
		l, ok := f.Leaf(c.Name)
		switch {
		case !ok && c.Absent:
			d.leaves = append(d.leaves, absentLeaf)
			continue
		case !ok:
			return nil, fmt.Errorf("the file has no column %q", c.Name)
		case l.Unsupported != nil:
			return nil, fmt.Errorf("column %q: %w", c.Name, l.Unsupported)
		case l.Physical == format.Boolean || l.Physical == format.Int96 || l.Physical == format.FixedLenByteArray:
			return nil, lacks("column %q: no unit decodes %v", c.Name, l.Physical)
		case c.FitsInt64 && l.Unsigned && l.BitWidth == 64:
			return nil, lacks("column %q: no unit finds unsigned values of 2^63 or more", c.Name)
		case l.Part != format.NoPart:
			return nil, lacks("column %q: no unit reads a leaf of a map", c.Name)
		}
		kind := parquetcolumn.KindOf(l.Physical.Kind())
		switch {
		case c.Reading != program.ReadStored:
			return nil, lacks("column %q: no unit reads chunks by their annotations", c.Name)
		case parquetcolumn.Widens(kind, c.Kind):
			return nil, lacks("column %q: no unit makes %v of %v", c.Name, c.Kind, kind)
		case kind != c.Kind || l.List != c.List:
			return nil, fmt.Errorf("column %q is %v (list: %t), the program reads %v (list: %t)", c.Name, l.Physical,
				l.List, c.Kind, c.List)
		}
		d.leaves = append(d.leaves, l.Index)
	}
	return d, nil
}

// newReader returns a reader without a partition.
func (s *Simulation) newReader(p *plan) *Reader {
	r := &Reader{s: s, plan: p, kept: make([]keptChains, len(p.program.Columns))}
	for i := range r.kept {
		r.kept[i].group = -1
	}
	return r
}

// rows returns the number of the partition's rows.
func (r *Reader) rows() int64 {
	sum := int64(0)
	for _, n := range r.groups {
		sum += n
	}
	return sum
}

// MiniBatch builds the mini-batch of rows rows from row first of the partition on.
func (r *Reader) MiniBatch(first int64, rows int) (*Tensors, error) {
	if all := r.rows(); first < 0 || rows < 0 || first > all || int64(rows) > all-first {
		return nil, fmt.Errorf("rows %d+%d of %d", first, rows, all)
	}
	if r.criteo != nil {
		r.criteo.keep(first, rows)
	}
	b := r.newBatch(first, rows)
	err := r.s.each(len(r.plan.program.Columns), func(set *unitSet, i int) error {
		if err := r.addColumn(set, b, i); err != nil {
			return fmt.Errorf("column %q: %w", r.plan.program.Columns[i].Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.finish(r.s)
}

// addColumn adds rows of a column to a mini-batch, row group by row group.
func (r *Reader) addColumn(set *unitSet, b *batch, i int) error {
	row, left := b.first, int64(b.rows)
	for group, here := range r.groups {
		if row >= here {
			row -= here
			continue
		}
		n := min(left, here-row)
		if n <= 0 {
			break
		}
		chains, err := r.chainsOf(set, i, group)
		if err != nil {
			return err
		}
		for j := range chains {
			if err := b.add(&r.plan.program.Columns[i].Sinks[j], chains[j], int(row), int(n)); err != nil {
				return err
			}
		}
		row, left = 0, left-n
	}
	return nil
}

// chainsOf returns what the chains of a column make of a row group.
func (r *Reader) chainsOf(set *unitSet, i, group int) ([]*rowsMade, error) {
	kept := &r.kept[i]
	if kept.group == group {
		return kept.chains, nil
	}
	*kept = keptChains{group: -1}
	column := &r.plan.program.Columns[i]
	c, err := r.chunkOf(set, i, group)
	if err != nil {
		return nil, err
	}
	for _, chain := range r.plan.chains[i] {
		v, err := set.runChain(chain, c, column.List)
		if err != nil {
			return nil, err
		}
		made := &rowsMade{made: v, starts: make([]int, 1, len(v.lengths)+1)}
		for row, length := range v.lengths {
			made.starts = append(made.starts, made.starts[row]+int(length))
		}
		kept.chains = append(kept.chains, made)
	}
	kept.group = group
	return kept.chains, nil
}

// chunkOf returns the chunk of a column in a row group.
func (r *Reader) chunkOf(set *unitSet, i, group int) (*chunk, error) {
	column := &r.plan.program.Columns[i]
	switch {
	case r.criteo != nil:
		return r.criteo.chunk(int(column.Field), group)
	case r.leaves[i] == absentLeaf:
		return absentChunk(r.groups[group], column.List, column.Kind == program.Bytes), nil
	}
	return set.decodeChunk(r.data, r.file, group, r.leaves[i])
}

// fitsInt32 reports whether an id is an int32.
func fitsInt32(id int64) bool { return id >= math.MinInt32 && id <= math.MaxInt32 }
