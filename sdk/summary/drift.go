package summary

import (
	"math"
)

// Thresholds are the greatest moves of a column's statistics that are no drift.
type Thresholds struct {
	NullRate   float64 // difference of the shares of nulls, of NaN, and of infinities
	Mean       float64 // move of the mean, in deviations
	Quantiles  float64 // greatest move of the quantiles 0.05, 0.25, 0.5, 0.75 and 0.95, in deviations
	Distinct   float64 // relative change of the number of distinct values
	Stability  float64 // population stability index, of classes and of frequent values
	ListLength float64 // relative change of the mean length of lists
}

// DefaultThresholds returns thresholds for two samples of one source: a stability index of 0.25 is the usual limit of a
// significant move, the others are ours.
func DefaultThresholds() Thresholds {
	return Thresholds{NullRate: 0.05, Mean: 0.5, Quantiles: 0.5, Distinct: 0.5, Stability: 0.25, ListLength: 0.25}
}

// Reason says which statistic of a column moved.
type Reason string

// The reasons.
const (
	Added         Reason = "added"   // the column is new
	Removed       Reason = "removed" // the column is gone
	OtherType     Reason = "type"    // the column has another type
	RowsMoved     Reason = "rows"    // only one of the two data sets has rows
	NullRateMoved Reason = "null_rate"
	NaNRateMoved  Reason = "nan_rate"
	InfiniteMoved Reason = "infinite_rate"
	MeanMoved     Reason = "mean"
	QuantileMoved Reason = "quantiles"
	DistinctMoved Reason = "distinct_values"
	ClassesMoved  Reason = "stability"
	ValuesMoved   Reason = "frequent_values"
	LengthMoved   Reason = "list_length"
)

// ColumnDrift says how far the statistics of a column moved. A move is nil if one of the two has no such statistic.
type ColumnDrift struct {
	Name    string
	Reasons []Reason // the moves above their thresholds; none: the column did not drift

	NullRate *float64 // after less before
	// NaNRate and InfiniteRate are the differences of the shares of NaN, and of infinities, among real numbers. The
	// numbers of lists are included.
	NaNRate      *float64
	InfiniteRate *float64
	// Mean and Quantiles count in deviations of before; if its values are all the same in deviations of after; and if
	// those are, too, in the absolute value before, or in 1 if that is 0.
	Mean      *float64
	Quantiles *float64 // the greatest of them, with its sign
	Distinct  *float64 // after by before, less 1
	// Stability is the population stability index over classes of values whose borders are the deciles of before.
	Stability *float64
	// FrequentValues is the population stability index over the frequent values of both and the rest.
	FrequentValues *float64
	ListLength     *float64 // after by before, less 1
}

// Compare compares the columns of two summaries: those of before in their order, and then new ones.
func Compare(before, after *Summary, limits Thresholds) []ColumnDrift {
	places := make(map[string]int, len(after.Columns))
	for i := range after.Columns {
		places[after.Columns[i].Name] = i
	}
	drifts := make([]ColumnDrift, 0, len(before.Columns))
	known := make(map[string]bool, len(before.Columns))
	for i := range before.Columns {
		c := &before.Columns[i]
		known[c.Name] = true
		place, there := places[c.Name]
		if !there {
			drifts = append(drifts, ColumnDrift{Name: c.Name, Reasons: []Reason{Removed}})
			continue
		}
		drifts = append(drifts, compareColumns(c, &after.Columns[place], limits))
	}
	for i := range after.Columns {
		if name := after.Columns[i].Name; !known[name] {
			drifts = append(drifts, ColumnDrift{Name: name, Reasons: []Reason{Added}})
		}
	}
	return drifts
}

// compareColumns compares two columns of one name.
func compareColumns(before, after *Column, limits Thresholds) ColumnDrift {
	d := ColumnDrift{Name: before.Name}
	if before.Kind != after.Kind || before.List != after.List || before.Type != after.Type {
		d.Reasons = []Reason{OtherType}
		return d
	}
	move := func(to **float64, reason Reason, x, limit float64) {
		*to = &x
		if math.Abs(x) > limit {
			d.Reasons = append(d.Reasons, reason)
		}
	}
	if before.Rows > 0 && after.Rows > 0 {
		move(&d.NullRate, NullRateMoved, after.NullRate()-before.NullRate(), limits.NullRate)
	}
	if (before.Rows > 0) != (after.Rows > 0) {
		d.Reasons = append(d.Reasons, RowsMoved)
	}
	if before.Values > 0 && after.Values > 0 && (before.Kind == Reals || before.Kind == Lengths) {
		nanBefore, infiniteBefore := before.specialRates()
		nanAfter, infiniteAfter := after.specialRates()
		move(&d.NaNRate, NaNRateMoved, nanAfter-nanBefore, limits.NullRate)
		move(&d.InfiniteRate, InfiniteMoved, infiniteAfter-infiniteBefore, limits.NullRate)
	}
	if before.Mean != nil && after.Mean != nil {
		unit := deviationUnit(&before.Statistics, &after.Statistics)
		move(&d.Mean, MeanMoved, (*after.Mean-*before.Mean)/unit, limits.Mean)
		move(&d.Quantiles, QuantileMoved, greatestQuantileMove(before.Quantiles, after.Quantiles)/unit, limits.Quantiles)
	}
	if before.Distinct > 0 && after.Distinct > 0 {
		move(&d.Distinct, DistinctMoved, float64(after.Distinct)/float64(before.Distinct)-1, limits.Distinct)
	}
	if before.Mean != nil && after.Mean != nil {
		move(&d.Stability, ClassesMoved, classStability(before.Quantiles, after.Quantiles), limits.Stability)
	}
	if before.Kind != Reals && len(before.TopValues) > 0 && len(after.TopValues) > 0 {
		move(&d.FrequentValues, ValuesMoved, valueStability(&before.Statistics, &after.Statistics), limits.Stability)
	}
	if before.ListLengths != nil && before.ListLengths.Mean > 0 && after.Rows > 0 {
		move(&d.ListLength, LengthMoved, after.ListLengths.Mean/before.ListLengths.Mean-1, limits.ListLength)
	}
	return d
}

