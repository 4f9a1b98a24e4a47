package computescore

import (
	"math"
	"math/big"
)

// errorUnit is twice the relative error of one operation of float64.
const errorUnit = 0x1p-52

// roundWithin returns the float32 next to a number that is known but for an error. ok is false if the error leaves more
// than one float32.
func roundWithin(x, bound float64) (y float32, ok bool) {
	low, high := float32(x-bound), float32(x+bound)
	return low, low == high && (low != 0 || bound == 0)
}

// cosine returns the cosine similarity of the row; ok is false if a norm is 0.
func (s *Scorer) cosine() (similarity float32, ok bool) {
	row, g := &s.row, &s.groups
	terms := len(row.input) + len(row.matching)
	g.begin(terms)
	g.beginSums(terms)
	for i, id := range row.input {
		n, x := g.add(id), float64(row.inputScores[i])
		g.inputSums[n] += x
		g.inputSizes[n] += math.Abs(x)
	}
	for i, id := range row.matching {
		n, x := g.add(id), float64(row.matchingScores[i])
		g.matchingSums[n] += x
		g.matchingSizes[n] += math.Abs(x)
	}
	var product, inputSquare, matchingSquare float64 // sums
	var productSize, inputSize, matchingSize float64 // the same of absolute values
	for i := range g.count {
		x, y, sizeX, sizeY := g.inputSums[i], g.matchingSums[i], g.inputSizes[i], g.matchingSizes[i]
		product += float64(x * y)
		inputSquare += float64(x * x)
		matchingSquare += float64(y * y)
		productSize += float64(sizeX * sizeY)
		inputSize += float64(sizeX * sizeX)
		matchingSize += float64(sizeY * sizeY)
	}
	switch {
	case !(inputSize <= math.MaxFloat64) || !(matchingSize <= math.MaxFloat64):
		return nan(), true
	case inputSize == 0 || matchingSize == 0:
		return 0, false
	}
	// What is summed and multiplied at most terms + 4 times is off by unit of its size at most.
	unit := float64(errorUnit * float64(terms+4))
	norms := math.Sqrt(inputSquare * matchingSquare)
	inputError, matchingError := 2*unit*inputSize/inputSquare, 2*unit*matchingSize/matchingSquare
	if norms > 0 && inputError < 0x1p-10 && matchingError < 0x1p-10 {
		if productSize == 0 {
			return 0, true // no id with a score is in both
		}
		quotient := product / norms
		bound := 1.01*unit*productSize/norms + float64(math.Abs(quotient)*(inputError+matchingError+4*errorUnit))
		if y, ok := roundWithin(quotient, bound); ok {
			return y, true
		}
	}
	return s.exactCosine()
}

// exactBits hold every sum, product and square of a row exactly: float32 numbers span 277 bits, the square of a product
// of sums four times as many and a few more for their number.
const exactBits = 2048

func exactZero() *big.Float { return new(big.Float).SetPrec(exactBits) }

func exactOf(x float32) *big.Float { return exactZero().SetFloat64(float64(x)) }

// exactSum is scoreSum of finite scores, with as many bits as it takes.
func (s *Scorer) exactSum() float32 {
	total := exactZero()
	for i, id := range s.row.matching {
		if s.groups.find(id) >= 0 {
			total.Add(total, exactOf(s.row.matchingScores[i]))
		}
	}
	if total.Sign() == 0 {
		return 0
	}
	y, _ := total.Float32()
	return y
}

// exactCosine is cosine of finite scores, with as many bits as it takes. The groups are those of cosine.
func (s *Scorer) exactCosine() (similarity float32, ok bool) {
	a := s.exactSums(s.row.input, s.row.inputScores)
	b := s.exactSums(s.row.matching, s.row.matchingScores)
	product, squareA, squareB, term := exactZero(), exactZero(), exactZero(), exactZero()
	for i := range a {
		product.Add(product, term.Mul(a[i], b[i]))
		squareA.Add(squareA, term.Mul(a[i], a[i]))
		squareB.Add(squareB, term.Mul(b[i], b[i]))
	}
	switch {
	case squareA.Sign() == 0 || squareB.Sign() == 0:
		return 0, false
	case product.Sign() == 0:
		return 0, true
	}
	square, squares := exactZero().Mul(product, product), exactZero().Mul(squareA, squareB)
	// notAbove reports whether x is at most the absolute value of the cosine, and whether it is that value.
	notAbove := func(x float64) (at, same bool) {
		factor := exactZero().SetFloat64(x)
		c := factor.Mul(factor, factor).Mul(factor, squares).Cmp(square)
		return c <= 0, c == 0
	}
	quotient := new(big.Float).SetPrec(64).Quo(product, exactZero().Sqrt(squares))
	estimate, _ := quotient.Abs(quotient).Float32()
	for estimate > 0 {
		if at, _ := notAbove(float64(estimate)); at {
			break
		}
		estimate = math.Nextafter32(estimate, 0)
	}
	next := math.Nextafter32(estimate, 2)
	if at, same := notAbove((float64(estimate) + float64(next)) / 2); at && (!same || math.Float32bits(estimate)&1 == 1) {
		estimate = next
	}
	return float32(math.Copysign(float64(estimate), float64(product.Sign()))), true
}

// exactSums returns the sums of the scores by the group of their id.
func (s *Scorer) exactSums(ids []int64, scores []float32) []*big.Float {
	sums := make([]*big.Float, s.groups.count)
	for i := range sums {
		sums[i] = exactZero()
	}
	for i, id := range ids {
		at := s.groups.find(id)
		sums[at].Add(sums[at], exactOf(scores[i]))
	}
	return sums
}
