package computescore

import (
	"fmt"
	"math"
)

// Scorer computes scores. The zero value works.
type Scorer struct {
	groups idGroups
	row    rowLists
}

// rowLists are the lists of the row that is computed.
type rowLists struct {
	input, matching             []int64
	inputScores, matchingScores []float32
}

// Score sets dst[i] to the result of row i.
func (s *Scorer) Score(dst []float32, input, matching Side, p Params) error {
	if p.Function > ScoreMax {
		return fmt.Errorf("function %d: %w", p.Function, ErrFunction)
	}
	if err := input.check(len(dst), p.Function.InputScores()); err != nil {
		return err
	}
	if err := matching.check(len(dst), p.Function.MatchingScores()); err != nil {
		return err
	}
	var readInput, readMatching sideReader
	row := &s.row
	for i := range dst {
		var whole bool
		row.input, row.inputScores, whole = readInput.next(&input, i, p.Function.InputScores())
		if whole {
			row.matching, row.matchingScores, whole = readMatching.next(&matching, i, p.Function.MatchingScores())
		}
		if !whole {
			return fmt.Errorf("row %d: %w", i, ErrScores)
		}
		ok := true
		switch p.Function {
		case HasIDOverlap, IDOverlapCount, MaxCount, JaccardSimilarity:
			dst[i] = s.countScore(p.Function)
		case CosineSimilarity:
			dst[i], ok = s.cosine()
		case ScoreSum:
			dst[i] = s.scoreSum()
		case ScoreMin, ScoreMax:
			dst[i] = s.extremeScore(p.Function == ScoreMin)
		}
		if !ok {
			if !p.ZeroNorm {
				return fmt.Errorf("row %d: %w", i, ErrZeroNorm)
			}
			dst[i] = 0
		}
	}
	return nil
}

// check checks the lengths of a side.
func (s *Side) check(rows int, scored bool) error {
	if err := checkLengths(s.Lengths, rows, len(s.IDs)); err != nil || !scored {
		return err
	}
	return checkLengths(s.ScoreLengths, rows, len(s.Scores))
}

func checkLengths(lengths []int32, rows, values int) error {
	if len(lengths) != rows {
		return fmt.Errorf("%d lengths of %d rows: %w", len(lengths), rows, ErrLengths)
	}
	total := int64(0)
	for row, n := range lengths {
		if n < 0 {
			return fmt.Errorf("row %d has length %d: %w", row, n, ErrLengths)
		}
		total += int64(n)
	}
	if total != int64(values) {
		return fmt.Errorf("lengths add up to %d, there are %d values: %w", total, values, ErrLengths)
	}
	return nil
}

// sideReader is the place in a side's lists behind the rows that were read.
type sideReader struct{ ids, scores int }

// next returns the lists of a row; whole is false if the scores are not as many as the ids.
func (r *sideReader) next(s *Side, row int, scored bool) (ids []int64, scores []float32, whole bool) {
	n := int(s.Lengths[row])
	ids = s.IDs[r.ids:][:n]
	r.ids += n
	if !scored {
		return ids, nil, true
	}
	m := int(s.ScoreLengths[row])
	scores = s.Scores[r.scores:][:m]
	r.scores += m
	if n == 0 || m == 0 {
		return nil, nil, true
	}
	return ids, scores, n == m
}

// countScore computes the functions that take no scores.
func (s *Scorer) countScore(f Function) float32 {
	row, g := &s.row, &s.groups
	g.begin(len(row.input))
	for _, id := range row.input {
		g.inputCounts[g.add(id)]++
	}
	least, most := 0, 0
	if f == MaxCount {
		for _, id := range row.matching {
			if at := g.find(id); at >= 0 {
				g.matchingCounts[at]++
			}
		}
		for i, n := range g.inputCounts[:g.count] {
			if m := g.matchingCounts[i]; m > 0 {
				most += int(max(n, m))
			}
		}
		return float32(most)
	}
	for _, id := range row.matching { // each takes one of the input's ids away
		if at := g.find(id); at >= 0 && g.inputCounts[at] > 0 {
			if g.inputCounts[at]--; f == HasIDOverlap {
				return 1
			}
			least++
		}
	}
	if f != JaccardSimilarity {
		return float32(least)
	}
	all := len(row.input) + len(row.matching) - least
	if all == 0 {
		return nan()
	}
	// A list has fewer than 2^28 ids, so that a quotient that is not a midpoint of two float32 is farther from one than
	// float64 rounds.
	return float32(float64(least) / float64(all))
}

// scoreSum returns the sum of the matching scores whose ids are in the input.
func (s *Scorer) scoreSum() float32 {
	row := &s.row
	s.addInputs()
	total, size, terms := 0.0, 0.0, 0
	for i, id := range row.matching {
		if s.groups.find(id) >= 0 {
			x := float64(row.matchingScores[i])
			total, size, terms = total+x, size+math.Abs(x), terms+1
		}
	}
	switch {
	case total != total:
		return nan()
	case math.IsInf(total, 0):
		return float32(total)
	}
	if y, ok := roundWithin(total, float64(errorUnit*float64(terms)*size)); ok {
		return y
	}
	return s.exactSum()
}

// extremeScore returns the least or greatest matching score whose id is in the input.
func (s *Scorer) extremeScore(least bool) float32 {
	row := &s.row
	s.addInputs()
	best, found := float32(0), false
	for i, id := range row.matching {
		if s.groups.find(id) < 0 {
			continue
		}
		switch x := row.matchingScores[i]; {
		case !found:
			best, found = x, true
		case least:
			best = min(best, x)
		default:
			best = max(best, x)
		}
	}
	if best != best {
		return nan()
	}
	return best
}

// addInputs makes groups of the input's ids.
func (s *Scorer) addInputs() {
	s.groups.begin(len(s.row.input))
	for _, id := range s.row.input {
		s.groups.add(id)
	}
}

func nan() float32 { return math.Float32frombits(0x7fc00000) }
