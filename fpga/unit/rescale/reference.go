package rescale

import "math/big"

// Reference returns floor(x * multiplier / divisor), and false if that does not fit int64.
func Reference(x, multiplier, divisor int64) (int64, bool) {
	product := new(big.Int).Mul(big.NewInt(x), big.NewInt(multiplier))
	quotient, remainder := new(big.Int).QuoRem(product, big.NewInt(divisor), new(big.Int))
	if remainder.Sign() < 0 {
		quotient.Sub(quotient, big.NewInt(1))
	}
	return quotient.Int64(), quotient.IsInt64()
}
