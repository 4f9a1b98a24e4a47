package accumulator

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/axiomhq/hyperloglog"

	"github.com/millrace/millrace/sdk/summary"
)

// ErrState says that bytes are no state of a builder's open partition.
var ErrState = errors.New("summary: damaged state of a partition")

// Form of the registers of the distinct values in the state: 2^14 bytes behind the header of package hyperloglog.
const (
	registers      = 1 << 14
	registerHeader = "\x02\x0e\x00\x00\x00\x00\x40\x00" // version, precision, bias, dense; the number of registers
)

// AppendOpen appends the state of the partition that is being read: what Add has folded in since the last end of a
// partition. [Builder.SetOpen] reads it. Equal states have equal bytes.
func (b *Builder) AppendOpen(to []byte) ([]byte, error) {
	for i, t := range b.open {
		var err error
		if to, err = t.appendState(to); err != nil {
			return nil, fmt.Errorf("column %q: %w", b.columns[i].Name, err)
		}
	}
	return to, nil
}

// SetOpen replaces the state of the partition that is being read by one that a builder of the same columns appended,
// which may be another process's. The error wraps ErrState; the state is then the one of before.
func (b *Builder) SetOpen(state []byte) error {
	r := stateReader{left: state}
	open := make([]*tally, len(b.columns))
	for i := range b.columns {
		t := newTally(&b.columns[i])
		if err := r.tally(t); err != nil {
			return fmt.Errorf("column %q: %w", b.columns[i].Name, err)
		}
		if i > 0 && t.rows != open[0].rows {
			return fmt.Errorf("column %q: %w: %d rows, and the first column has %d", b.columns[i].Name, ErrState, t.rows,
				open[0].rows)
		}
		open[i] = t
	}
	if len(r.left) > 0 {
		return fmt.Errorf("%w: %d bytes behind its end", ErrState, len(r.left))
	}
	b.open = open
	return nil
}

// OpenRows returns how many rows of the partition that is being read were folded in.
func (b *Builder) OpenRows() int64 {
	if len(b.open) == 0 {
		return 0
	}
	return b.open[0].rows
}

// appendState appends the form that doc.go describes.
func (t *tally) appendState(b []byte) ([]byte, error) {
	for _, n := range []int64{t.rows, t.nulls, t.values, t.shortest, t.longest, t.nans, t.positiveInf, t.minusInf,
		t.finite} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	switch t.kind {
	case summary.Lengths:
		return b, nil
	case summary.Integers:
		b = binary.AppendVarint(binary.AppendVarint(b, t.leastInt), t.greatestInt)
		b = t.integers.appendState(b)
	case summary.Reals:
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.leastReal))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(t.greatestReal))
		b = t.reals.appendState(b)
	}
	b = t.frequent.appendState(b)
	if !t.frequent.pruned {
		return b, nil // the table has all values, and the sketches follow from it
	}
	form, err := t.distinct.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	if len(form) != len(registerHeader)+registers || string(form[:len(registerHeader)]) != registerHeader {
		return nil, fmt.Errorf("a sketch of distinct values of %d bytes that begins with %x", len(form),
			form[:min(len(form), len(registerHeader))])
	}
	b = append(b, form[len(registerHeader):]...)
	if !t.ordered() {
		return b, nil
	}
	return t.ranks.appendState(b), nil
}

// appendState appends the sums, little-endian.
func (s *integerSums) appendState(b []byte) []byte {
	for _, word := range append(s.sum[:], s.squares[:]...) {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// appendState appends the exponents that have values.
func (s realSums) appendState(b []byte) []byte {
	used := 0
	for i := range s {
		if s[i] != (integerSums{}) {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(used))
	for exponent := range s {
		if s[exponent] != (integerSums{}) {
			b = s[exponent].appendState(binary.AppendUvarint(b, uint64(exponent)))
		}
	}
	return b
}

// appendState appends the table in the order of its values' bits.
func (f *frequentValues) appendState(b []byte) []byte {
	pruned := byte(0)
	if f.pruned {
		pruned = 1
	}
	list := f.counters()
	slices.SortFunc(list, func(a, b counter) int { return cmp.Compare(a.bits, b.bits) })
	b = binary.AppendUvarint(append(b, pruned), uint64(f.missed))
	b = binary.AppendUvarint(b, uint64(len(list)))
	before := uint64(0)
	for _, c := range list {
		b = binary.AppendUvarint(binary.AppendUvarint(b, c.bits-before), uint64(c.count))
		before = c.bits
	}
	return b
}

// appendState appends the levels, each in the order of its keys.
func (r *ranks) appendState(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.levels)))
	for l := range r.levels {
		odd := byte(0)
		if r.levels[l].odd {
			odd = 1
		}
		keys := slices.Clone(r.levels[l].keys)
		slices.Sort(keys)
		b = binary.AppendUvarint(append(b, odd), uint64(len(keys)))
		before := int64(0)
		for i, key := range keys {
			if i == 0 {
				b = binary.AppendVarint(b, key)
			} else {
				b = binary.AppendUvarint(b, uint64(key)-uint64(before))
			}
			before = key
		}
	}
	return b
}

