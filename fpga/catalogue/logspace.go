package catalogue

import (
	"fmt"
	"math"
	"math/big"

	"github.com/millrace/millrace/fpga/program"
)

// Precisions, in bits, of the evaluation of log-spaced borders. A border is from * q^i with q^(count-1) = to/from. The
// products' errors add up to less than count * 2^-340; rounding to snapPrec first makes values that are exact, such
// as powers of ten, and exact ties, land on themselves. Nothing here depends on the processor: no float64 arithmetic,
// whose exp and log differ between architectures, takes part.
const (
	workPrec = 384
	snapPrec = 256
)

// Exact returns the borders in order, exact to 256 bits.
func (l LogSpaced) Exact() ([]*big.Float, error) {
	switch {
	case !(l.From > 0) || !(l.To > l.From) || math.IsInf(l.To, 0):
		return nil, fmt.Errorf("log_spaced from %v to %v, want 0 < from < to", l.From, l.To)
	case l.Count < 2 || l.Count > program.MaxBorders:
		return nil, fmt.Errorf("log_spaced count %d, want 2 to %d", l.Count, program.MaxBorders)
	}
	from, to := bigFloat(l.From), bigFloat(l.To)
	step := new(big.Float).Quo(bigLog(new(big.Float).Quo(to, from)), bigFloat(float64(l.Count-1)))
	q := bigExp(step)
	out := make([]*big.Float, l.Count)
	x := from
	for i := range out {
		out[i] = new(big.Float).SetPrec(snapPrec).Set(x)
		x = new(big.Float).SetPrec(workPrec).Mul(x, q)
	}
	out[l.Count-1] = new(big.Float).SetPrec(snapPrec).Set(to)
	return out, nil
}

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(workPrec).SetFloat64(x) }

// bigLog is ln x for x > 0.
func bigLog(x *big.Float) *big.Float {
	// x = m * 2^e with m in [1/2, 1), and ln m = 2 atanh((m-1)/(m+1)), whose argument is in [-1/3, 0).
	m := new(big.Float).SetPrec(workPrec)
	e := x.MantExp(m)
	one := bigFloat(1)
	z := new(big.Float).Quo(new(big.Float).Sub(m, one), new(big.Float).Add(m, one))
	ln2 := atanh2(new(big.Float).Quo(one, bigFloat(3)))
	return new(big.Float).Add(new(big.Float).Mul(bigFloat(float64(e)), ln2), atanh2(z))
}

// atanh2 is 2 atanh(z) = 2 (z + z^3/3 + z^5/5 + ...) for |z| <= 1/3.
func atanh2(z *big.Float) *big.Float {
	square := new(big.Float).Mul(z, z)
	sum, power := new(big.Float).Set(z), new(big.Float).Set(z)
	for k := 3; ; k += 2 {
		power = new(big.Float).Mul(power, square)
		term := new(big.Float).Quo(power, bigFloat(float64(k)))
		if negligible(term, sum) {
			return new(big.Float).Mul(bigFloat(2), sum)
		}
		sum = new(big.Float).Add(sum, term)
	}
}

// bigExp is e^x for 0 <= x < 2^11.
func bigExp(x *big.Float) *big.Float {
	// e^x = (e^(x/2^32))^(2^32). The squarings cost 32 of the 384 bits.
	const halvings = 32
	small := new(big.Float).SetMantExp(x, -halvings)
	sum, term := bigFloat(1), bigFloat(1)
	for k := 1; ; k++ {
		term = new(big.Float).Quo(new(big.Float).Mul(term, small), bigFloat(float64(k)))
		if negligible(term, sum) {
			break
		}
		sum = new(big.Float).Add(sum, term)
	}
	for range halvings {
		sum = new(big.Float).Mul(sum, sum)
	}
	return sum
}

// negligible reports whether adding term to sum changes nothing within workPrec.
func negligible(term, sum *big.Float) bool {
	return term.Sign() == 0 || term.MantExp(nil) < sum.MantExp(nil)-workPrec-2
}
