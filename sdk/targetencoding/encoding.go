package targetencoding

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
)

// ErrEmpty says that a table has no rows, and so no mean.
var ErrEmpty = errors.New("target encoding: the table has no rows")

// Encoding is what keys become.
type Encoding struct {
	folding    Folding     // Folds is 0 in serving, which uses all folds
	partitions []Partition // those of the table
	index      map[int64]int32
	values     []float32 // by key: a value for each fold, or one for all folds
	mean       float32
}

// NewEncoding returns the values of a table with a smoothing, which is at least 0. With train the value of a row is
// that of the other folds than the row's, and otherwise that of all folds.
func NewEncoding(t *Table, seed int64, smoothing float64, train bool) (*Encoding, error) {
	if err := t.checkRules(); err != nil {
		return nil, err
	}
	if !(smoothing >= 0) || math.IsInf(smoothing, 0) {
		return nil, fmt.Errorf("target encoding: a smoothing of %v, want a number of at least 0", smoothing)
	}
	e := &Encoding{partitions: t.Partitions, index: make(map[int64]int32, len(t.Keys))}
	if train {
		e.folding = Folding{Folds: len(t.Totals), Seed: seed}
	}
	s := smoother{p: new(big.Rat).SetFloat64(smoothing), all: sumOf(t.Totals)}
	if s.all.Rows == 0 {
		return nil, ErrEmpty
	}
	s.prior = new(big.Rat).Mul(s.p, big.NewRat(s.all.Sum, s.all.Rows))
	e.mean, _ = big.NewRat(s.all.Sum, s.all.Rows).Float32()
	for i, key := range t.Keys {
		e.index[key] = int32(i)
		whole := sumOf(t.key(i))
		if !train {
			e.values = append(e.values, s.value(whole, e.mean))
			continue
		}
		for _, own := range t.key(i) {
			e.values = append(e.values, s.value(Cell{Rows: whole.Rows - own.Rows, Sum: whole.Sum - own.Sum}, e.mean))
		}
	}
	return e, nil
}

func sumOf(cells []Cell) (sum Cell) {
	for _, c := range cells {
		sum.Rows, sum.Sum = sum.Rows+c.Rows, sum.Sum+c.Sum
	}
	return sum
}

// smoother computes values of one table.
type smoother struct {
	p, prior *big.Rat // the smoothing, and the smoothing times the mean
	all      Cell
}

// value returns the smoothed mean of the labels of some rows.
func (s *smoother) value(of Cell, mean float32) float32 {
	if of.Rows == 0 {
		return mean
	}
	sum := new(big.Rat).SetInt64(of.Sum)
	rows := new(big.Rat).SetInt64(of.Rows)
	value, _ := sum.Quo(sum.Add(sum, s.prior), rows.Add(rows, s.p)).Float32()
	return value
}

// Fits reports whether the encoding may be applied to the rows of a partition. In serving it fits every partition. In
// training it fits those of the table, whose rows have the folds that they had when the table was made: a row of
// another partition, or of one that was renamed since, could get a value that holds its own label.
func (e *Encoding) Fits(p Partition) bool {
	_, found := slices.BinarySearchFunc(e.partitions, p, Partition.compare)
	return found || e.folding.Folds == 0
}

// Value returns what a key becomes in the row of a number.
func (e *Encoding) Value(key int64, p Partition, row int64) float32 {
	i, ok := e.index[key]
	switch {
	case !ok:
		return e.mean
	case e.folding.Folds == 0:
		return e.values[i]
	}
	return e.values[int(i)*e.folding.Folds+e.folding.Fold(p, row)]
}

// Mean returns what a key becomes that the table lacks, and a row without a key.
func (e *Encoding) Mean() float32 { return e.mean }
