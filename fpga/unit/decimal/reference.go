package decimal

import "math/big"

// Unscaled returns the integer that bytes hold in two's complement, the highest byte first.
func Unscaled(value []byte) *big.Int {
	n := new(big.Int).SetBytes(value)
	if len(value) > 0 && value[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(value))))
	}
	return n
}

// ReferenceFloat32 returns the float32 nearest to n / 10^scale.
func ReferenceFloat32(n *big.Int, scale uint8) float32 {
	x, _ := ratio(n, scale).Float32()
	return x
}

// ReferenceFloat64 returns the float64 nearest to n / 10^scale.
func ReferenceFloat64(n *big.Int, scale uint8) float64 {
	x, _ := ratio(n, scale).Float64()
	return x
}

// ratio returns n / 10^scale.
func ratio(n *big.Int, scale uint8) *big.Rat {
	return new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
}
