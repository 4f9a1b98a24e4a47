package accumulator

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/axiomhq/hyperloglog"

	"github.com/millrace/millrace/sdk/summary"
)

// tally is what was seen of a column in one partition.
type tally struct {
	kind summary.Kind
	list bool

	rows, nulls, values         int64
	shortest, longest           int64 // lengths of lists, if there are rows
	nans, positiveInf, minusInf int64
	leastInt, greatestInt       int64
	leastReal, greatestReal     float32
	finite                      int64
	integers                    integerSums
	reals                       realSums
	frequent                    frequentValues
	distinct                    *hyperloglog.Sketch
	quantiles                   *ddsketch.DDSketch
}

func newTally(kind summary.Kind, list bool) (t *tally, err error) {
	t = &tally{kind: kind, list: list}
	if kind != summary.Lengths {
		t.distinct = hyperloglog.NewNoSparse()
	}
	if kind == summary.Integers || kind == summary.Reals {
		t.quantiles, err = newQuantiles()
	}
	return t, err
}

// indexedLogarithm is the logarithm, to the base 2, between neighbouring indices of the sketch of quantiles. Its half
// is, about, the greatest relative error.
const indexedLogarithm = 0.002

// newQuantiles returns a sketch whose indices come from a piecewise linear logarithm, which is computed without
// rounding. The offset 0 keeps a fused multiplication and addition from changing an index.
func newQuantiles() (*ddsketch.DDSketch, error) {
	indices, err := mapping.NewLinearlyInterpolatedMappingWithGamma(math.Exp2(indexedLogarithm), 0)
	if err != nil {
		return nil, err
	}
	return ddsketch.NewDDSketch(indices, store.NewDenseStore(), store.NewDenseStore()), nil
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
func (t *tally) addInteger(x int64) error {
	t.count(uint64(x))
	if t.kind == summary.Hashes {
		return nil
	}
	if t.finite == 1 {
		t.leastInt, t.greatestInt = x, x
	}
	t.leastInt, t.greatestInt = min(t.leastInt, x), max(t.greatestInt, x)
	t.integers.add(x)
	return t.quantiles.Add(float64(x))
}

// addReal counts a real number.
func (t *tally) addReal(x float32) error {
	switch {
	case x != x:
		t.nans++
		return nil
	case x > math.MaxFloat32:
		t.positiveInf++
		return nil
	case x < -math.MaxFloat32:
		t.minusInf++
		return nil
	case x == 0:
		x = 0 // also where it is -0
	}
	t.count(uint64(math.Float32bits(x)))
	if t.finite == 1 {
		t.leastReal, t.greatestReal = x, x
	}
	t.leastReal, t.greatestReal = min(t.leastReal, x), max(t.greatestReal, x)
	t.reals.add(x)
	return t.quantiles.Add(float64(x))
}

// count counts a finite value by its bits.
func (t *tally) count(bits uint64) {
	t.finite++
	hash := mix(bits)
	if t.frequent.add(bits, hash) { // the registers know the values of the table
		t.distinct.InsertHash(hash)
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
	t.frequent.merge(&part.frequent)
	if t.distinct != nil {
		if err := t.distinct.Merge(part.distinct); err != nil {
			return err
		}
	}
	if t.quantiles == nil {
		return nil
	}
	return t.quantiles.MergeWith(part.quantiles)
}

// sums returns the moments of the partition.
func (t *tally) sums() *moments {
	if t.kind == summary.Reals {
		return t.reals.moments(t.finite)
	}
	return t.integers.moments(t.finite)
}

// statistics returns what a summary holds of the values, whose moments are given.
func (t *tally) statistics(sums *moments) (summary.Statistics, error) {
	s := summary.Statistics{Rows: t.rows, NullRows: t.nulls, Values: t.values, NaNs: t.nans,
		PositiveInfinite: t.positiveInf, NegativeInfinite: t.minusInf}
	if t.list {
		s.ListLengths = &summary.ListLengths{Least: t.shortest, Greatest: t.longest}
		if t.rows > 0 {
			s.ListLengths.Mean, _ = big.NewRat(t.values, t.rows).Float64()
		}
	}
	if t.kind == summary.Lengths {
		return s, nil
	}
	sorted := t.frequent.counters()
	slices.SortFunc(sorted, func(a, b counter) int { return compareValues(t.value(a.bits), t.value(b.bits)) })
	s.Distinct, s.Exact, s.MissedCount = int64(len(sorted)), !t.frequent.pruned, t.frequent.missed
	if !s.Exact {
		s.Distinct = int64(t.distinct.Estimate())
	}
	if t.kind != summary.Hashes && t.finite > 0 {
		if err := t.describeNumbers(&s, sums, sorted); err != nil {
			return s, err
		}
	}
	slices.SortStableFunc(sorted, func(a, b counter) int { return cmp.Compare(b.count, a.count) })
	for _, c := range sorted[:min(len(sorted), summary.MaxTopValues)] {
		s.TopValues = append(s.TopValues, summary.TopValue{Value: t.value(c.bits), Count: c.count})
	}
	return s, nil
}

// describeNumbers fills in what numbers have and hashes lack.
func (t *tally) describeNumbers(s *summary.Statistics, sums *moments, sorted []counter) error {
	least, greatest := summary.IntegerValue(t.leastInt), summary.IntegerValue(t.greatestInt)
	if t.kind == summary.Reals {
		least, greatest = summary.RealValue(float64(t.leastReal)), summary.RealValue(float64(t.greatestReal))
	}
	mean := sums.mean()
	s.Least, s.Greatest, s.Mean = &least, &greatest, &mean
	if t.finite > 1 {
		deviation := sums.deviation()
		s.Deviation = &deviation
	}
	s.Quantiles = make([]summary.Value, summary.Quantiles)
	if s.Exact {
		t.exactQuantiles(s.Quantiles, sorted)
		return nil
	}
	for i := range s.Quantiles {
		x, err := t.quantiles.GetValueAtQuantile(float64(i+1) / (summary.Quantiles + 1))
		if err != nil {
			return err
		}
		s.Quantiles[i] = summary.RealValue(min(max(x, least.Real()), greatest.Real()))
		if t.kind == summary.Integers {
			s.Quantiles[i] = summary.IntegerValue(nearestInteger(x, t.leastInt, t.greatestInt))
		}
	}
	return nil
}

// exactQuantiles sets each quantile to the value of its rank, counted from 0 to the number of values less one and
// rounded down.
func (t *tally) exactQuantiles(quantiles []summary.Value, sorted []counter) {
	at, below := 0, int64(0) // below: the values before sorted[at]
	for i := range quantiles {
		whole, rest := (t.finite-1)/(summary.Quantiles+1), (t.finite-1)%(summary.Quantiles+1)
		rank := whole*int64(i+1) + rest*int64(i+1)/(summary.Quantiles+1)
		for below+sorted[at].count <= rank {
			below += sorted[at].count
			at++
		}
		quantiles[i] = t.value(sorted[at].bits)
	}
}

// nearestInteger rounds x to an integer between two.
func nearestInteger(x float64, least, greatest int64) int64 {
	switch {
	case x <= float64(least):
		return least
	case x >= float64(greatest):
		return greatest
	}
	return int64(math.RoundToEven(x))
}

// value returns the value of bits in the table.
func (t *tally) value(bits uint64) summary.Value {
	if t.kind == summary.Reals {
		return summary.RealValue(float64(math.Float32frombits(uint32(bits))))
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
