package accumulator

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/axiomhq/hyperloglog"

	"github.com/millrace/millrace/sdk/summary"
)

// tally is what was seen of a column in one partition.
type tally struct {
	kind summary.Kind
	list bool
	// offset is subtracted from the column's integers: 2^63 if they are unsigned, so that int64 holds and orders all of
	// them, and 0 otherwise.
	offset uint64

	rows, nulls, values         int64
	shortest, longest           int64 // lengths of lists, if there are rows
	nans, positiveInf, minusInf int64
	leastInt, greatestInt       int64
	leastReal, greatestReal     float64
	finite                      int64
	integers                    integerSums
	reals                       realSums
	frequent                    frequentValues
	distinct                    *hyperloglog.Sketch
	ranks                       ranks // Ranks of finite numbers; empty until the table of all values is first pruned.
}

func newTally(c *Column) *tally {
	t := &tally{kind: c.Kind, list: c.List}
	if c.Unsigned {
		t.offset = 1 << 63
	}
	if c.Kind != summary.Lengths {
		t.distinct = hyperloglog.NewNoSparse()
	}
	return t
}

// ordered reports whether the column has quantiles.
func (t *tally) ordered() bool { return t.kind == summary.Integers || t.kind == summary.Reals }

// key returns the key of a value in the sketch of ranks, by its bits in the table.
func (t *tally) key(bits uint64) int64 {
	if t.kind == summary.Reals {
		return keyOfReal(bits)
	}
	return int64(bits)
}

// addLengths counts rows, whose numbers of values are given.
func (t *tally) addLengths(lengths []int32) {
	for _, n := range lengths {
		length := int64(n)
		if t.rows == 0 {
			t.shortest, t.longest = length, length
		}
		t.shortest, t.longest = min(t.shortest, length), max(t.longest, length)
		t.rows++
		t.values += length
		if length == 0 {
			t.nulls++
		}
	}
}

// addInteger counts an integer or a hash.
func (t *tally) addInteger(x int64) {
	x = int64(uint64(x) - t.offset)
	t.count(uint64(x))
	if t.kind == summary.Hashes {
		return
	}
	if t.finite == 1 {
		t.leastInt, t.greatestInt = x, x
	}
	t.leastInt, t.greatestInt = min(t.leastInt, x), max(t.greatestInt, x)
	t.integers.add(x)
}

// addReal counts a real number.
func (t *tally) addReal(x float64) {
	switch {
	case x != x:
		t.nans++
		return
	case x > math.MaxFloat64:
		t.positiveInf++
		return
	case x < -math.MaxFloat64:
		t.minusInf++
		return
	case x == 0:
		x = 0 // also where it is -0
	}
	t.count(math.Float64bits(x))
	if t.finite == 1 {
		t.leastReal, t.greatestReal = x, x
	}
	t.leastReal, t.greatestReal = min(t.leastReal, x), max(t.greatestReal, x)
	t.reals.add(x)
}

// count counts a finite value by its bits.
func (t *tally) count(bits uint64) {
	t.finite++
	hash := mix(bits)
	if t.frequent.add(bits, hash) { // the registers know the values of the table
		t.distinct.InsertHash(hash)
	}
	switch {
	case !t.frequent.pruned || !t.ordered():
	case t.frequent.whole != nil: // the value caused the first pruning
		t.ranks.addTable(t.frequent.takeWhole(), t.key)
	default:
		t.ranks.add(t.key(bits), 1)
	}
}

// mergeRanks adds the values of a later part, before the tables are joined.
func (t *tally) mergeRanks(part *tally) {
	if !t.ordered() || !t.frequent.pruned && !part.frequent.pruned {
		return
	}
	if !t.frequent.pruned {
		t.ranks.addTable(t.frequent.counters(), t.key)
	}
	if part.frequent.pruned {
		t.ranks.merge(&part.ranks)
	} else {
		t.ranks.addTable(part.frequent.counters(), t.key)
	}
}

// total is what was seen of a column in all partitions so far.
type total struct {
	tally
	moments moments
}

// merge adds a partition.
func (t *total) merge(part *tally, sums *moments) error {
	if t.rows == 0 {
		t.shortest, t.longest = part.shortest, part.longest
	} else if part.rows > 0 {
		t.shortest, t.longest = min(t.shortest, part.shortest), max(t.longest, part.longest)
	}
	if t.finite == 0 {
		t.leastInt, t.greatestInt = part.leastInt, part.greatestInt
		t.leastReal, t.greatestReal = part.leastReal, part.greatestReal
	} else if part.finite > 0 {
		t.leastInt, t.greatestInt = min(t.leastInt, part.leastInt), max(t.greatestInt, part.greatestInt)
		t.leastReal, t.greatestReal = min(t.leastReal, part.leastReal), max(t.greatestReal, part.greatestReal)
	}
	t.rows, t.nulls, t.values = t.rows+part.rows, t.nulls+part.nulls, t.values+part.values
	t.nans, t.positiveInf, t.minusInf = t.nans+part.nans, t.positiveInf+part.positiveInf, t.minusInf+part.minusInf
	t.finite += part.finite
	t.moments.merge(sums)
	t.mergeRanks(part)
	t.frequent.merge(&part.frequent)
	if whole := t.frequent.takeWhole(); whole != nil && t.ordered() {
		t.ranks.addTable(whole, t.key)
	}
	if t.distinct != nil {
		return t.distinct.Merge(part.distinct)
	}
	return nil
}

