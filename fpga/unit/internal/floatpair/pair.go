package floatpair

import "math"

// Pair is the sum Hi + Lo, where Lo is at most half a unit in the last place of Hi.
type Pair struct{ Hi, Lo float64 }

// Sum returns a + b without an error.
func Sum(a, b float64) Pair {
	sum := a + b
	t := sum - a
	return Pair{sum, (a - (sum - t)) + (b - t)}
}

// normal returns a + b as a pair, where a is not below b in magnitude.
func normal(a, b float64) Pair {
	sum := a + b
	return Pair{sum, b - (sum - a)}
}

// Quotient returns a / b.
func Quotient(a, b float64) Pair {
	hi := a / b
	return normal(hi, math.FMA(-hi, b, a)/b)
}

// Plus returns p + q.
func (p Pair) Plus(q Pair) Pair {
	high, low := Sum(p.Hi, q.Hi), Sum(p.Lo, q.Lo)
	high = normal(high.Hi, high.Lo+low.Hi)
	return normal(high.Hi, high.Lo+low.Lo)
}

// Minus returns p - q.
func (p Pair) Minus(q Pair) Pair { return p.Plus(Pair{-q.Hi, -q.Lo}) }

// Times returns p * q.
func (p Pair) Times(q Pair) Pair {
	hi := float64(p.Hi * q.Hi)
	lo := math.FMA(p.Hi, q.Hi, -hi) + float64(p.Hi*q.Lo) + float64(p.Lo*q.Hi)
	return normal(hi, lo)
}

// Scaled returns p * b.
func (p Pair) Scaled(b float64) Pair {
	hi := float64(p.Hi * b)
	return normal(hi, math.FMA(p.Hi, b, -hi)+float64(p.Lo*b))
}

// Over returns p / q.
func (p Pair) Over(q Pair) Pair {
	hi := p.Hi / q.Hi
	rest := p.Minus(q.Scaled(hi))
	return normal(hi, rest.Hi/q.Hi)
}

// Round32 returns the float32 nearest to a value that is within relative*|p| of p; it cannot distinguish a tie from
// values near the tie. If p does not decide, it returns false and the float64 in the middle of the two float32 in
// question.
func (p Pair) Round32(relative float64) (nearest float32, middle float64, decided bool) {
	const beyond = 0x1p128
	if math.Abs(p.Hi) >= beyond {
		return float32(math.Copysign(math.Inf(1), p.Hi)), 0, true
	}
	nearest = float32(p.Hi)
	if math.IsInf(float64(nearest), 0) {
		nearest = float32(math.Copysign(math.MaxFloat32, p.Hi))
	}
	above := (p.Hi-float64(nearest))+p.Lo >= 0
	direction := math.Inf(1)
	if !above {
		direction = math.Inf(-1)
	}
	next := math.Nextafter32(nearest, float32(direction))
	other := float64(next)
	if math.IsInf(other, 0) {
		other = math.Copysign(beyond, other)
	}
	middle = float64(nearest) + float64((other-float64(nearest))/2)
	distance := (p.Hi - middle) + p.Lo // negative on the side of nearest, if above
	if !above {
		distance = -distance
	}
	switch margin := relative * math.Abs(p.Hi); {
	case distance < -margin:
		return nearest, middle, true
	case distance > margin:
		return next, middle, true
	}
	return nearest, middle, false
}
