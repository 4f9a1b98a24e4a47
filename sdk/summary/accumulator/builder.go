package accumulator

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/sdk/summary"
)

// ErrBlock says that a block of a column does not fit the column or the data before it.
var ErrBlock = errors.New("summary: block of a column")

// Column is a column to summarise.
type Column struct {
	Name string
	Type string // as people read it
	Kind summary.Kind
	List bool
}

// Block is consecutive rows of a column.
type Block struct {
	// Lengths are the numbers of values of the rows; for Reals, 1 or 0. Without Lengths (nil) each row has one value. For
	// Kind Lengths they are all that there is.
	Lengths []int32
	// Integers are the values of all rows, for Integers and Hashes.
	Integers []int64
	// Reals has row i at index i*Stride, for Reals; rows of length 0 have any value there. Stride 0 is 1.
	Reals  []float32
	Stride int
}

// Builder makes a summary.
type Builder struct {
	columns    []Column
	totals     []*total
	open       []*tally // of the partition that is being read
	partitions []summary.Partition
	rows       int64
	whole      bool
}

// NewBuilder begins a summary. Without partitions it describes the whole data set alone.
func NewBuilder(columns []Column, partitions bool) (*Builder, error) {
	b := &Builder{columns: columns, whole: !partitions}
	for i := range columns {
		t, err := newTally(columns[i].Kind, columns[i].List)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", columns[i].Name, err)
		}
		b.totals = append(b.totals, &total{tally: *t})
	}
	return b, b.openPartition()
}

// openPartition begins a partition.
func (b *Builder) openPartition() error {
	b.open = b.open[:0]
	for i := range b.columns {
		t, err := newTally(b.columns[i].Kind, b.columns[i].List)
		if err != nil {
			return err
		}
		b.open = append(b.open, t)
	}
	return nil
}

// Add folds the next rows of a column in. The error wraps ErrBlock; the summary is then of no use.
func (b *Builder) Add(column int, block Block) error {
	t := b.open[column]
	err := t.addBlock(block)
	if err == nil && (t.values > maxSummands || t.rows > maxSummands) {
		err = fmt.Errorf("%w: more than %d rows or values of a partition", ErrBlock, int64(maxSummands))
	}
	if err != nil {
		return fmt.Errorf("column %q, row %d of the partition: %w", b.columns[column].Name, t.rows, err)
	}
	return nil
}

// addBlock folds rows in.
func (t *tally) addBlock(b Block) error {
	if t.kind == summary.Reals {
		return t.addReals(b)
	}
	var sum int64
	for _, n := range b.Lengths {
		if n < 0 || n > 1 && !t.list {
			return fmt.Errorf("%w: a row of %d values", ErrBlock, n)
		}
		sum += int64(n)
	}
	switch {
	case t.kind == summary.Lengths && b.Lengths == nil && len(b.Integers) > 0:
		return fmt.Errorf("%w: a column of lengths without lengths", ErrBlock)
	case t.kind != summary.Lengths && b.Lengths != nil && sum != int64(len(b.Integers)):
		return fmt.Errorf("%w: %d values of rows that have %d", ErrBlock, len(b.Integers), sum)
	}
	t.addLengths(b.Lengths)
	if t.kind == summary.Lengths {
		return nil
	}
	if b.Lengths == nil {
		t.addScalars(len(b.Integers))
	}
	for _, x := range b.Integers {
		if err := t.addInteger(x); err != nil {
			return fmt.Errorf("%w: the integer %d: %w", ErrBlock, x, err)
		}
	}
	return nil
}

// addReals folds rows of real numbers in.
func (t *tally) addReals(b Block) error {
	stride := max(b.Stride, 1)
	rows := (len(b.Reals) + stride - 1) / stride
	if b.Lengths == nil {
		t.addScalars(rows)
	} else if len(b.Lengths) != rows {
		return fmt.Errorf("%w: %d real numbers and %d lengths", ErrBlock, rows, len(b.Lengths))
	}
	for i, n := range b.Lengths {
		if n < 0 || n > 1 {
			return fmt.Errorf("%w: row %d of the block has %d values", ErrBlock, i, n)
		}
	}
	t.addLengths(b.Lengths)
	for i := range rows {
		if b.Lengths != nil && b.Lengths[i] == 0 {
			continue
		}
		if err := t.addReal(b.Reals[i*stride]); err != nil {
			return fmt.Errorf("%w: the number %v: %w", ErrBlock, b.Reals[i*stride], err)
		}
	}
	return nil
}

// addScalars counts rows that have one value each.
func (t *tally) addScalars(rows int) {
	if rows == 0 {
		return
	}
	if t.rows == 0 {
		t.shortest, t.longest = 1, 1
	}
	t.shortest, t.longest = min(t.shortest, 1), max(t.longest, 1)
	t.rows, t.values = t.rows+int64(rows), t.values+int64(rows)
}

// EndPartition ends the partition of the rows that were added since the last end, which may be none.
func (b *Builder) EndPartition(name string, rows int64) error {
	p := summary.Partition{Name: name, Rows: rows, Columns: make([]summary.Statistics, len(b.columns))}
	for i, t := range b.open {
		if t.rows != rows {
			return fmt.Errorf("partition %q, column %q: %w: %d rows, want %d", name, b.columns[i].Name, ErrBlock, t.rows,
				rows)
		}
		sums := t.sums()
		if err := b.totals[i].merge(t, sums); err != nil {
			return fmt.Errorf("partition %q, column %q: %w", name, b.columns[i].Name, err)
		}
		if b.whole {
			continue
		}
		var err error
		if p.Columns[i], err = t.statistics(sums); err != nil {
			return fmt.Errorf("partition %q, column %q: %w", name, b.columns[i].Name, err)
		}
	}
	if !b.whole {
		b.partitions = append(b.partitions, p)
	}
	b.rows += rows
	return b.openPartition()
}

// Finish returns the summary of the partitions that have ended. The digest is that of their manifest.
func (b *Builder) Finish(manifest summary.Digest) (*summary.Summary, error) {
	s := &summary.Summary{Manifest: manifest, Rows: b.rows, Partitions: b.partitions}
	for i := range b.columns {
		c := &b.columns[i]
		of, err := b.totals[i].statistics(&b.totals[i].moments)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		s.Columns = append(s.Columns, summary.Column{Name: c.Name, Type: c.Type, Kind: c.Kind, List: c.List,
			Statistics: of})
	}
	return s, nil
}
