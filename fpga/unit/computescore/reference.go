package computescore

import (
	"fmt"
	"math"
	"math/big"
)

// Reference returns the result of one row.
func Reference(ids []int64, scores []float32, matching []int64, matchingScores []float32, p Params) (float32, error) {
	if p.Function == CosineSimilarity {
		if len(ids) == 0 || len(scores) == 0 {
			ids, scores = nil, nil
		}
		if len(ids) != len(scores) {
			return 0, ErrScores
		}
	}
	if p.Function >= CosineSimilarity {
		if len(matching) == 0 || len(matchingScores) == 0 {
			matching, matchingScores = nil, nil
		}
		if len(matching) != len(matchingScores) {
			return 0, ErrScores
		}
	}
	inputCounts, matchingCounts := countsOf(ids), countsOf(matching)
	least, most := 0, 0
	for id, n := range inputCounts {
		if m := matchingCounts[id]; m > 0 {
			least, most = least+min(n, m), most+max(n, m)
		}
	}
	switch p.Function {
	case HasIDOverlap:
		return nearest(big.NewRat(int64(min(least, 1)), 1)), nil
	case IDOverlapCount:
		return nearest(big.NewRat(int64(least), 1)), nil
	case MaxCount:
		return nearest(big.NewRat(int64(most), 1)), nil
	case JaccardSimilarity:
		if len(ids)+len(matching) == 0 {
			return math.Float32frombits(0x7fc00000), nil
		}
		return nearest(big.NewRat(int64(least), int64(len(ids)+len(matching)-least))), nil
	case CosineSimilarity:
		return cosine(ids, scores, matching, matchingScores, p)
	}
	var found []float32
	for i, id := range matching {
		if inputCounts[id] > 0 {
			found = append(found, matchingScores[i])
		}
	}
	switch p.Function {
	case ScoreSum:
		return sum(found), nil
	case ScoreMin, ScoreMax:
		return extreme(found, p.Function == ScoreMin), nil
	}
	return 0, fmt.Errorf("function %d: %w", p.Function, ErrFunction)
}

func countsOf(ids []int64) map[int64]int {
	counts := map[int64]int{}
	for _, id := range ids {
		counts[id]++
	}
	return counts
}

// nearest returns the float32 next to a number.
func nearest(x *big.Rat) float32 {
	f, _ := x.Float32()
	return f
}

func exact(score float32) *big.Rat { return new(big.Rat).SetFloat64(float64(score)) }

func sum(scores []float32) float32 {
	total, infinite := new(big.Rat), float32(0)
	for _, s := range scores {
		switch {
		case s != s || math.IsInf(float64(s), 0) && infinite == -s:
			return math.Float32frombits(0x7fc00000)
		case math.IsInf(float64(s), 0):
			infinite = s
		default:
			total.Add(total, exact(s))
		}
	}
	if infinite != 0 {
		for _, s := range scores {
			if s != s || s == -infinite {
				return math.Float32frombits(0x7fc00000)
			}
		}
		return infinite
	}
	return nearest(total)
}

// extreme returns the least or the greatest number, 0 without one.
func extreme(scores []float32, least bool) float32 {
	if len(scores) == 0 {
		return 0
	}
	best := scores[0]
	for _, s := range scores {
		if s != s {
			return math.Float32frombits(0x7fc00000)
		}
		below := s < best || s == best && math.Signbit(float64(s)) && !math.Signbit(float64(best))
		if s != best && below == least || s == best && math.Signbit(float64(s)) == least {
			best = s
		}
	}
	return best
}

func cosine(ids []int64, scores []float32, matching []int64, matchingScores []float32, p Params) (float32, error) {
	for _, list := range [][]float32{scores, matchingScores} {
		for _, s := range list {
			if s != s || math.IsInf(float64(s), 0) {
				return math.Float32frombits(0x7fc00000), nil
			}
		}
	}
	a, b := sumsOf(ids, scores), sumsOf(matching, matchingScores)
	product := new(big.Rat)
	for id, x := range a {
		if y := b[id]; y != nil {
			product.Add(product, new(big.Rat).Mul(x, y))
		}
	}
	squares := new(big.Rat).Mul(squareOf(a), squareOf(b))
	if squares.Sign() == 0 {
		if p.ZeroNorm {
			return 0, nil
		}
		return 0, ErrZeroNorm
	}
	// 4096 bits hold all of the squares and of the product.
	norms := new(big.Float).SetPrec(4096).SetRat(squares)
	norms.Sqrt(norms)
	quotient := new(big.Float).SetPrec(4096).SetRat(product)
	f, _ := quotient.Quo(quotient, norms).Float32()
	return f, nil
}

// sumsOf returns the sum of the scores of each id.
func sumsOf(ids []int64, scores []float32) map[int64]*big.Rat {
	sums := map[int64]*big.Rat{}
	for i, id := range ids {
		if sums[id] == nil {
			sums[id] = new(big.Rat)
		}
		sums[id].Add(sums[id], exact(scores[i]))
	}
	return sums
}

func squareOf(sums map[int64]*big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, x := range sums {
		total.Add(total, new(big.Rat).Mul(x, x))
	}
	return total
}
