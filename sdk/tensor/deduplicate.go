package tensor

import (
	"hash/maphash"
	"math"
	"slices"
)

// A mini-batch of a schema with sets holds each different row of a set's keys once, in the order in which rows first
// appear, and for each row of the mini-batch the index of the different row that it equals. RecD calls it an inverse
// keyed jagged tensor (Zhao et al., MLSys 2023, section 4); TorchRec's KeyedJaggedTensor has a stride for each key,
// and inverse_indices. Two rows are the same if all keys of the set have the same ids, in the same order and with
// the same bits of weights.

// MaxExpanded bounds the bytes of the sparse tensors that Expand makes. A small frame can stand for a great number
// of rows of a long list.
const MaxExpanded = 4 << 30

// rowsOfKey returns how many rows key i of the schema has in a mini-batch of rows rows.
func rowsOfKey(s *Schema, i, rows int, unique []int32) int {
	if set := s.Keys[i].Set; set > 0 && unique != nil {
		return int(unique[set-1])
	}
	return rows
}

// RowsOfKey returns how many rows key f has: B, or the different rows of its set if the mini-batch is deduplicated.
func (m *MiniBatch) RowsOfKey(f int) int { return rowsOfKey(m.Schema, f, m.Rows, m.Unique) }

// checkUnique checks the numbers of different rows.
func checkUnique(s *Schema, rows int, unique []int32) error {
	if len(unique) != s.Sets() || len(unique) == 0 {
		return shapeError("different rows of %d sets of keys, the schema has %d", len(unique), s.Sets())
	}
	for i, n := range unique {
		if n < 0 || int64(n) > int64(rows) || n == 0 && rows > 0 {
			return shapeError("set %d of keys has %d different rows, want 1 to %d", i+1, n, rows)
		}
	}
	return nil
}

// validateInverse checks that the inverse names every different row, in the order in which they first appear. It
// does not check that no two different rows are the same: such a check would cost as much as deduplication.
func (m *MiniBatch) validateInverse() error {
	for set, n := range m.Unique {
		next := int32(0)
		for r, i := range m.Inverse[set*m.Rows : (set+1)*m.Rows] {
			switch {
			case i < 0 || i >= n:
				return shapeError("%s of set %d, row %d is %d, want 0 to %d", TensorInverse, set+1, r, i, n-1)
			case i > next:
				return shapeError("%s of set %d, row %d is %d before a row is %d: "+
					"rows are numbered as they first appear",
					TensorInverse, set+1, r, i, next)
			case i == next:
				next++
			}
		}
		if next != n {
			return shapeError("set %d of keys has %d different rows, %s names %d", set+1, n, TensorInverse, next)
		}
	}
	return nil
}

