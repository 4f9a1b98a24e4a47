package sigridhash

import "math/big"

// Reference returns the hash of one id by the definition, limit > 0.
func Reference(id, salt, limit int64) int64 {
	if limit == 1 {
		return 0
	}
	// big.Int's Mod is Euclidean: with a positive modulus it is floorMod.
	return new(big.Int).Mod(big.NewInt(Raw(id, salt)), big.NewInt(limit)).Int64()
}

// Raw returns the hash before the modulo.
func Raw(id, salt int64) int64 {
	return int64(Hash128to64(uint64(salt), TwangMix64(uint64(id))))
}

// TwangMix64 is folly's twang_mix64.
func TwangMix64(key uint64) uint64 {
	key = (^key) + (key << 21)
	key = key ^ (key >> 24)
	key = key + (key << 3) + (key << 8)
	key = key ^ (key >> 14)
	key = key + (key << 2) + (key << 4)
	key = key ^ (key >> 28)
	key = key + (key << 31)
	return key
}

// Hash128to64 is folly's hash_128_to_64.
func Hash128to64(upper, lower uint64) uint64 {
	const mul = 0x9ddfea08eb382d69
	a := (lower ^ upper) * mul
	a = a ^ (a >> 47)
	b := (upper ^ a) * mul
	b = b ^ (b >> 47)
	b = b * mul
	return b
}
