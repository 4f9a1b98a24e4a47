package localhour

import "math/big"

// Reference returns the hour at time t of the zone of a table.
func Reference(t int64, starts, offsets []int64) int64 {
	offset := offsets[0]
	for i, start := range starts {
		if start <= t {
			offset = offsets[i]
		}
	}
	local := new(big.Int).Add(big.NewInt(t), big.NewInt(offset))
	second := local.Mod(local, big.NewInt(24*60*60)) // Euclidean: never negative
	return new(big.Int).Div(second, big.NewInt(60*60)).Int64()
}