// Deduplicate returns the mini-batch deduplicated in the sets of its schema: the mini-batch itself if there are no
// sets, if it is deduplicated already, or if it is a fragment, which Join deduplicates with its partners. Otherwise the
// result has sparse tensors of its own, shares the others, and takes over the caller's hold on m: the last Release of
// the result releases m. The mini-batch must be valid. The result depends on the tensors alone. The error wraps
// ErrShape.
func (m *MiniBatch) Deduplicate() (*MiniBatch, error) {
	sets := m.Schema.Sets()
	if sets == 0 || m.Unique != nil || m.Fragment != (Fragment{}) {
		return m, nil
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	o := New(m.Schema, m.Rows, m.Release)
	o.lent = m.lent
	o.Name, o.Label, o.Dense, o.Dense16 = m.Name, m.Label, m.Dense, m.Dense16
	o.Unique, o.Inverse = make([]int32, sets), make([]int32, sets*m.Rows)
	o.growSparse(m.Values())
	d := newDeduplicator(m)
	for f := 0; f < len(m.Schema.Keys); {
		set := m.Schema.Keys[f].Set
		if set == 0 {
			d.appendRows(o, f, nil)
			f++
			continue
		}
		end := f + 1
		for end < len(m.Schema.Keys) && m.Schema.Keys[end].Set == set {
			end++
		}
		firsts := d.findUnique(f, end, o.Inverse[(set-1)*m.Rows:set*m.Rows])
		o.Unique[set-1] = int32(len(firsts))
		for ; f < end; f++ {
			d.appendRows(o, f, firsts)
		}
	}
	return o, nil
}

// deduplicator finds the different rows of one mini-batch.
type deduplicator struct {
	m       *MiniBatch
	seed    maphash.Seed // Nothing in the result depends on it.
	offsets []int64      // Where lists begin; nil: every length is 1.
	hashes  []uint64     // A hash of each row.
	table   []int32      // open addressing: 1 + the index of a different row, 0 where there is none
	firsts  []int        // the row in which each different row first appears
}

func newDeduplicator(m *MiniBatch) *deduplicator {
	d := &deduplicator{m: m, seed: maphash.MakeSeed(), hashes: make([]uint64, m.Rows)}
	if !m.Schema.Fixed() {
		d.offsets = m.Offsets(make([]int64, 0, len(m.Lengths)+1))
	}
	size := 16
	for size < 2*m.Rows {
		size *= 2
	}
	d.table = make([]int32, size)
	return d
}

// list returns the range of values that row r of key f has.
func (d *deduplicator) list(f, r int) (from, to int64) {
	i := f*d.m.Rows + r
	if d.offsets == nil {
		return int64(i), int64(i) + 1
	}
	return d.offsets[i], d.offsets[i+1]
}

// findUnique writes the inverse of the keys [from, to), and returns the rows in which each different row first appears.
func (d *deduplicator) findUnique(from, to int, inverse []int32) []int {
	values, size := Bytes(d.m.Values32), int64(4)
	if d.m.Schema.IDs == Int64 {
		values, size = Bytes(d.m.Values64), 8
	}
	weights := Bytes(d.m.Weights)
	clear(d.hashes)
	for f := from; f < to; f++ {
		for r := range d.m.Rows {
			lo, hi := d.list(f, r)
			h := d.hashes[r]*0x9e3779b97f4a7c15 + maphash.Bytes(d.seed, values[size*lo:size*hi])
			if len(weights) > 0 {
				h = h*0x9e3779b97f4a7c15 + maphash.Bytes(d.seed, weights[4*lo:4*hi])
			}
			d.hashes[r] = h ^ h>>29
		}
	}
	clear(d.table)
	d.firsts = d.firsts[:0]
	mask := uint64(len(d.table) - 1)
	for r := range d.m.Rows {
		for slot := d.hashes[r] & mask; ; slot = (slot + 1) & mask {
			i := d.table[slot]
			if i == 0 {
				d.firsts = append(d.firsts, r)
				i = int32(len(d.firsts))
				d.table[slot] = i
			} else if first := d.firsts[i-1]; d.hashes[first] != d.hashes[r] || !d.sameRows(from, to, first, r) {
				continue
			}
			inverse[r] = i - 1
			break
		}
	}
	return d.firsts
}

// sameRows reports whether two rows have the same lists of the keys [from, to).
func (d *deduplicator) sameRows(from, to, a, b int) bool {
	bits := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	for f := from; f < to; f++ {
		aLo, aHi := d.list(f, a)
		bLo, bHi := d.list(f, b)
		m := d.m
		if m.Schema.IDs == Int32 {
			if !slices.Equal(m.Values32[aLo:aHi], m.Values32[bLo:bHi]) {
				return false
			}
		} else if !slices.Equal(m.Values64[aLo:aHi], m.Values64[bLo:bHi]) {
			return false
		}
		if m.Schema.Weights && !slices.EqualFunc(m.Weights[aLo:aHi], m.Weights[bLo:bHi], bits) {
			return false
		}
	}
	return true
}

// appendRows appends the given rows of key f to o's sparse tensors, or all rows if rows is nil.
func (d *deduplicator) appendRows(o *MiniBatch, f int, rows []int) {
	m := d.m
	if rows == nil && m.Rows > 0 {
		first, _ := d.list(f, 0)
		_, last := d.list(f, m.Rows-1)
		o.appendValues(m, first, last)
		if d.offsets != nil {
			o.Lengths = append(o.Lengths, m.Lengths[f*m.Rows:(f+1)*m.Rows]...)
		}
		return
	}
	for _, r := range rows {
		lo, hi := d.list(f, r)
		o.appendValues(m, lo, hi)
		if d.offsets != nil {
			o.Lengths = append(o.Lengths, int32(hi-lo))
		}
	}
}

// growSparse makes room for values sparse values, and for the lengths of a mini-batch that is not deduplicated.
func (m *MiniBatch) growSparse(values int) {
	if m.Schema.IDs == Int32 {
		m.Values32 = make([]int32, 0, values)
	} else {
		m.Values64 = make([]int64, 0, values)
	}
	if m.Schema.Weights {
		m.Weights = make([]float32, 0, values)
	}
	if !m.Schema.Fixed() {
		m.Lengths = make([]int32, 0, len(m.Schema.Keys)*m.Rows)
	}
}

// appendValues appends the values [from, to) of another mini-batch of the schema, and their weights.
func (m *MiniBatch) appendValues(of *MiniBatch, from, to int64) {
	if m.Schema.IDs == Int32 {
		m.Values32 = append(m.Values32, of.Values32[from:to]...)
	} else {
		m.Values64 = append(m.Values64, of.Values64[from:to]...)
	}
	if m.Schema.Weights {
		m.Weights = append(m.Weights, of.Weights[from:to]...)
	}
}

// Expand returns the mini-batch with every row of every key; it is the inverse of Deduplicate. It returns the
// mini-batch itself if that is not deduplicated. Otherwise the result has sparse tensors of its own, shares the
// others, and takes over the caller's hold on m. Expand refuses to make more than MaxExpanded bytes. The mini-batch
// must be valid. The error wraps ErrShape.
func (m *MiniBatch) Expand() (*MiniBatch, error) {
	if m.Unique == nil {
		return m, nil
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	s, fixed := m.Schema, m.Schema.Fixed()
	offsets := m.Offsets(nil)
	values, at := int64(0), 0
	for f := range s.Keys {
		inverse := m.inverseOf(f)
		for r := range m.Rows {
			i := at + sourceRow(inverse, r)
			values += offsets[i+1] - offsets[i]
		}
		at += m.RowsOfKey(f)
	}
	size := int64(s.IDs.Size())
	if s.Weights {
		size += 4
	}
	if lengths := 4 * int64(len(s.Keys)) * int64(m.Rows); values > (MaxExpanded-lengths)/size || lengths > MaxExpanded {
		return nil, shapeError("expanded it has %d values and %d lengths, more than %d bytes", values, lengths/4,
			int64(MaxExpanded))
	}
	o := New(s, m.Rows, m.Release)
	o.Name, o.Label, o.Dense, o.Dense16 = m.Name, m.Label, m.Dense, m.Dense16
	o.growSparse(int(values))
	at = 0
	for f := range s.Keys {
		inverse := m.inverseOf(f)
		for r := range m.Rows {
			i := at + sourceRow(inverse, r)
			o.appendValues(m, offsets[i], offsets[i+1])
			if !fixed {
				o.Lengths = append(o.Lengths, int32(offsets[i+1]-offsets[i]))
			}
		}
		at += m.RowsOfKey(f)
	}
	return o, nil
}

// inverseOf returns the inverse of key f's set, or nil if the key is in no set.
func (m *MiniBatch) inverseOf(f int) []int32 {
	if set := m.Schema.Keys[f].Set; set > 0 {
		return m.Inverse[(set-1)*m.Rows : set*m.Rows]
	}
	return nil
}

// sourceRow returns the row of a key's tensors that holds row r of the mini-batch: r itself if inverse is nil.
func sourceRow(inverse []int32, r int) int {
	if inverse == nil {
		return r
	}
	return int(inverse[r])
}