// sums returns the moments of the partition.
func (t *tally) sums() *moments {
	if t.kind == summary.Reals {
		return t.reals.moments(t.finite)
	}
	return t.integers.moments(t.finite)
}

// statistics returns what a summary holds of the values, whose moments are given.
func (t *tally) statistics(sums *moments) summary.Statistics {
	s := summary.Statistics{Rows: t.rows, NullRows: t.nulls, Values: t.values, NaNs: t.nans,
		PositiveInfinite: t.positiveInf, NegativeInfinite: t.minusInf}
	if t.list {
		s.ListLengths = &summary.ListLengths{Least: t.shortest, Greatest: t.longest}
		if t.rows > 0 {
			s.ListLengths.Mean, _ = big.NewRat(t.values, t.rows).Float64()
		}
	}
	if t.kind == summary.Lengths {
		return s
	}
	sorted := t.frequent.counters()
	slices.SortFunc(sorted, func(a, b counter) int { return compareValues(t.value(a.bits), t.value(b.bits)) })
	s.Distinct, s.Exact, s.MissedCount = int64(len(sorted)), !t.frequent.pruned, t.frequent.missed
	if !s.Exact {
		s.Distinct = int64(t.distinct.Estimate())
	}
	if t.kind != summary.Hashes && t.finite > 0 {
		t.describeNumbers(&s, sums, sorted)
	}
	slices.SortStableFunc(sorted, func(a, b counter) int { return cmp.Compare(b.count, a.count) })
	for _, c := range sorted[:min(len(sorted), summary.MaxTopValues)] {
		s.TopValues = append(s.TopValues, summary.TopValue{Value: t.value(c.bits), Count: c.count})
	}
	return s
}

// describeNumbers fills in what numbers have and hashes lack.
func (t *tally) describeNumbers(s *summary.Statistics, sums *moments, sorted []counter) {
	least, greatest := t.value(uint64(t.leastInt)), t.value(uint64(t.greatestInt))
	if t.kind == summary.Reals {
		least, greatest = summary.RealValue(t.leastReal), summary.RealValue(t.greatestReal)
	}
	mean := sums.mean(t.offset)
	s.Least, s.Greatest, s.Mean = &least, &greatest, &mean
	if t.finite > 1 {
		deviation := sums.deviation()
		s.Deviation = &deviation
	}
	s.Quantiles = make([]summary.Value, summary.Quantiles)
	value := t.value
	if !s.Exact {
		sorted, value = t.ranks.sorted(), t.valueOfKey
	}
	t.fillQuantiles(s.Quantiles, sorted, value)
}

// valueOfKey returns the value of a key in the sketch of ranks.
func (t *tally) valueOfKey(key uint64) summary.Value {
	if t.kind == summary.Reals {
		return t.value(realOfKey(int64(key)))
	}
	return t.value(key)
}

// fillQuantiles sets each quantile to the value of its rank. Ranks go from 0 to the number of values less one and are
// rounded down. sorted has the values with their counts, and value makes a value of its bits.
func (t *tally) fillQuantiles(quantiles []summary.Value, sorted []counter, value func(bits uint64) summary.Value) {
	at, below := 0, int64(0) // below: the values before sorted[at]
	for i := range quantiles {
		whole, rest := (t.finite-1)/(summary.Quantiles+1), (t.finite-1)%(summary.Quantiles+1)
		rank := whole*int64(i+1) + rest*int64(i+1)/(summary.Quantiles+1)
		for below+sorted[at].count <= rank {
			below += sorted[at].count
			at++
		}
		quantiles[i] = value(sorted[at].bits)
	}
}

// value returns the value of bits in the table.
func (t *tally) value(bits uint64) summary.Value {
	if t.kind == summary.Reals {
		return summary.RealValue(math.Float64frombits(bits))
	}
	if t.offset > 0 {
		return summary.UnsignedValue(bits + t.offset)
	}
	return summary.IntegerValue(int64(bits))
}

func compareValues(a, b summary.Value) int {
	switch {
	case a.Less(b):
		return -1
	case b.Less(a):
		return 1
	}
	return 0
}