// specialRates returns the shares of NaN and of infinities among the values. There must be at least one value.
func (s *Statistics) specialRates() (nan, infinite float64) {
	n := float64(s.Values)
	return float64(s.NaNs) / n, float64(s.PositiveInfinite+s.NegativeInfinite) / n
}

// deviationUnit returns what moves of a column are counted in.
func deviationUnit(before, after *Statistics) float64 {
	for _, s := range []*Statistics{before, after} {
		if s.Deviation != nil && *s.Deviation > 0 {
			return *s.Deviation
		}
	}
	if *before.Mean != 0 {
		return math.Abs(*before.Mean)
	}
	return 1
}

// greatestQuantileMove returns the move of one of five quantiles that is the greatest in size.
func greatestQuantileMove(before, after []Value) float64 {
	greatest := 0.0
	for _, percent := range []int{5, 25, 50, 75, 95} {
		if move := after[percent-1].Real() - before[percent-1].Real(); math.Abs(move) > math.Abs(greatest) {
			greatest = move
		}
	}
	return greatest
}

// leastShare stands for the share of an empty class in a stability index: half of the share that one of 99 quantiles
// stands for.
const leastShare = 0.005

// stabilityIndex returns the sum of (q - p) ln(q/p) over classes.
func stabilityIndex(before, after []float64) float64 {
	index := 0.0
	for i := range before {
		p, q := max(before[i], leastShare), max(after[i], leastShare)
		index += (q - p) * math.Log(q/p)
	}
	return index
}

// atomShare is the share from which on a value that is a border of classes is a class of its own.
const atomShare = 0.03

// classStability returns the stability index over classes of values. The borders are the deciles of before; a border
// that many values are equal to is a class of its own.
func classStability(before, after []Value) float64 {
	var p, q []float64
	class := func(sharesBefore, sharesAfter float64) {
		p, q = append(p, sharesBefore), append(q, sharesAfter)
	}
	doneBefore, doneAfter := 0.0, 0.0
	for i := 9; i < len(before); i += 10 {
		border := before[i]
		belowBefore, toBefore := sharesAround(before, border)
		belowAfter, toAfter := sharesAround(after, border)
		if toBefore == doneBefore && i > 9 { // the border was there already
			continue
		}
		if toBefore-belowBefore >= atomShare || toAfter-belowAfter >= atomShare {
			class(belowBefore-doneBefore, belowAfter-doneAfter)
			class(toBefore-belowBefore, toAfter-belowAfter)
		} else {
			class(toBefore-doneBefore, toAfter-doneAfter)
		}
		doneBefore, doneAfter = toBefore, toAfter
	}
	class(1-doneBefore, 1-doneAfter)
	return stabilityIndex(p, q)
}

// sharesAround returns which shares of quantiles lie below a value, and below it or at it.
func sharesAround(quantiles []Value, border Value) (below, to float64) {
	for _, v := range quantiles {
		if v.Less(border) {
			below++
		}
		if !border.Less(v) {
			to++
		}
	}
	n := float64(len(quantiles))
	return below / n, to / n
}

// valueStability returns the stability index over the frequent values of both, and the rest. A value that one of them
// does not list may have been as frequent there as the least frequent one that is listed, and counts as near to the
// other's share as that allows.
func valueStability(before, after *Statistics) float64 {
	sharesBefore, unlistedBefore := before.topShares()
	sharesAfter, unlistedAfter := after.topShares()
	var p, q []float64
	restBefore, restAfter := 1.0, 1.0
	add := func(x, y float64) {
		p, q = append(p, x), append(q, y)
		restBefore, restAfter = restBefore-x, restAfter-y
	}
	for _, t := range before.TopValues {
		x := sharesBefore[t.Value]
		y, listed := sharesAfter[t.Value]
		if !listed {
			y = min(x, unlistedAfter)
		}
		add(x, y)
	}
	for _, t := range after.TopValues {
		if _, listed := sharesBefore[t.Value]; !listed {
			y := sharesAfter[t.Value]
			add(min(y, unlistedBefore), y)
		}
	}
	return stabilityIndex(append(p, max(restBefore, 0)), append(q, max(restAfter, 0)))
}

// topShares returns the shares of the frequent values, and the greatest share of a value that is not among them.
func (s *Statistics) topShares() (shares map[Value]float64, unlisted float64) {
	n := float64(s.Values - s.NaNs - s.PositiveInfinite - s.NegativeInfinite)
	shares = make(map[Value]float64, len(s.TopValues))
	for _, t := range s.TopValues {
		shares[t.Value] = float64(t.Count) / n
	}
	if !s.Exact || s.Distinct > int64(len(s.TopValues)) {
		unlisted = float64(s.TopValues[len(s.TopValues)-1].Count+s.MissedCount) / n
	}
	return shares, unlisted
}