// stateReader reads states.
type stateReader struct {
	left   []byte
	failed bool
}

func (r *stateReader) bytes(n int) []byte {
	if n > len(r.left) {
		r.left, r.failed = nil, true
		return make([]byte, n)
	}
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

func (r *stateReader) uvarint() uint64 {
	x, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.left, r.failed = nil, true
		return 0
	}
	r.left = r.left[n:]
	return x
}

func (r *stateReader) varint() int64 {
	x := r.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

// number reads a number of at most some size.
func (r *stateReader) number(most int64) int64 {
	x := r.uvarint()
	if x > uint64(most) {
		r.failed = true
		return 0
	}
	return int64(x)
}

// damaged returns the error of a state that breaks a rule.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrState, fmt.Sprintf(format, args...))
}

// tally reads the state of a column into a new tally.
func (r *stateReader) tally(t *tally) error {
	for _, field := range []struct {
		to   *int64
		most int64
	}{{&t.rows, maxSummands}, {&t.nulls, maxSummands}, {&t.values, maxSummands}, {&t.shortest, math.MaxInt32},
		{&t.longest, math.MaxInt32}, {&t.nans, maxSummands}, {&t.positiveInf, maxSummands}, {&t.minusInf, maxSummands},
		{&t.finite, maxSummands}} {
		*field.to = r.number(field.most)
	}
	if r.failed {
		return damaged("its counts are cut off, or too large")
	}
	if err := t.checkCounts(); err != nil || t.kind == summary.Lengths {
		return err
	}
	switch t.kind {
	case summary.Integers:
		t.leastInt, t.greatestInt = r.varint(), r.varint()
		t.integers = r.sums()
	case summary.Reals:
		t.leastReal = math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
		t.greatestReal = math.Float64frombits(binary.LittleEndian.Uint64(r.bytes(8)))
		r.realSums(t)
	}
	if r.failed {
		return damaged("its sums are cut off, or too large")
	}
	if err := t.checkSums(); err != nil {
		return err
	}
	if err := r.frequent(t); err != nil {
		return err
	}
	if !t.frequent.pruned {
		t.sketchTable()
		return nil
	}
	return r.sketches(t)
}

// checkCounts refuses counts that no rows have.
func (t *tally) checkCounts() error {
	finite := t.values - t.nans - t.positiveInf - t.minusInf // of at most 2^38 each
	switch {
	case t.nulls > t.rows || t.shortest > t.longest:
		return damaged("%d null rows of %d, lists of %d to %d values", t.nulls, t.rows, t.shortest, t.longest)
	case t.rows == 0 && (t.values > 0 || t.longest > 0), !t.list && t.longest > 1, t.longest == 0 && t.values > 0:
		return damaged("%d values in %d rows of at most %d", t.values, t.rows, t.longest)
	case t.kind == summary.Lengths && (finite < 0 || t.finite > 0):
		return damaged("%d values of a column of lengths, %d of them counted", t.values, t.finite)
	case t.kind != summary.Lengths && t.finite != finite:
		return damaged("%d finite values, want %d", t.finite, finite)
	case t.kind != summary.Reals && t.kind != summary.Lengths && (t.nans > 0 || t.positiveInf > 0 || t.minusInf > 0):
		return damaged("integers that are no number or infinite")
	}
	return nil
}

// sums reads the sums of integers.
func (r *stateReader) sums() (s integerSums) {
	for i := range s.sum {
		s.sum[i] = binary.LittleEndian.Uint64(r.bytes(8))
	}
	for i := range s.squares {
		s.squares[i] = binary.LittleEndian.Uint64(r.bytes(8))
	}
	return s
}

// realSums reads the sums of a column of real numbers.
func (r *stateReader) realSums(t *tally) {
	used, before := r.number(exponents), int64(0)
	for range used {
		exponent, sums := r.number(exponents-1), r.sums()
		const mostHigh = maxSummands >> (64 - 53) // of a sum of significands of 53 bits
		high := int64(sums.sum[1])
		if exponent <= before || sums.squares == [3]uint64{} || high > mostHigh || high < -mostHigh ||
			sums.squares[2] > maxSummands>>(128-2*53) {
			r.failed = true
		}
		if r.failed {
			return
		}
		if t.reals == nil {
			t.reals = make(realSums, exponents)
		}
		t.reals[exponent], before = sums, exponent
	}
}

