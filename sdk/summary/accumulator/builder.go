package accumulator

import (
	"errors"
	"fmt"
	"math"

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
	// Unsigned says that the integers of blocks are the bits of unsigned integers.
	Unsigned bool
}

// Block is consecutive rows of a column.
type Block struct {
	// Lengths are the numbers of values of the rows; for Reals, 1 or 0. Without Lengths (nil) each row has one value. A
	// block of Kind Lengths may have nothing else.
	Lengths []int32
	// Integers are the values of all rows, for Integers and Hashes, and for Reals without the field Reals the bits of
	// their values as float64. For Lengths they are nil or the classes of the
	// values: NegativeInfinity, Finite, PositiveInfinity or NotANumber.
	Integers []int64
	// Reals has row i at index i*Stride, for Reals; rows of length 0 have any value there. Stride 0 is 1.
	Reals  []float32
	Stride int
}

// Classes of the values of Kind Lengths: the buckets of borders at -Inf, the greatest float32 and +Inf, NaN last.
const (
	NegativeInfinity = 0
	Finite           = 1
	PositiveInfinity = 2
	NotANumber       = 3
)

// Builder makes a summary.
type Builder struct {
	columns    []Column
	totals     []*total
	open       []*tally // Tallies over the partition that is being read.
	partitions []summary.Partition
	rows       int64
	whole      bool
}

// NewBuilder begins a summary. Without partitions it describes the whole data set alone.
func NewBuilder(columns []Column, partitions bool) (*Builder, error) {
	b := &Builder{columns: columns, whole: !partitions}
	for i := range columns {
		b.totals = append(b.totals, &total{tally: *newTally(&columns[i])})
	}
	b.openPartition()
	return b, nil
}

// openPartition begins a partition.
func (b *Builder) openPartition() {
	b.open = b.open[:0]
	for i := range b.columns {
		b.open = append(b.open, newTally(&b.columns[i]))
	}
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
	if t.kind == summary.Reals && b.Integers == nil {
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
	case t.kind == summary.Lengths && b.Integers == nil:
	case b.Lengths != nil && sum != int64(len(b.Integers)):
		return fmt.Errorf("%w: %d values of rows that have %d", ErrBlock, len(b.Integers), sum)
	}
	t.addLengths(b.Lengths)
	if t.kind == summary.Lengths {
		return t.addMarks(b.Integers)
	}
	if b.Lengths == nil {
		t.addScalars(len(b.Integers))
	}
	for _, x := range b.Integers {
		if t.kind == summary.Reals {
			t.addReal(math.Float64frombits(uint64(x)))
		} else {
			t.addInteger(x)
		}
	}
	return nil
}

// addMarks counts the values of lists that are not finite.
func (t *tally) addMarks(marks []int64) error {
	for _, mark := range marks {
		switch mark {
		case NegativeInfinity:
			t.minusInf++
		case Finite:
		case PositiveInfinity:
			t.positiveInf++
		case NotANumber:
			t.nans++
		default:
			return fmt.Errorf("%w: a value of kind %d", ErrBlock, mark)
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
		t.addReal(float64(b.Reals[i*stride]))
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
		p.Columns[i] = t.statistics(sums)
	}
	if !b.whole {
		b.partitions = append(b.partitions, p)
	}
	b.rows += rows
	b.openPartition()
	return nil
}

// Finish returns the summary of the partitions that have ended. The digest is that of their manifest.
func (b *Builder) Finish(manifest summary.Digest) (*summary.Summary, error) {
	s := &summary.Summary{Manifest: manifest, Rows: b.rows, Partitions: b.partitions}
	for i := range b.columns {
		c := &b.columns[i]
		s.Columns = append(s.Columns, summary.Column{Name: c.Name, Type: c.Type, Kind: c.Kind, List: c.List,
			Statistics: b.totals[i].statistics(&b.totals[i].moments)})
	}
	return s, nil
}
