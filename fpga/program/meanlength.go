package program

import "math"

// Assume notes an assumption without which a mean length would not follow from others.
type Assume func(format string, args ...any)

// Some operators that change the lengths of lists implement one of these interfaces.
type (
	// meanResizer returns the mean length of what it makes of lists of a mean length.
	meanResizer interface {
		MeanElements(n float64, assume Assume) float64
	}
	// combiningMeanResizer is meanResizer for a combiner, whose inputs have mean lengths.
	combiningMeanResizer interface {
		MeanElements(lengths []float64, assume Assume) float64
	}
)

// MeanElements returns the mean length of what an operator makes of lists of a mean length. Neighbouring dense columns
// count as a list. An operator that knows only the most elements that it makes counts with these.
func MeanElements(op Op, n float64, assume Assume) float64 {
	switch o := op.(type) {
	case meanResizer:
		return o.MeanElements(n, assume)
	case denseEnd:
		return float64(o.DenseColumns())
	case resizer:
		return atTheMost(op.Unit(), o.MostElements(uint64(math.Ceil(n))), assume)
	}
	return n
}

// MeanCombined returns the mean length of the values of a type that a combiner makes of inputs of mean lengths.
func MeanCombined(c Combiner, lengths []float64, out ValueType, assume Assume) float64 {
	if !out.List {
		return 1
	}
	switch o := c.(type) {
	case combiningMeanResizer:
		return o.MeanElements(lengths, assume)
	case combiningResizer:
		whole := make([]Extent, len(lengths))
		for i, n := range lengths {
			whole[i].Elements = uint64(math.Ceil(n))
		}
		return atTheMost(c.Unit(), o.MostElements(whole), assume)
	}
	return lengths[0]
}

// atTheMost returns the length that an operator makes at most.
func atTheMost(u Unit, most uint64, assume Assume) float64 {
	assume("%v makes as many ids as it can of lists of their mean length: %d", u, most)
	return float64(most)
}

// MeanOfCut returns the mean length of lists of a mean length that are cut.
func MeanOfCut(most, n float64, assume Assume) float64 {
	if most < n {
		return most
	}
	assume("lists have their mean length where they are cut: the first %.0f of %.4g ids are all of them", most, n)
	return n
}