// checkSums refuses sums that no values have: the deviation is the root of what must not be negative.
func (t *tally) checkSums() error {
	if t.kind == summary.Hashes {
		return nil
	}
	sums := t.sums()
	if t.finite == 0 && (sums.sum.Sign() != 0 || sums.squares.Sign() != 0) {
		return damaged("a sum of no values")
	}
	most := new(big.Int).Mul(big.NewInt(t.finite), &sums.squares)
	if most.Cmp(new(big.Int).Mul(&sums.sum, &sums.sum)) < 0 {
		return damaged("the squares of %d values are less than their sum's", t.finite)
	}
	switch t.kind {
	case summary.Integers:
		if t.leastInt > t.greatestInt || t.finite == 0 && (t.leastInt != 0 || t.greatestInt != 0) {
			return damaged("values from %d to %d", t.leastInt, t.greatestInt)
		}
	default:
		if !isValue(t.leastReal) || !isValue(t.greatestReal) || t.leastReal > t.greatestReal ||
			t.finite == 0 && (t.leastReal != 0 || t.greatestReal != 0) {
			return damaged("values from %v to %v", t.leastReal, t.greatestReal)
		}
	}
	return nil
}

// isValue reports whether a column of real numbers counts the number: it is finite, and no zero with a sign.
func isValue(x float64) bool {
	return x >= -math.MaxFloat64 && x <= math.MaxFloat64 && (x != 0 || math.Float64bits(x) == 0)
}

// frequent reads the table of counted values.
func (r *stateReader) frequent(t *tally) error {
	pruned := r.bytes(1)[0]
	missed, used := r.number(t.finite), r.number(summary.ExactValues)
	if r.failed || pruned > 1 || pruned == 0 && missed > 0 {
		return damaged("a table of %d values, counts that miss %d", used, missed)
	}
	f := &t.frequent
	f.pruned, f.missed = pruned == 1, missed
	if used > 0 || f.pruned {
		f.slots = make([]counter, tableSlots)
	}
	before, counted := uint64(0), int64(0)
	for i := range used {
		distance, count := r.uvarint(), r.number(t.finite-counted)
		value := before + distance
		if r.failed || count == 0 || i > 0 && value <= before ||
			t.kind == summary.Reals && !isValue(math.Float64frombits(value)) {
			return damaged("the value %d of %d in its table", i, used)
		}
		f.put(value, mix(value), count)
		before, counted = value, counted+count
	}
	if !f.pruned && counted != t.finite {
		return damaged("its table counts %d values of %d", counted, t.finite)
	}
	return nil
}

// sketchTable fills the registers with the values of a table that has all of them.
func (t *tally) sketchTable() {
	for _, c := range t.frequent.counters() {
		t.distinct.InsertHash(mix(c.bits))
	}
}

// sketches reads the sketches.
func (r *stateReader) sketches(t *tally) error {
	form := append([]byte(registerHeader), r.bytes(registers)...)
	t.distinct = hyperloglog.NewNoSparse()
	if err := t.distinct.UnmarshalBinary(form); err != nil || r.failed {
		return errors.Join(damaged("its registers of distinct values"), err)
	}
	if !t.ordered() {
		return nil
	}
	if r.ranks(t); r.failed || t.ranks.count() != t.finite {
		return damaged("its quantiles count other values than %d", t.finite)
	}
	return nil
}

// ranks reads a sketch of ranks.
func (r *stateReader) ranks(t *tally) {
	least, greatest := int64(math.MinInt64), int64(math.MaxInt64)
	if t.kind == summary.Reals {
		least, greatest = keyRange()
	}
	left := t.finite
	for l, n := 0, int(r.number(maxLevels)); l < n && !r.failed; l++ {
		odd := r.bytes(1)[0]
		used := int(r.number(min(levelValues-1, left>>l)))
		if r.failed || odd > 1 {
			r.failed = true
			return
		}
		left -= int64(used) << l
		at := level{odd: odd == 1, keys: make([]int64, used)}
		for i := range at.keys {
			key := int64(0)
			if i == 0 {
				key = r.varint()
			} else {
				key = int64(uint64(at.keys[i-1]) + r.uvarint())
			}
			if r.failed || key < least || key > greatest || i > 0 && key < at.keys[i-1] {
				r.failed = true
				return
			}
			at.keys[i] = key
		}
		t.ranks.levels = append(t.ranks.levels, at)
	}
}
