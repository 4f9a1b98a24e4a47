package hashcross

import "math/big"

// Reference returns the bucket of one row's ids. buckets must be above 0.
func Reference(ids []int64, buckets int64) int64 {
	var all uint64
	for _, id := range ids {
		z := uint64(id)
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		all ^= z ^ z>>31
	}
	return new(big.Int).Mod(new(big.Int).SetUint64(all), big.NewInt(buckets)).Int64()
}
