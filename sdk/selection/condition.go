package selection

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/fpga/unit/sigridhash"
	"github.com/millrace/millrace/sdk/tensor"
)

// Condition is a filter in the form in which rows are tested. Exactly one of All, Any, Not, Ranges, Null and Sampling
// is there. A row that has no value passes neither Ranges nor Sampling. Not inverts every outcome, also that of a row
// without a value.
type Condition struct {
	All, Any []Condition // every one of them, or at least one of them, which are at least one
	Not      *Condition

	Key    int      // The key of the mini-batches with the value that Ranges and Null test.
	Ranges []Range  // the value is in one of them; they ascend and do not touch each other
	Null   NullTest // whether the row has a value

	Sampling *Sampling
}

// Range is the integers from Least to Greatest, both included.
type Range struct{ Least, Greatest int64 }

// NullTest is a test of whether a row has a value.
type NullTest uint8

// The tests of nulls.
const (
	NoNullTest NullTest = iota
	IsNull
	IsNotNull
)

// Sampling keeps a share of the rows: those whose key has a hash below Rate. With h the hash of SigridHash before its
// modulus, a row passes if (h(key, Salt) >> 11) / 2^53 < Rate, h as an unsigned number.
type Sampling struct {
	// Key is the key of the mini-batches; below 0 the key of a row is h(row number, XXH3_64bits(name of the partition)).
	Key  int
	Rate float64 // 0 to 1
	Salt int64
}

// Block is consecutive rows of a partition.
type Block struct {
	Partition string // its name
	First     int64  // number of the first row
	Rows      int
	// MiniBatch holds the values of the rows, as int64 ids; nil for a condition that needs none.
	MiniBatch *tensor.MiniBatch
}

// Evaluate returns, for each row of a block, whether it passes.
func (c *Condition) Evaluate(b *Block) ([]bool, error) {
	e := evaluation{block: b}
	if m := b.MiniBatch; m != nil {
		if err := m.Validate(); err != nil {
			return nil, err
		}
		if m.Rows != b.Rows || len(m.Schema.Keys) > 0 && m.Schema.IDs != tensor.Int64 || m.Unique != nil {
			return nil, fmt.Errorf("a mini-batch of %d rows for a block of %d, with ids of %v", m.Rows, b.Rows, m.Schema.IDs)
		}
		e.keys = len(m.Schema.Keys)
		e.starts = make([]int, e.keys)
		at := 0
		for k := range e.starts {
			e.starts[k] = at
			if m.Lengths == nil {
				at += m.Rows
				continue
			}
			for _, n := range m.Lengths[k*m.Rows:][:m.Rows] {
				if n > 1 {
					return nil, fmt.Errorf("key %s has %d values in a row, and a filter takes one", m.Schema.Keys[k].Name, n)
				}
				at += int(n)
			}
		}
	}
	out := make([]bool, b.Rows)
	return out, e.condition(c, out)
}

// evaluation is a condition on its way over one block.
type evaluation struct {
	block  *Block
	keys   int
	starts []int // by key: the index of its first value
}

// condition sets out to the outcome of a condition for each row.
func (e *evaluation) condition(c *Condition, out []bool) error {
	switch {
	case len(c.All) > 0:
		return e.combine(c.All, out, func(a, b bool) bool { return a && b })
	case len(c.Any) > 0:
		return e.combine(c.Any, out, func(a, b bool) bool { return a || b })
	case c.Not != nil:
		if err := e.condition(c.Not, out); err != nil {
			return err
		}
		for i := range out {
			out[i] = !out[i]
		}
		return nil
	case c.Sampling != nil:
		return e.sample(c.Sampling, out)
	case c.Null != NoNullTest:
		return e.values(c.Key, func(row int, _ int64, there bool) { out[row] = there == (c.Null == IsNotNull) })
	}
	return e.values(c.Key, func(row int, value int64, there bool) { out[row] = there && c.inRanges(value) })
}

// combine folds the outcomes of conditions.
func (e *evaluation) combine(list []Condition, out []bool, fold func(a, b bool) bool) error {
	if err := e.condition(&list[0], out); err != nil {
		return err
	}
	one := make([]bool, len(out))
	for i := range list[1:] {
		if err := e.condition(&list[i+1], one); err != nil {
			return err
		}
		for row := range out {
			out[row] = fold(out[row], one[row])
		}
	}
	return nil
}

// values calls f for each row with its value of a key, and whether there is one.
func (e *evaluation) values(key int, f func(row int, value int64, there bool)) error {
	if key < 0 || key >= e.keys {
		return fmt.Errorf("key %d of a mini-batch of %d keys", key, e.keys)
	}
	m, at := e.block.MiniBatch, e.starts[key]
	for row := range m.Rows {
		if m.Lengths != nil && m.Lengths[key*m.Rows+row] == 0 {
			f(row, 0, false)
			continue
		}
		f(row, m.Values64[at], true)
		at++
	}
	return nil
}

// inRanges reports whether a value is in one of the ranges.
func (c *Condition) inRanges(value int64) bool {
	i := sort.Search(len(c.Ranges), func(i int) bool { return c.Ranges[i].Greatest >= value })
	return i < len(c.Ranges) && c.Ranges[i].Least <= value
}

// sample sets out to the rows that a sampling keeps.
func (e *evaluation) sample(s *Sampling, out []bool) error {
	if s.Key >= 0 {
		return e.values(s.Key, func(row int, value int64, there bool) { out[row] = there && s.Keeps(value) })
	}
	name, err := HashName(e.block.Partition)
	if err != nil {
		return err
	}
	for row := range out {
		out[row] = s.Keeps(sigridhash.Combine(e.block.First+int64(row), name))
	}
	return nil
}

// Keeps reports whether the sampling keeps the rows of a key.
func (s *Sampling) Keeps(key int64) bool {
	return float64(uint64(sigridhash.Combine(key, s.Salt))>>11) < s.Rate*(1<<53)
}

// HashName returns the XXH3_64bits of a partition's name.
func HashName(name string) (int64, error) {
	hash := make([]int64, 1)
	err := hashbytes.Hash(hash, []uint32{0, uint32(len(name))}, []byte(name), nil, hashbytes.XXH3)
	return hash[0], err
}

// Union returns the ranges that hold the integers of all given ones: they ascend and do not touch.
func Union(ranges []Range) []Range {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b Range) int {
		switch {
		case a.Least < b.Least:
			return -1
		case a.Least > b.Least:
			return 1
		}
		return 0
	})
	union := []Range{}
	for _, r := range ranges {
		last := len(union) - 1
		switch {
		case r.Least > r.Greatest: // empty
		case last >= 0 && (union[last].Greatest == math.MaxInt64 || r.Least <= union[last].Greatest+1):
			union[last].Greatest = max(union[last].Greatest, r.Greatest)
		default:
			union = append(union, r)
		}
	}
	return union
}
